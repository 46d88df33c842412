"""One probe from beginning to end: its runs of tools, and the samples made of their figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.units import MBPS_PER_GBPS, moved_gb
from probes.analysis.ramp import fit_ramp, next_connections
from probes.analysis.stopping import may_stop
from probes.campaign.ramping import RAMP_STEP_S, Saturation, sender_kind, udp_shares
from probes.campaign.specification import AS_ASKED, Method
from probes.campaign.tasks import ProbeTask
from probes.campaign.throughput_tests import (
    LEAST_MEASURED_S,
    Findings,
    ThroughputTester,
    steady_mbps,
    steady_sample,
)
from probes.fleet.failures import ProbeError
from probes.tools import MOST_STREAMS
from probes.tools.interface import OVERRUN_S, Result, Test, make_test, run_client
from probes.tools.round_trips import HOP_GB, MOST_HOPS, Ping, TcpConnect, Traceroute

if TYPE_CHECKING:  # which loads asyncssh
    from probes.fleet.sessions import Sessions

# A window opens within about nine round trips (log2(4 MB / 14.6 kB) + 1); many flows share the
# way up and need fewer.
ROUND_TRIPS_OF_ONE_FLOW = 9.0
ROUND_TRIPS_OF_MANY = 6.0
LEAST_WARM_UP_S = 1
FIRST_PART_S = 5
"""Enough intervals of 1 s to know the median, if they agree."""
FIRST_INTERVALS = 5
"""Of a short first measurement of many connections: the fewest that show whether they agree."""
FIRST_WITHIN = 0.1
"""Spread about their middle that is allowed: about the one of repeated tests of many links."""
EXCHANGE_ROUND_TRIPS = 8
STEADY_SHARE = 0.95
"""The last step of a ramp counts unless fewer connections brought clearly more."""
MOST_MBPS_OF_STREAM = 1_000.0  # one UDP stream is one sender's loop, a system call a datagram


def task_s(task: ProbeTask, rtt_ms: Callable[[str, str], float]) -> float:
    """Return the duration of a task, with setup and exchange of results.

    iperf3 opens its connections one after the other, a round trip each; parameters and results
    are exchanged in a few more.
    """
    if task.phase == "rtt":
        return task.duration_s
    if task.flow_s:
        return sum(task_s(part, rtt_ms) for part in task.in_turn)
    rtt_s = max(rtt_ms(src, dst) for src, dst in task.pairs) / 1e3
    round_trips = task.connections + EXCHANGE_ROUND_TRIPS
    if task.ramp:  # 1 + 2 + 4 + ... connections, one exchange a step
        round_trips = 2 * task.connections + EXCHANGE_ROUND_TRIPS * task.connections.bit_length()
    if task.udp_s:
        round_trips += task.udp_rates * (1 + EXCHANGE_ROUND_TRIPS)
    return task.duration_s + round_trips * rtt_s


def warm_up_s(task: ProbeTask, rtt_ms: Callable[[str, str], float]) -> int:
    """Return the warm-up of one test in whole seconds; at most half of the task."""
    round_trips = ROUND_TRIPS_OF_ONE_FLOW if task.phase == "per-flow" else ROUND_TRIPS_OF_MANY
    rtt_s = max(rtt_ms(src, dst) for src, dst in task.pairs) / 1e3
    most_s = max(LEAST_WARM_UP_S, int((task.duration_s - task.udp_s - task.first_s) / 2))
    return min(most_s, max(LEAST_WARM_UP_S, math.ceil(round_trips * rtt_s)))


class Prober:
    """Runs probes between hosts of a fleet.

    `rtt_ms` is source and destination host to the round-trip time to expect; it sizes the warm-up.
    """

    def __init__(
        self, sessions: Sessions, rtt_ms: Callable[[str, str], float], method: Method = AS_ASKED
    ) -> None:
        self._sessions = sessions
        self.rtt_ms = rtt_ms
        self._method = method
        self.tester = ThroughputTester(sessions, method)
        self._saturations: dict[str, Saturation] = {}

    async def probe(self, task: ProbeTask, findings: Findings) -> None:
        """Run the parts of a probe that have not ended, and add their results to the findings.

        Raises ProbeError naming the host at fault.
        """
        for part in task.in_turn[findings.parts :]:
            if part.phase == "rtt":
                await self._round_trip(part, findings)
            elif part.phase == "per-flow":
                await self._one_flow(part, findings)
            elif part.phase == "aggregate":
                await self._many_flows(part, findings)
            else:
                omit_s = warm_up_s(part, self.rtt_ms)
                await self.tester.run_cap(part, findings, omit_s, self.rtt_ms)
            findings.parts, findings.kept = findings.parts + 1, len(findings.samples)

    # ---- round-trip time ----------------------------------------------------------------------

    async def _round_trip(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        fleet = self._sessions.fleet
        began_s = time.monotonic()
        test = replace(
            make_test(fleet, Ping(), src, dst), connections=0, duration_s=task.duration_s
        )
        await self._sessions.session(src)  # a login that fails sends nothing to be charged
        try:
            result = await run_client(self._sessions, Ping(), test)
        except ProbeError as silent:
            if silent.cause != "missing-tool":
                _add_both_ways(findings, src, dst, Ping().sent_gb(test))
            if silent.cause not in ("filtered", "missing-tool"):
                raise
            result = await run_client(self._sessions, TcpConnect(), test)
        findings.samples += result.samples
        findings.busy_s += time.monotonic() - began_s
        _add_both_ways(findings, src, dst, result.sent_gb)
        if self._method.trace:
            await self._route(test, findings)

    async def _route(self, test: Test, findings: Findings) -> None:
        """Trace a route; a failure leaves the round-trip time as it is."""
        ends = test.src.name, test.dst.name
        try:
            result = await run_client(self._sessions, Traceroute(), test)
        except ProbeError as error:
            if error.cause != "missing-tool":
                _add_both_ways(findings, *ends, MOST_HOPS * HOP_GB)
            findings.notes.append(f"no route: {error.problem}")
            return
        _add_both_ways(findings, *ends, result.sent_gb)
        findings.samples += result.samples
        if not result.samples:
            path = result.detail["path"]
            assert isinstance(path, list)
            findings.notes.append(f"no answer of the destination to traceroute in {len(path)} hops")

    # ---- throughput of one pair ---------------------------------------------------------------

    async def _one_flow(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        omit_s = warm_up_s(task, self.rtt_ms)
        measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
        results: list[Result] = []
        left_s = measured_s
        while left_s > 0:
            now_s = left_s if results or self._method.full_time else min(left_s, FIRST_PART_S)
            # A remainder of a second or two would cost a warm-up of its own.
            if left_s - now_s < LEAST_MEASURED_S:
                now_s = left_s
            test = self.tester.make(src, dst, 1, now_s, omit_s)
            results.append(await self.tester.run(task, findings, test))
            left_s -= now_s
            if may_stop([interval.mbps for result in results for interval in result.intervals]):
                break
        findings.samples.append(steady_sample(results, findings))

    async def _many_flows(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        omit_s = warm_up_s(task, self.rtt_ms)
        lasting_s = task.duration_s - task.udp_s - task.first_s
        whole_s = max(LEAST_MEASURED_S, round(lasting_s) - omit_s)
        kind = sender_kind(self._sessions.fleet, src)
        rtt_ms = self.rtt_ms(src, dst)
        known = None if task.ramp else self._saturations.get(kind)
        tested: dict[int, Result] = {}
        rates: dict[int, float] = {}
        count: int | None = task.connections
        if task.ramp:
            count = 1
        elif known:
            count = known.connections(rtt_ms, task.connections)
        if task.first_s and (early := await self._settled_early(task, findings, omit_s)):
            tested[task.connections], count = early, None
            rates[task.connections] = steady_mbps(early)
        while count is not None:
            measured_s = RAMP_STEP_S if task.ramp else whole_s
            test = self.tester.make(src, dst, count, measured_s, omit_s)
            tested[count] = await self.tester.run(task, findings, test)
            rates[count] = steady_mbps(tested[count])
            if known and count == min(rates) and known.suffices(count, rates[count], rtt_ms):
                break
            count = next_connections(rates, most=task.connections)
        best = max(rates, key=rates.__getitem__)
        counted = max(rates) if rates[max(rates)] >= STEADY_SHARE * rates[best] else best
        sample = steady_sample([tested[counted]], findings)
        if len(rates) > 1:
            ramp = fit_ramp(rates)
            sample = sample.with_detail(
                ramp={str(number): round(mbps, 3) for number, mbps in rates.items()},
                saturated=ramp.saturated,
            )
            if task.ramp and ramp.saturated:
                self._saturations[kind] = Saturation(ramp, rtt_ms)
        findings.samples.append(sample)
        for share in udp_shares(task.udp_rates) if task.udp_s else ():
            if not await self._udp(task, findings, src, dst, share * sample.value):
                break

    async def _settled_early(
        self, task: ProbeTask, findings: Findings, omit_s: int
    ) -> Result | None:
        """Measure shortly; return None unless the seconds agree and the rate is as expected."""
        ((src, dst),) = task.pairs
        measured_s = max(LEAST_WARM_UP_S, round(task.first_s) - omit_s)
        test = self.tester.make(src, dst, task.connections, measured_s, omit_s)
        test = replace(test, interval_s=measured_s / FIRST_INTERVALS)
        result = await self.tester.run(task, findings, test)
        mbps = steady_mbps(result)
        expected = task.least_gbps <= mbps / MBPS_PER_GBPS <= task.most_gbps
        parts = [interval.mbps for interval in result.intervals]
        return result if expected and may_stop(parts, within=FIRST_WITHIN) else None

    async def _udp(
        self, task: ProbeTask, findings: Findings, src: str, dst: str, offered_mbps: float
    ) -> bool:
        """Offer a rate, and measure the rate of arrival; a failure leaves the figures before it.

        Returns False after a failure.
        """
        measured_s = task.udp_s / task.udp_rates
        if moved_gb(offered_mbps, measured_s + OVERRUN_S) > findings.left_gb:
            findings.notes.append("no UDP capacity: the budget does not allow it")
            return False
        streams = min(MOST_STREAMS, math.ceil(offered_mbps / MOST_MBPS_OF_STREAM))
        test = replace(
            make_test(self._sessions.fleet, self.tester.tool, src, dst),
            connections=streams,
            duration_s=measured_s,
            udp_mbps=offered_mbps,
            udp_bytes=self._method.udp_bytes,
        )
        try:
            result = await self.tester.run(task, findings, test)
        except ProbeError as error:
            if error.of_the_host:
                raise
            findings.notes.append(f"no UDP capacity: {error.problem}")
            return False
        findings.samples.append(result.samples[0])
        return True


def _add_both_ways(findings: Findings, src: str, dst: str, gb: float) -> None:
    """Add the volume of requests and replies."""
    findings.sent += [(src, dst, gb / 2), (dst, src, gb / 2)]
