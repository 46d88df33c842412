"""One probe from beginning to end: which tool runs how often, and what its figures mean."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from probes.analysis.caps import cap_estimate
from probes.analysis.ramp import fit_ramp, next_connections
from probes.analysis.steady_state import SteadyState, steady_state
from probes.analysis.stopping import may_stop
from probes.campaign.tasks import ProbeTask
from probes.failures import ProbeError
from probes.importers.steady import Interval
from probes.samples import Metric, Sample
from probes.sessions import Sessions
from probes.tools.interface import Result, Test, Tool
from probes.tools.iperf3 import Iperf3
from probes.tools.ping import Ping
from probes.tools.running import Ports, make_test, prepared, run, run_client
from probes.tools.tcp_connect import TcpConnect

# A window opens within about nine round trips (log2(4 MB / 14.6 kB) + 1); many flows share the
# way up and need fewer.
ROUND_TRIPS_OF_ONE_FLOW = 9.0
ROUND_TRIPS_OF_MANY = 6.0
LEAST_OMIT_S = 1
LEAST_MEASURED_S = 3
FIRST_LOOK_S = 5
"""Intervals of 1 s of which the median is known well enough if they agree."""
RAMP_STEP_S = 3
EXCHANGE_ROUND_TRIPS = 8
MBPS_PER_GBPS = 1000.0


def task_s(task: ProbeTask, rtt_ms: Callable[[str, str], float]) -> float:
    """Return how long a task takes, with what the tools do before and after measuring.

    iperf3 opens its connections one after the other, a round trip each; parameters and results
    are exchanged in a few more.
    """
    if task.phase == "rtt":
        return task.duration_s
    rtt_s = max(rtt_ms(src, dst) for src, dst in task.pairs) / 1e3
    return task.duration_s + (task.connections + EXCHANGE_ROUND_TRIPS) * rtt_s


@dataclass
class Findings:
    """What a probe has found and moved so far; filled in as it runs, so that a failure keeps it.

    Attributes
    ----------
    samples : list of Sample
    sent : list of (source host, destination host, GB)
    busy_s : float
        How long tools were at work.
    notes : list of str
    """

    samples: list[Sample] = field(default_factory=list)
    sent: list[tuple[str, str, float]] = field(default_factory=list)
    busy_s: float = 0.0
    notes: list[str] = field(default_factory=list)


class Prober:
    """Runs probes between hosts of a fleet.

    Parameters
    ----------
    sessions : Sessions
    rtt_ms : callable
        Source and destination host to the round-trip time to expect; sizes the warm-up.
    ramp : bool
        Whether ``aggregate`` tries 1, 2, 4, ... connections, or the largest number at once.
    tool : Tool, optional
        For throughput; iperf3 unless told otherwise.
    window_bytes : int
        TCP window to ask for; 0 leaves the systems' own.
    """

    def __init__(
        self,
        sessions: Sessions,
        rtt_ms: Callable[[str, str], float],
        *,
        ramp: bool = False,
        tool: Tool | None = None,
        window_bytes: int = 0,
    ) -> None:
        self._sessions = sessions
        self._rtt_ms = rtt_ms
        self._ramp = ramp
        self._tool: Tool = tool or Iperf3()
        self._window_bytes = window_bytes
        self._ports = Ports()

    async def probe(self, task: ProbeTask, findings: Findings) -> None:
        """Run a probe; what it finds is added to the findings.

        Raises
        ------
        ProbeError
            Naming the host at fault.
        """
        if task.phase == "rtt":
            await self._round_trip(task, findings)
        elif task.phase == "per-flow":
            await self._one_flow(task, findings)
        elif task.phase == "aggregate":
            await self._many_flows(task, findings)
        else:
            await self._together(task, findings)

    def expected_s(self, task: ProbeTask) -> float:
        """Return how long a task takes: iperf3 opens its connections one after the other."""
        return task_s(task, self._rtt_ms)

    # ---- round-trip time ----------------------------------------------------------------------

    async def _round_trip(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        fleet = self._sessions.fleet
        began_s = time.monotonic()
        test = replace(
            make_test(fleet, Ping(), src, dst), connections=0, duration_s=task.duration_s
        )
        try:
            result = await run(self._sessions, self._ports, Ping(), test)
        except ProbeError as silent:
            if silent.cause not in ("filtered", "missing-tool"):
                raise
            result = await run(self._sessions, self._ports, TcpConnect(), test)
        findings.samples += result.samples
        findings.busy_s += time.monotonic() - began_s
        findings.sent += [(src, dst, result.sent_gb / 2), (dst, src, result.sent_gb / 2)]

    # ---- throughput of one pair ---------------------------------------------------------------

    async def _one_flow(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        omit_s = self._omit_s(task, ROUND_TRIPS_OF_ONE_FLOW)
        measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
        results: list[Result] = []
        left_s = measured_s
        while left_s > 0:
            now_s = min(left_s, FIRST_LOOK_S) if not results else left_s
            # A remainder of a second or two would cost a warm-up of its own.
            if left_s - now_s < LEAST_MEASURED_S:
                now_s = left_s
            results.append(await self._throughput(task, findings, src, dst, 1, now_s, omit_s))
            left_s -= now_s
            if may_stop([interval.mbps for result in results for interval in result.intervals]):
                break
        findings.samples.append(_settled(results, findings))

    async def _many_flows(self, task: ProbeTask, findings: Findings) -> None:
        ((src, dst),) = task.pairs
        omit_s = self._omit_s(task, ROUND_TRIPS_OF_MANY)
        if not self._ramp:
            measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
            result = await self._throughput(
                task, findings, src, dst, task.connections, measured_s, omit_s
            )
            findings.samples.append(_settled([result], findings))
            return
        measured: dict[int, float] = {}
        last: Result | None = None
        while (count := next_connections(measured, most=task.connections)) is not None:
            last = await self._throughput(task, findings, src, dst, count, RAMP_STEP_S, omit_s)
            measured[count] = last.samples[0].value
        assert last
        sample = _settled([last], findings)
        ramp = fit_ramp(measured)
        detail = json.loads(sample.detail) | {
            "ramp": {str(count): round(mbps, 3) for count, mbps in measured.items()},
            "saturated": ramp.saturated,
        }
        findings.samples.append(sample._replace(detail=json.dumps(detail)))

    # ---- caps ---------------------------------------------------------------------------------

    async def _together(self, task: ProbeTask, findings: Findings) -> None:
        """Load one VM from or towards several others at once."""
        sources = {src for src, _ in task.pairs}
        outward = len(sources) == 1
        hub = task.pairs[0][0] if outward else task.pairs[0][1]
        omit_s = max(self._omit_s(task, ROUND_TRIPS_OF_MANY), 2)
        measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
        fleet = self._sessions.fleet
        began_s = time.time()
        async with AsyncExitStack() as servers:
            tests: list[Test] = []
            for src, dst in task.pairs:
                test = replace(
                    make_test(fleet, self._tool, src, dst), connections=task.connections,
                    duration_s=measured_s, omit_s=omit_s, window_bytes=self._window_bytes,
                )  # fmt: skip
                tests.append(
                    await servers.enter_async_context(
                        prepared(self._sessions, self._ports, self._tool, test)
                    )
                )
            # Connections first: the tests are to begin together.
            for src, dst in task.pairs:
                await self._sessions.session(dst if self._tool.client_at_dst else src)
            busy_since_s = time.monotonic()
            try:
                async with asyncio.TaskGroup() as group:
                    running = [
                        group.create_task(run_client(self._sessions, self._tool, test))
                        for test in tests
                    ]
            except* ProbeError as failed:
                self._charge_lost(task, findings, time.monotonic() - busy_since_s, task.pairs)
                raise _first(failed) from None
            findings.busy_s += time.monotonic() - busy_since_s
        results = [task.result() for task in running]
        together: dict[str, float] = {}
        for (src, dst), result in zip(task.pairs, results, strict=True):
            findings.sent.append((src, dst, result.sent_gb))
            peer = dst if outward else src
            together[peer] = _steady_mbps([result])
        if not sum(together.values()):
            raise ProbeError(hub, "output", "nothing got through while all peers were loaded")
        estimate = cap_estimate(together, dict.fromkeys(together), measured_at_s=began_s)
        region = fleet[hub].region
        metric: Metric = "egress_cap_mbps" if outward else "ingress_cap_mbps"
        first = results[0].samples[0]
        detail = {
            "together_mbps": {fleet[peer].region: round(v, 3) for peer, v in together.items()},
            "low_mbps": round(estimate.low * MBPS_PER_GBPS, 3),
            "high_mbps": round(estimate.high * MBPS_PER_GBPS, 3),
        }
        findings.samples.append(
            Sample(
                region, region, metric, estimate.expected * MBPS_PER_GBPS, began_s, first.tool,
                connections=task.connections * len(task.pairs), duration_s=measured_s,
                warmed_up=True, src_zone=fleet[hub].zone, dst_zone=fleet[hub].zone,
                src_vm=fleet[hub].vm_type, dst_vm=fleet[hub].vm_type, detail=json.dumps(detail),
            )
        )  # fmt: skip

    # ---- inside -------------------------------------------------------------------------------

    async def _throughput(
        self, task: ProbeTask, findings: Findings, src: str, dst: str, connections: int,
        measured_s: float, omit_s: float,
    ) -> Result:  # fmt: skip
        test = replace(
            make_test(self._sessions.fleet, self._tool, src, dst), connections=connections,
            duration_s=measured_s, omit_s=omit_s, window_bytes=self._window_bytes,
        )  # fmt: skip
        async with prepared(self._sessions, self._ports, self._tool, test) as ready:
            began_s = time.monotonic()
            try:
                result = await run_client(self._sessions, self._tool, ready)
            except ProbeError:
                self._charge_lost(task, findings, time.monotonic() - began_s, task.pairs)
                raise
            findings.busy_s += time.monotonic() - began_s
        findings.sent.append((src, dst, result.sent_gb))
        return result

    def _omit_s(self, task: ProbeTask, round_trips: float) -> int:
        """Return the warm-up in whole seconds; at most half of the task."""
        rtt_s = max(self._rtt_ms(src, dst) for src, dst in task.pairs) / 1e3
        most_s = max(LEAST_OMIT_S, int(task.duration_s / 2))
        return min(most_s, max(LEAST_OMIT_S, math.ceil(round_trips * rtt_s)))

    def _charge_lost(
        self, task: ProbeTask, findings: Findings, elapsed_s: float,
        pairs: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        """Charge a test that failed for what it may have moved: no one is left who counted."""
        share = task.expected_gbps * min(elapsed_s, task.duration_s) / 8 / len(pairs)
        findings.sent += [(src, dst, share) for src, dst in pairs]


def _settled(results: Sequence[Result], findings: Findings) -> Sample:
    """Return one sample of one or more runs of the same test."""
    sample = results[0].samples[0]
    intervals = [interval for result in results for interval in result.intervals]
    steady = _steady(results)
    if steady is None:
        return sample
    detail = json.loads(sample.detail) if sample.detail else {}
    detail |= {
        "intervals": len(intervals), "low_mbps": round(steady.low_mbps, 3),
        "high_mbps": round(steady.high_mbps, 3),
    }  # fmt: skip
    if steady.findings:
        detail["findings"] = [
            {
                "pattern": found.pattern, "at_s": round(found.at_s, 3),
                "at_gb": round(found.at_gb, 6), "before_mbps": round(found.before_mbps, 3),
                "after_mbps": round(found.after_mbps, 3),
            }
            for found in steady.findings
        ]  # fmt: skip
        findings.notes += [
            f"{found.pattern} from {found.before_mbps:.4g} to {found.after_mbps:.4g} Mbit/s "
            f"after {found.at_s:.0f} s"
            for found in steady.findings
            if found.pattern != "slow-start"
        ]
    mbps = steady.mbps
    if sample.connections == 1 and not steady.findings:
        # One flow sends a window a round trip. A second holds few of them, and a median of such
        # counts is off by up to one; the mean over all seconds is off by much less.
        mbps = sum(i.mbps * i.seconds for i in intervals) / sum(i.seconds for i in intervals)
    return sample._replace(
        value=mbps, duration_s=steady.duration_s, warmed_up=True, detail=json.dumps(detail)
    )


def _steady_mbps(results: Sequence[Result]) -> float:
    steady = _steady(results)
    return steady.mbps if steady else results[0].samples[0].value


def _steady(results: Sequence[Result]) -> SteadyState | None:
    intervals: list[Interval] = [i for result in results for i in result.intervals]
    return steady_state(intervals, warmed_up=True) if intervals else None


def _first(group: BaseExceptionGroup[ProbeError]) -> ProbeError:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, ProbeError)
    return found
