"""Throughput tests of a probe: made by the method, run with their servers, charged, and read.

One of a pair, or several at the same time: one to many, or many to one, for a VM's cap.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from planner.model.errors import InputError
from planner.model.units import MBPS_PER_GBPS, MS_PER_S, moved_gb, volume_text
from probes.analysis.fleet_caps import PeerTest, together_mbps
from probes.analysis.steady_state import Interval, changes_as_json, steady_state
from probes.campaign.specification import Method
from probes.campaign.tasks import ProbeTask
from probes.fleet.failures import ProbeError, side_by_side
from probes.metrics import CAP_NOISE
from probes.samples import Sample
from probes.tools.interface import (
    LARGEST_PIECE_BYTES,
    Ports,
    Result,
    Test,
    Tool,
    make_test,
    prepared,
    run_client,
)
from probes.tools.iperf3 import Iperf3

if TYPE_CHECKING:  # which loads asyncssh
    from probes.fleet.sessions import Sessions


@dataclass
class Findings:
    """The samples and the volume of a probe so far; filled in as it runs, so a failure keeps them.

    The samples of parts that ended count, even if the rest fails.
    """

    samples: list[Sample] = field(default_factory=list)
    sent: list[tuple[str, str, float]] = field(default_factory=list)  # from host, to host, GB
    busy_s: float = 0.0  # time for which tools were at work
    notes: list[str] = field(default_factory=list)
    most_gb: float = inf  # allowance
    parts: int = 0  # of the probe that have ended
    kept: int = 0  # samples of these

    def again(self, most_gb: float) -> Findings:
        """Return those of another attempt, which begins with the samples of parts that ended."""
        samples = self.samples[: self.kept]
        return Findings(samples, most_gb=most_gb, parts=self.parts, kept=self.kept)

    @property
    def left_gb(self) -> float:
        """Rest of the allowance."""
        return max(0.0, self.most_gb - sum(gb for _, _, gb in self.sent))


def steady_sample(results: Sequence[Result], findings: Findings) -> Sample:
    """Return one sample of the runs of one test; note changes of their rate."""
    sample = results[0].samples[0]
    intervals = [interval for result in results for interval in result.intervals]
    found = steady_state(intervals, warmed_up=True) if intervals else None
    if found is None:
        return sample
    sample = sample.with_detail(
        low_mbps=round(found.low_mbps, 3), high_mbps=round(found.high_mbps, 3)
    )
    if found.mean_error:
        sample = sample.with_detail(mean_error=found.mean_error)
    if found.findings:
        sample = sample.with_detail(findings=changes_as_json(found.findings))
        findings.notes += [
            f"{change.pattern} from {change.before_mbps:.4g} to {change.after_mbps:.4g} Mbit/s "
            f"after {change.at_s:.0f} s and {volume_text(change.at_gb)}"
            for change in found.findings
            if change.pattern != "slow-start"
        ]
    mbps = found.mbps
    if sample.connections == 1 and not found.findings:
        # One flow sends a window a round trip. A second holds few of them, and a median of such
        # counts is off by up to one; the mean over all seconds is off by much less.
        mbps = sum(i.mbps * i.seconds for i in intervals) / sum(i.seconds for i in intervals)
    return sample._replace(
        value=mbps, duration_s=found.duration_s, warmed_up=True, intervals=len(intervals)
    )


def steady_mbps(result: Result) -> float:
    """Return the steady rate of a run, or its mean where the intervals do not show it."""
    found = steady_state(result.intervals, warmed_up=True) if result.intervals else None
    return found.mbps if found else result.samples[0].value


LEAST_OMIT_S, LEAST_MEASURED_S = 2, 3
TOGETHER_INTERVAL_S = 0.25
"""Short, to leave out the time before other peers began and after they ended."""
HELD_SHARE = 0.9  # a test that sent this share of its allowance was held to it


@dataclass
class ThroughputTester:
    """Runs throughput tests between hosts of a fleet by one method."""

    sessions: Sessions
    method: Method
    ports: Ports = field(default_factory=Ports)

    def __post_init__(self) -> None:
        self.tool: Tool = Iperf3()

    def make(self, src: str, dst: str, connections: int, measured_s: float, omit_s: float) -> Test:
        """Return a test between two hosts by the method."""
        # Where the host's setting was changed, the tool need not ask for the algorithm.
        algorithm = "" if self.method.change_sysctls else self.method.congestion_control
        return replace(
            make_test(self.sessions.fleet, self.tool, src, dst),
            connections=connections,
            duration_s=measured_s,
            omit_s=omit_s,
            window_bytes=self.method.window_bytes,
            congestion_control=algorithm,
        )

    async def run(self, task: ProbeTask, findings: Findings, test: Test) -> Result:
        """Run a test; add the time and the volume that it took to the findings.

        It sends no more than the rest of the findings' allowance.

        Raises ProbeError naming the host at fault; the volume that the test may have sent is
        charged. With the cause ``limit`` where that was too little to show the path's rate.
        """
        ((result, _),) = await self._run_together(task, findings, {test: 0.0})
        return result

    async def run_cap(
        self,
        task: ProbeTask,
        findings: Findings,
        omit_s: float,
        rtt_ms: Callable[[str, str], float],
    ) -> None:
        """Load one VM from or towards several others at once; add its cap to the findings.

        Raises ProbeError naming the host at fault.
        """
        outward = len({src for src, _ in task.pairs}) == 1
        hub = task.pairs[0][0 if outward else 1]
        omit_s = max(omit_s, LEAST_OMIT_S)
        measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
        # A tool opens its connections one after the other, a round trip each.
        opening_s = {pair: task.connections * rtt_ms(*pair) / MS_PER_S for pair in task.pairs}
        waits_s: dict[Test, float] = {}
        for pair, own_s in opening_s.items():
            test = self.make(*pair, task.connections, measured_s, omit_s)
            test = replace(test, interval_s=TOGETHER_INTERVAL_S)
            waits_s[test] = max(opening_s.values()) - own_s
        began_s = time.time()
        ended = await self._run_together(task, findings, waits_s)
        peers: dict[str, PeerTest] = {}
        for (src, dst), (result, ended_s) in zip(opening_s, ended, strict=True):
            mean = Interval(measured_s, result.samples[0].value)
            peers[dst if outward else src] = PeerTest(ended_s, result.intervals or (mean,))
        try:
            together = together_mbps(peers)
        except InputError as error:
            raise ProbeError(hub, "busy", error.problem, error.remedy or "") from None
        mbps = sum(together.values())
        if not mbps:
            raise ProbeError(hub, "output", "nothing got through while all peers were loaded")
        fleet, host = self.sessions.fleet, self.sessions.fleet[hub]
        detail = {
            "host": hub,
            "together_mbps": {fleet[peer].region: round(v, 3) for peer, v in together.items()},
            "low_mbps": round(mbps / (1 + CAP_NOISE), 3),
            "high_mbps": round(mbps * (1 + CAP_NOISE), 3),
        }
        of_one_peer = ended[0][0].samples[0]
        sample = of_one_peer._replace(
            src=host.region,
            dst=host.region,
            metric="egress_cap_mbps" if outward else "ingress_cap_mbps",
            value=mbps,
            measured_at_s=began_s,
            connections=task.connections * len(task.pairs),
            duration_s=measured_s,
            warmed_up=True,
            src_zone=host.zone,
            dst_zone=host.zone,
            src_vm=host.vm_type,
            dst_vm=host.vm_type,
            detail=json.dumps(detail),
            intervals=None,
        )
        findings.samples.append(sample)

    async def _run_together(
        self, task: ProbeTask, findings: Findings, waits_s: Mapping[Test, float]
    ) -> list[tuple[Result, float]]:
        """Run tests, each after a wait; return results and monotonic end times."""
        most_gb = findings.left_gb / len(waits_s)
        tests: list[Test] = []
        async with AsyncExitStack() as servers:
            for wanted in waits_s:
                test = replace(wanted, most_gb=most_gb)
                if moved_gb(test.held_to_mbps, test.duration_s) > most_gb:
                    raise _too_little(test, most_gb)
                ready = prepared(self.sessions, self.ports, self.tool, test)
                tests.append(await servers.enter_async_context(ready))
            for test in tests:  # logins first, so that the tests begin together
                client = test.dst if self.tool.client_at_dst else test.src
                await self.sessions.session(client.name)

            async def loaded(test: Test, wait_s: float) -> tuple[Result, float]:
                await asyncio.sleep(wait_s)
                return await run_client(self.sessions, self.tool, test), time.monotonic()

            began_s = time.monotonic()
            try:
                async with side_by_side() as group:
                    each = zip(tests, waits_s.values(), strict=True)
                    running = [group.create_task(loaded(*one)) for one in each]
            except ProbeError as error:
                elapsed_s = time.monotonic() - began_s
                # No tool counted what they sent; if a host can't be reached, nor when they ended.
                for test in tests:
                    if test.most_gb == inf:
                        mbps = task.expected_gbps * MBPS_PER_GBPS / len(tests)
                        gb = moved_gb(mbps, min(elapsed_s, task.duration_s))
                    elif error.cause == "unreachable":
                        gb = test.most_gb
                    else:
                        in_pieces_gb = test.connections * LARGEST_PIECE_BYTES / 1e9
                        gb = min(
                            test.most_gb, moved_gb(test.held_to_mbps, elapsed_s) + in_pieces_gb
                        )
                    findings.sent.append((test.src.name, test.dst.name, gb))
                raise
            findings.busy_s += time.monotonic() - began_s
        ended = [one.result() for one in running]
        for test, (result, _) in zip(tests, ended, strict=True):
            findings.sent.append((test.src.name, test.dst.name, result.sent_gb))
        # UDP is offered at a rate of its own.
        held_gb = sum(moved_gb(test.held_to_mbps, test.duration_s + test.omit_s) for test in tests)
        sent_gb = sum(result.sent_gb for result, _ in ended)
        if not tests[0].udp_mbps and most_gb < inf and sent_gb >= HELD_SHARE * held_gb:
            raise _too_little(tests[0], held_gb)
        return ended


def _too_little(test: Test, most_gb: float) -> ProbeError:
    problem = f"the {volume_text(most_gb)} that the budget allows a test are too little for so fast"
    return ProbeError(test.src.name, "limit", f"{problem} a path", "Raise --budget.")
