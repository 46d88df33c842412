"""nuttcp (6 or newer): TCP with one or more streams; the receiver's count.

The server runs in one-shot mode and prints nothing when it listens. Streams use one data port
each, from the port after the control port on. It can't leave out a warm-up, so the first intervals
are left out here; the last one is part of the total only.
"""

from __future__ import annotations

import re
from io import BytesIO

from planner.model.errors import FormatError
from probes.analysis.steady_state import Interval
from probes.fleet.failures import ProbeError
from probes.fleet.remote import Output
from probes.importers import nuttcp as importer
from probes.tools.interface import Result, Test, Tool, failure, only_samples

_TOTALS = re.compile(rb"(?m)^(?=.*\breal_seconds=).*?\bmegabytes=(\S+)")


class Nuttcp(Tool):
    """The tool."""

    name = "nuttcp"

    def server(self, test: Test) -> list[str]:
        """Return a server that ends after one test."""
        return ["nuttcp", "-1", "--nofork", "-P", str(test.port)]

    def command(self, test: Test) -> list[str]:
        """Return the client's command."""
        command = ["nuttcp", "-fparse", f"-i{test.interval_s:g}"]
        command.append(f"-T{max(1, round(test.duration_s + test.omit_s))}")
        command += [f"-N{test.connections}", "-P", str(test.port), "-p", str(test.port + 1)]
        if test.window_bytes:
            command.append(f"-w{max(1, test.window_bytes // 1024)}k")
        if test.held_to_mbps:
            command.append(f"-R{max(1, int(test.held_to_mbps * 1e3))}k")
        return [*command, test.address]

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read its lines; see :class:`~probes.tools.interface.Tool`."""
        text = output.stdout
        if output.status != 0 or not text.strip():
            raise failure(test.src, self.name, output.last_error_line)
        try:
            outcomes = list(importer.read(BytesIO(text), test.options(measured_at_s)))
        except FormatError as error:
            raise ProbeError(test.src.name, "output", f"nuttcp: {error.problem}") from None
        found = only_samples(test.src, self.name, outcomes)
        sent_gb = sum(map(float, _TOTALS.findall(text))) * 2**20 / 1e9
        settled = tuple(test.settled(s, measured_at_s) for s in found)
        return Result(settled, sent_gb, _intervals(text, test.omit_s))


def _intervals(text: bytes, omit_s: float) -> tuple[Interval, ...]:
    """Return the intervals after the warm-up; the total's line says ``real_seconds``."""
    found, passed_s = [], 0.0
    for line in text.decode(errors="replace").splitlines():
        is_final, seconds, mbps, _ = importer.figures_in(line) or (True, None, None, {})
        if is_final or not seconds or mbps is None or seconds < 0 or mbps < 0:
            continue
        passed_s += seconds
        if passed_s > omit_s + seconds / 2:
            found.append(Interval(seconds, mbps))
    return tuple(found)
