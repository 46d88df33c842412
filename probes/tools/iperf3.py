"""iperf3 (3.7 or newer): TCP with 1 to 128 streams, UDP at a stated rate.

The client runs where the data arrives (``-R``), so that one document holds the receiver's own
intervals; the figures of a sender count bytes still in its buffers. ``-J`` lets some failures
exit 0, so the document's ``error`` decides. A server runs one test at a time: each test has a
server of its own (``-1``) on a port of its own.
"""

from __future__ import annotations

from io import BytesIO
from math import inf
from typing import Any

from planner.model.errors import FormatError, InputError
from probes.fleet.failures import ProbeError
from probes.fleet.remote import Output
from probes.importers.iperf3 import NOISE, explained, intervals_of, samples_of_test
from probes.importers.text import documents, list_field, number_field
from probes.tools import MOST_STREAMS
from probes.tools.interface import LARGEST_PIECE_BYTES, Result, Test, Tool, failure, only_samples

CONNECT_TIMEOUT_MS = 5_000
LONGEST_ROUND_TRIP_S = 0.5
SMALLEST_PIECE_BYTES = 1_448
PACING_US = 10_000
"""Timer of a sender with a rate limit."""


class Iperf3(Tool):
    """The tool."""

    name = "iperf3"
    client_at_dst = True
    ready_line = b"Server listening"

    def server(self, test: Test) -> list[str]:
        """Return a server that ends after one test."""
        return ["iperf3", "-s", "-1", "--forceflush", "-p", str(test.port)]

    def command(self, test: Test) -> list[str]:
        """Return the client's command; raises an InputError for no or too many streams."""
        if not 1 <= test.connections <= MOST_STREAMS:
            problem = f"must be between 1 and {MOST_STREAMS}: iperf3 has no more streams"
            raise InputError("connections", problem, value=test.connections)
        command = ["iperf3", "-c", test.address, "-p", str(test.port), "-J", "-R"]
        command += ["-t", str(max(1, round(test.duration_s))), "-P", str(test.connections)]
        command += ["--connect-timeout", str(CONNECT_TIMEOUT_MS)]
        command += ["-i", f"{test.interval_s:g}"]
        if test.omit_s:
            command += ["-O", str(max(1, round(test.omit_s)))]
        if test.window_bytes:
            command += ["-w", str(test.window_bytes)]
        if test.congestion_control:
            command += ["-C", test.congestion_control]
        limit_mbps = test.held_to_mbps
        if test.udp_mbps:
            offered_mbps = min(test.udp_mbps, limit_mbps or inf)
            command += ["-u", "-b", str(round(offered_mbps * 1e6 / test.connections))]
            if test.udp_bytes:
                command += ["-l", str(test.udp_bytes)]
        elif limit_mbps:
            # In pieces of a fiftieth of a second: iperf3 writes whole ones. (Its --fq-rate has no
            # effect on a sender that is the server.)
            each_bps = round(limit_mbps * 1e6 / test.connections)
            piece = min(LARGEST_PIECE_BYTES, max(SMALLEST_PIECE_BYTES, each_bps // 400))
            command += ["-b", str(each_bps), "-l", str(piece)]
            command += ["--pacing-timer", str(PACING_US)]
        return command

    def limit_s(self, test: Test) -> float:
        """Return the longest duration: connections are opened one after the other."""
        return super().limit_s(test) + test.connections * LONGEST_ROUND_TRIP_S

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the JSON document; see :class:`~probes.tools.interface.Tool`."""
        document = read_document(output, test)
        if "error" in document:
            raise failure(test.dst, self.name, explained(document["error"]))
        options = test.options(measured_at_s, client_at_dst=True)
        found = only_samples(test.dst, self.name, list(samples_of_test(1, document, options)))
        if output.status != 0:
            raise failure(test.dst, self.name, output.last_error_line)
        return Result(
            tuple(test.settled(sample, measured_at_s) for sample in found),
            _moved_gb(document),
            tuple(intervals_of(document)),
        )


def read_document(output: Output, test: Test) -> dict[str, Any]:
    """Return the JSON document that a client wrote; it may report a failure.

    Raises ProbeError if there is none, or not all of it.
    """
    try:
        for _, document in documents(
            BytesIO(output.stdout), "its output", NOISE, keep_repeated=True
        ):
            if document is not None:
                return document
    except FormatError:
        raise ProbeError(test.dst.name, "output", "iperf3's document is cut off") from None
    raise failure(test.dst, "iperf3", output.last_error_line)


def _moved_gb(document: dict[str, Any]) -> float:
    """Return the volume of all intervals; the totals leave out those that were omitted."""
    moved = 0.0
    for interval in list_field(document, "intervals"):
        moved += number_field(interval, "sum", "bytes") or 0.0
    totals = (number_field(document, "end", side, "bytes") for side in ("sum_sent", "sum"))
    return max([moved, *(total or 0.0 for total in totals)]) / 1e9
