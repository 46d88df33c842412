"""One throughput test of a probe: made by the method, run with its server, and charged."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from probes.campaign.findings import Findings
from probes.campaign.method import Method
from probes.campaign.tasks import ProbeTask
from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions
from probes.tools.interface import Result, Test, Tool
from probes.tools.iperf3 import Iperf3
from probes.tools.nuttcp import Nuttcp
from probes.tools.running import Ports, make_test, prepared, run_client


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

        Raises
        ------
        ProbeError
            Naming the host at fault; what the test may have sent is charged.
        """
        async with prepared(self.sessions, self.ports, self.tool, test) as ready:
            began_s = time.monotonic()
            try:
                result = await run_client(self.sessions, self.tool, ready)
            except ProbeError:
                self.charge_lost(task, findings, time.monotonic() - began_s)
                raise
            findings.busy_s += time.monotonic() - began_s
        findings.sent.append((test.src.name, test.dst.name, result.sent_gb))
        return result

    @staticmethod
    def charge_lost(task: ProbeTask, findings: Findings, elapsed_s: float) -> None:
        """Charge a failed test for what it may have sent: nobody else counted it."""
        share = task.expected_gbps * min(elapsed_s, task.duration_s) / 8 / len(task.pairs)
        findings.sent += [(src, dst, share) for src, dst in task.pairs]
