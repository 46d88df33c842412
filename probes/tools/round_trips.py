"""Round-trip times and routes, from one host alone: ping, TCP's handshake and traceroute."""

from __future__ import annotations

import json
import re
from io import BytesIO
from statistics import median, pstdev
from typing import Any

from planner.model.errors import FormatError
from probes.fleet.failures import Cause, ProbeError
from probes.fleet.remote import Output
from probes.importers import limits
from probes.importers import ping as importer
from probes.metrics import Metric
from probes.samples import Sample
from probes.tools.interface import Result, Test, Tool, only_samples

INTERVAL_S = 0.2
"""The shortest that ping allows users other than root (iputils before 2021)."""
WAIT_S = 2
ROUNDING_MS = ((100.0, 0.5), (10.0, 0.05), (1.0, 0.005))
"""Round-trip times from which on a printed one is rounded, and the error of that."""
PACKET_GB = 2 * 98e-9
"""An echo request of 64 bytes with IP and Ethernet headers, and as much for the reply."""

# $1 address, $2 count, $3 interval, $4 seconds to wait for a reply.
_SCRIPT = """\
ping -n -q -c 1 -W "$4" "$1"
exec ping -n -c "$2" -i "$3" -W "$4" "$1"
"""

_FIRST = re.compile(rb"= ([\d.]{1,12})/[\d.]+/[\d.]+/[\d.]+ ms")


class Ping(Tool):
    """ICMP round-trip time, jitter and loss.

    One packet goes first and is set apart: it pays for address resolution and cold caches. Of the
    rest, the median counts: a busy machine delays some. Lines of single replies are rounded, to
    1 ms above 100 ms, while the summary's mean has microseconds; so the value is the mean, held
    within the rounding of the median.
    """

    name = "ping"

    def command(self, test: Test) -> list[str]:
        """Return the two runs."""
        count = str(self._count(test))
        return ["sh", "-c", _SCRIPT, "ping", test.address, count, str(INTERVAL_S), str(WAIT_S)]

    def limit_s(self, test: Test) -> float:
        """Return the longest duration of both runs, without any reply."""
        return 2 * WAIT_S + self._count(test) * INTERVAL_S + 5

    def sent_gb(self, test: Test) -> float:
        """Return the volume of both runs, replies included."""
        return (1 + self._count(test)) * PACKET_GB

    def _count(self, test: Test) -> int:
        return max(3, round(test.duration_s / INTERVAL_S))

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the second run, or raise a ProbeError; see :class:`~probes.tools.interface.Tool`."""
        first, _, second = output.stdout.rpartition(b"PING ")
        if not first.strip():
            words = output.last_error_line or "it printed nothing"
            cause: Cause = "missing-tool" if "not found" in words else "tool"
            raise ProbeError(test.src.name, cause, f"ping failed: {words}")
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


# ---- TCP ---------------------------------------------------------------------------------------

HANDSHAKE_WAIT_S = 1.0
HANDSHAKE_GB = 4 * 66e-9

# Handshakes with all addresses at once: count, seconds to wait, then address and port in turn.
# Prints an address and milliseconds for each answer.
HANDSHAKES = """\
import errno, selectors, socket, sys, time
count, wait_s, places = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
for _ in range(count):
    chosen, began = selectors.DefaultSelector(), {}
    for address, port in zip(places[::2], places[1::2]):
        try:
            family, kind, _, _, place = socket.getaddrinfo(address, int(port), type=1)[0]
            s = socket.socket(family, kind)
            s.setblocking(False)
            began[s] = (address, time.perf_counter())
            error = s.connect_ex(place)
        except OSError:
            continue
        if error in (0, errno.EINPROGRESS, errno.ECONNREFUSED):
            chosen.register(s, selectors.EVENT_WRITE)
    until = time.perf_counter() + wait_s
    while chosen.get_map() and time.perf_counter() < until:
        for key, _ in chosen.select(max(0.0, until - time.perf_counter())):
            s = key.fileobj
            ms = (time.perf_counter() - began[s][1]) * 1e3
            chosen.unregister(s)
            error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error in (0, errno.ECONNREFUSED):
                print(began[s][0], f'{ms:.3f}', flush=True)
    for s in began:
        s.close()
"""


class TcpConnect(Tool):
    """Round-trip time of TCP's handshake, for where ICMP is filtered (as on Azure).

    A refusal takes a round trip as well as an acceptance, so nothing needs to listen at the port;
    but it must not be filtered. The host needs Python 3, which images of all clouds have.
    """

    name = "python3"

    def command(self, test: Test) -> list[str]:
        """Return the program with its arguments; isolated from the host's own modules."""
        settings = [str(self._count(test)), f"{HANDSHAKE_WAIT_S:g}"]
        return ["python3", "-I", "-c", HANDSHAKES, *settings, test.address, str(test.port)]

    def limit_s(self, test: Test) -> float:
        """Return the longest duration, where nothing answers."""
        return self._count(test) * HANDSHAKE_WAIT_S + 5

    def _count(self, test: Test) -> int:
        return max(5, round(test.duration_s / 0.2))

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the times, or raise a ProbeError; see :class:`~probes.tools.interface.Tool`."""
        lines = output.stdout.decode(errors="replace").splitlines()
        found = (limits.number(line.rpartition(" ")[2]) for line in lines)
        times_ms = [ms for ms in found if ms is not None]
        if output.status == 0 and not times_ms:
            problem = f"neither ping nor TCP port {test.port} of {test.dst.name} answers"
            remedy = "Let ICMP or the probe ports through between the fleet's hosts."
            raise ProbeError(test.src.name, "filtered", problem, remedy)
        if output.status != 0 or len(times_ms) < 3:
            words = output.last_error_line or "too few answers"
            raise ProbeError(test.src.name, "tool", f"the TCP round-trip test failed: {words}")
        later = times_ms[1:]
        rtt_ms = median(later)
        if problem := limits.fault("rtt_ms", rtt_ms, "the round-trip time"):
            raise ProbeError(test.src.name, "output", problem)
        detail: dict[str, object] = {
            "first_ms": times_ms[0],
            "median_of": len(later),
            "min_ms": min(later),
            "max_ms": max(later),
            "port": test.port,
        }
        figures: dict[Metric, float] = {"rtt_ms": rtt_ms, "jitter_ms": pstdev(later)}
        samples = tuple(
            test.sample(metric, value, "tcp-connect", measured_at_s, detail)
            for metric, value in figures.items()
        )
        return Result(samples, self._count(test) * HANDSHAKE_GB)


# ---- the route ---------------------------------------------------------------------------------

MOST_HOPS = 40
HOP_WAIT_S = 1.0
HOP_GB = 74e-9 + 110e-9
"""A packet of 60 bytes and a router's answer, with Ethernet headers."""

_HOP = re.compile(r"\s*(\d{1,3})\s+(?:\*|(\S+)\s+[\d.]+ ms(?:\s+(!\S*))?)")


class Traceroute(Tool):
    """The route that packets take: number of hops and their addresses."""

    name = "traceroute"

    def command(self, test: Test) -> list[str]:
        """Return the command: one packet a hop, no names."""
        options = f"-n -q 1 -w {HOP_WAIT_S} -m {MOST_HOPS}"
        return ["traceroute", *options.split(), test.address]

    def limit_s(self, test: Test) -> float:  # noqa: ARG002
        """Return the longest duration, where nothing answers."""
        return MOST_HOPS * HOP_WAIT_S + 5

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the hops: ``{"hops": 14 | None, "path": [address | None]}``.

        ``hops`` is None where the destination itself did not answer, as behind many firewalls;
        there is no sample then.

        Raises a ProbeError if the tool failed, or printed no hop.
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
        hops = float(len(path))
        sample = test.sample("route_hops", hops, self.name, measured_at_s, {"path": path})
        return Result((sample,), len(path) * HOP_GB, detail=detail)
