"""One throughput test of a probe: made by the method, run with its server, and charged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from planner.model.units import MBPS_PER_GBPS, moved_gb, volume_text
from probes.campaign.findings import Findings
from probes.campaign.specification import Method
from probes.campaign.tasks import ProbeTask
from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions
from probes.tools.interface import LARGEST_PIECE_BYTES, Result, Test, Tool
from probes.tools.iperf3 import Iperf3
from probes.tools.nuttcp import Nuttcp
from probes.tools.running import Ports, make_test, prepared, run_client

HELD_SHARE = 0.9
"""A test that sent this share of what it was allowed was held to it."""


@dataclass
class ThroughputTester:
    """Runs throughput tests between hosts of a fleet by one method.

    Parameters
    ----------
    sessions : Sessions
    method : Method
    """

    sessions: Sessions
    method: Method
    ports: Ports = field(default_factory=Ports)

    def __post_init__(self) -> None:
        self.tool: Tool = Nuttcp() if self.method.tool == "nuttcp" else Iperf3()

    def make(self, src: str, dst: str, connections: int, measured_s: float, omit_s: float) -> Test:
        """Return a test between two hosts by the method."""
        # Where the tool can't ask for an algorithm, the host's setting was changed.
        algorithm = self.method.congestion_control if self.method.tool == "iperf3" else ""
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

        It sends no more than what the findings still allow.

        Raises
        ------
        ProbeError
            Naming the host at fault; what the test may have sent is charged. With the cause
            ``limit`` where that was too little to tell how fast the path is.
        """
        test = replace(test, most_gb=findings.left_gb)
        if moved_gb(test.held_to_mbps, test.duration_s) > test.most_gb:
            raise _too_little(test, test.most_gb)
        async with prepared(self.sessions, self.ports, self.tool, test) as ready:
            began_s = time.monotonic()
            try:
                result = await run_client(self.sessions, self.tool, ready)
            except ProbeError as error:
                self.charge_lost(task, findings, time.monotonic() - began_s, [test], error)
                raise
            findings.busy_s += time.monotonic() - began_s
        findings.sent.append((test.src.name, test.dst.name, result.sent_gb))
        if not test.udp_mbps:
            self.refuse_if_held([test], [result])
        return result

    @staticmethod
    def refuse_if_held(tests: Sequence[Test], results: Sequence[Result]) -> None:
        """Refuse the results of tests at the same time that were held to what they may send.

        Raises
        ------
        ProbeError
            With the cause ``limit``.
        """
        most_gb = sum(moved_gb(t.held_to_mbps, t.duration_s + t.omit_s) for t in tests)
        if tests[0].most_gb < inf and sum(r.sent_gb for r in results) >= HELD_SHARE * most_gb:
            raise _too_little(tests[0], most_gb)

    @staticmethod
    def charge_lost(
        task: ProbeTask,
        findings: Findings,
        elapsed_s: float,
        tests: Sequence[Test],
        error: ProbeError,
    ) -> None:
        """Charge failed tests for what they may have sent: nobody else counted it.

        Where a host can't be reached, nobody knows when its tools ended.
        """
        expected_mbps = task.expected_gbps * MBPS_PER_GBPS / len(tests)
        for test in tests:
            if test.most_gb == inf:
                gb = moved_gb(expected_mbps, min(elapsed_s, task.duration_s))
            elif error.cause == "unreachable":
                gb = test.most_gb
            else:
                in_pieces_gb = test.connections * LARGEST_PIECE_BYTES / 1e9
                gb = min(test.most_gb, moved_gb(test.held_to_mbps, elapsed_s) + in_pieces_gb)
            findings.sent.append((test.src.name, test.dst.name, gb))


def _too_little(test: Test, most_gb: float) -> ProbeError:
    problem = f"the {volume_text(most_gb)} that the budget allows a test are too little for so fast"
    return ProbeError(test.src.name, "limit", f"{problem} a path", "Raise --budget.")
