"""The route that packets take: number of hops and their addresses."""

from __future__ import annotations

import json
import re

from probes.fleet.failures import ProbeError
from probes.fleet.session import Output
from probes.samples import Sample
from probes.tools.interface import Result, Test

MOST_HOPS = 40
WAIT_S = 1.0
HOP_GB = 74e-9 + 110e-9
"""A packet of 60 bytes and a router's answer, with Ethernet headers."""

_HOP = re.compile(r"\s*(\d{1,3})\s+(?:\*|(\S+)\s+[\d.]+ ms(?:\s+(!\S*))?)")


class Traceroute:
    """The tool."""

    name = "traceroute"
    client_at_dst = False

    def server(self, test: Test) -> None:
        """Return None: routers answer by themselves."""

    def ready_line(self) -> bytes:
        """Return nothing: there is no server."""
        return b""

    def command(self, test: Test) -> list[str]:
        """Return the command: one packet a hop, no names."""
        return [
            "traceroute",
            "-n",
            "-q",
            "1",
            "-w",
            str(WAIT_S),
            "-m",
            str(MOST_HOPS),
            test.address,
        ]

    def limit_s(self, test: Test) -> float:  # noqa: ARG002
        """Return the longest duration, where nothing answers."""
        return MOST_HOPS * WAIT_S + 5

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the hops: ``{"hops": 14 | None, "path": [address | None]}``.

        ``hops`` is None where the destination itself did not answer, as behind many firewalls;
        there is no sample then.
        """
        path: list[str | None] = []
        ended = ""
        for line in output.stdout.decode(errors="replace").splitlines():
            if hop := _HOP.match(line):
                path.append(hop[2])
                ended = hop[3] or ""
        if output.status != 0 or not path:
            words = output.last_error_line or "it printed nothing"
            raise ProbeError(test.src.name, "tool", f"traceroute failed: {words}")
        arrived = path[-1] is not None and len(path) < MOST_HOPS and not ended
        detail: dict[str, object] = {"hops": len(path) if arrived else None, "path": path}
        if not arrived:
            return Result((), len(path) * HOP_GB, detail=detail)
        sample = Sample(
            test.src.region,
            test.dst.region,
            "route_hops",
            float(len(path)),
            measured_at_s,
            self.name,
            src_vm=test.src.vm_type,
            dst_vm=test.dst.vm_type,
            detail=json.dumps({"path": path}),
        )
        settled = test.settled(sample, measured_at_s)
        return Result((settled,), len(path) * HOP_GB, detail=detail)
