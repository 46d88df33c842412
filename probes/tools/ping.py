"""ICMP round-trip time, jitter and loss.

One packet goes first and is set apart: it pays for address resolution and cold caches. Of the
rest, the median counts: a busy machine delays some. Lines of single replies are rounded, to 1 ms
above 100 ms, while the summary's mean has microseconds; so the value is the mean, held within
what the median was rounded from.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any

from planner.model.errors import FormatError
from probes.fleet.failures import ProbeError
from probes.fleet.session import Output
from probes.importers import ping as importer
from probes.samples import Sample
from probes.tools.interface import Result, Test, only_samples

INTERVAL_S = 0.2
"""The shortest that ping lets anyone but root choose (iputils before 2021)."""
WAIT_S = 2
ROUNDING_MS = ((100.0, 0.5), (10.0, 0.05), (1.0, 0.005))
"""From which round-trip time on a printed one may be off by how much."""
PACKET_GB = 2 * 98e-9

# $1 address, $2 count, $3 interval, $4 seconds to wait for a reply.
_SCRIPT = """\
ping -n -q -c 1 -W "$4" "$1"
exec ping -n -c "$2" -i "$3" -W "$4" "$1"
"""

_FIRST = re.compile(rb"= ([\d.]{1,12})/[\d.]+/[\d.]+/[\d.]+ ms")


class Ping:
    """The tool."""

    name = "ping"
    client_at_dst = False

    def server(self, test: Test) -> None:
        """Return None: every host answers by itself."""

    def ready_line(self) -> bytes:
        """Return nothing: there is no server."""
        return b""

    def command(self, test: Test) -> list[str]:
        """Return the two runs."""
        count = str(self._count(test))
        return ["sh", "-c", _SCRIPT, "ping", test.address, count, str(INTERVAL_S), str(WAIT_S)]

    def limit_s(self, test: Test) -> float:
        """Return the longest duration of both runs, without any reply."""
        return 2 * WAIT_S + self._count(test) * INTERVAL_S + 5

    def sent_gb(self, test: Test) -> float:
        """Return what both runs send, replies included."""
        return (1 + self._count(test)) * PACKET_GB

    def _count(self, test: Test) -> int:
        return max(3, round(test.duration_s / INTERVAL_S))

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the summary of the second run; see :class:`~probes.tools.interface.Tool`."""
        first, _, second = output.stdout.rpartition(b"PING ")
        if not first.strip():
            words = output.last_error_line or "it printed nothing"
            cause = "missing-tool" if "not found" in words else "tool"
            raise ProbeError(test.src.name, cause, f"ping failed: {words}")  # type: ignore[arg-type]
        options = test.options(measured_at_s)
        try:
            outcomes = list(importer.read(BytesIO(b"PING " + second), options))
        except FormatError as error:
            raise ProbeError(test.src.name, "output", f"ping: {error.problem}") from None
        # Loss alone is no result: a filter has the same effect.
        found = only_samples(test.src, self.name, outcomes)
        settled = []
        for sample in found:
            detail = sample.read_detail()
            detail.pop("first_included", None)
            if first_ms := _FIRST.search(first):
                detail["first_ms"] = float(first_ms[1])
            exact = sample._replace(value=_precise(sample, detail), detail=json.dumps(detail))
            settled.append(test.settled(exact, measured_at_s))
        return Result(tuple(settled), self.sent_gb(test))


def _precise(sample: Sample, detail: dict[str, Any]) -> float:
    """Return a sample's value without the rounding of single replies."""
    if sample.metric == "jitter_ms":
        return float(detail.get("mdev_ms", sample.value))
    if sample.metric != "rtt_ms" or "avg_ms" not in detail:
        return sample.value
    # iputils prints three figures.
    half_ms = next((half for over, half in ROUNDING_MS if sample.value >= over), 0.0005)
    return min(max(float(detail["avg_ms"]), sample.value - half_ms), sample.value + half_ms)
