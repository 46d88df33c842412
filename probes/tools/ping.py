"""ICMP round-trip time, jitter and loss.

One packet goes first and is set apart: it pays for address resolution and cold caches. The rest
is asked for quietly (``-q``), because lines of single replies are rounded to 1 ms above 100 ms
while the summary has microseconds.
"""

from __future__ import annotations

import json
import re

from planner.errors import FormatError
from probes.failures import ProbeError
from probes.importers import ping as importer
from probes.sessions import Output
from probes.tools.interface import Result, Test, only_samples

INTERVAL_S = 0.2
"""The shortest that ping lets anyone but root choose (iputils before 2021)."""
WAIT_S = 2
PACKET_GB = 2 * 98e-9

# $1 address, $2 count, $3 interval, $4 seconds to wait for a reply.
_SCRIPT = """\
ping -n -q -c 1 -W "$4" "$1"
exec ping -n -q -c "$2" -i "$3" -W "$4" "$1"
"""

_FIRST = re.compile(rb"= ([\d.]{1,12})/[\d.]+/[\d.]+/[\d.]+ ms")


class Ping:
    """The tool."""

    name = "ping"
    client_at_dst = False

    def server(self, test: Test) -> None:
        """Return None: every host answers by itself."""

    def ready_words(self) -> bytes:
        """Return nothing: there is no server."""
        return b""

    def command(self, test: Test) -> list[str]:
        """Return the two runs."""
        count = str(self._count(test))
        return ["sh", "-c", _SCRIPT, "ping", test.address, count, str(INTERVAL_S), str(WAIT_S)]

    def limit_s(self, test: Test) -> float:
        """Return how long both runs may take where no reply comes."""
        return 2 * WAIT_S + self._count(test) * INTERVAL_S + 5

    def _count(self, test: Test) -> int:
        return max(3, round(test.duration_s / INTERVAL_S))

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the summary of the second run; see :class:`~probes.tools.interface.Tool`."""
        first, _, second = output.stdout.rpartition(b"PING ")
        if not first.strip():
            words = output.last_words or "it said nothing"
            cause = "missing-tool" if "not found" in words else "tool"
            raise ProbeError(test.src.name, cause, f"ping failed: {words}")  # type: ignore[arg-type]
        options = test.options(measured_at_s)
        try:
            outcomes = list(importer.read(iter([b"PING " + second]), options))
        except FormatError as error:
            raise ProbeError(test.src.name, "output", f"ping: {error.problem}") from None
        # Loss alone is no answer: a filter looks the same.
        found = only_samples(test.src, self.name, outcomes)
        settled = []
        for sample in found:
            detail = json.loads(sample.detail)
            detail.pop("first_included", None)
            if first_ms := _FIRST.search(first):
                detail["first_ms"] = float(first_ms[1])
            settled.append(test.settled(sample, measured_at_s)._replace(detail=json.dumps(detail)))
        return Result(tuple(settled), self._count(test) * PACKET_GB)
