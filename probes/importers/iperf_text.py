"""Text output of iperf 2 and iperf 3, of the client or the server, with or without intervals.

Each test becomes the document that ``iperf3 -J`` would have written, and is read as that. Text has
figures of three digits, which is at most 0.5 % off. iperf 2 gives a TCP client no figure of the
receiver: the client's own is taken, with the bytes in its send buffer at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT
from probes.importers import limits
from probes.importers.importer import format_table, importer_of, pattern_of
from probes.importers.iperf3 import explained, rows_of
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.tables import factor_of
from probes.importers.text import TOOL_LINE_BYTES, Lines, time_s
from probes.metrics import RATE

CUT_OFF = "no summary of the test: it was cut off"
SAME_START_S = 2.0
"""Rows of one test begin together: their times are whole seconds."""
_LINES = {name: pattern_of(line) for name, line in format_table()["iperf_lines"].items()}


@dataclass(slots=True)
class _TestText:
    """One test, as far as it was read."""

    line: int
    is_iperf3: bool
    is_client: bool = True
    peer: str = ""
    udp: bool = False
    start: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    streams: set[str] = field(default_factory=set)
    rows: list[dict[str, Any]] = field(default_factory=list)
    both_ways: bool = False
    connect_ms: list[float] = field(default_factory=list)
    server_report: bool = False

    def document(self) -> dict[str, Any] | str:
        """Return the document that ``-J`` would have written, or the reason why there is none."""
        if self.both_ways:
            return "both directions at once: the text does not keep them apart (use -J)"
        streams = self.streams | {row["id"] for row in self.rows} - {"SUM"}
        several = len(streams) > 1
        rows = [row for row in self.rows if (row["id"] == "SUM") == several]
        if not rows:
            return "several streams without a [SUM] row" if self.rows else CUT_OFF
        sent, received = self._totals(rows)
        if received is None and sent is None:
            return CUT_OFF
        intervals = [row for row in rows if not row["side"] and row not in (sent, received)]
        side = "connecting_to" if self.is_client else "accepted_connection"
        return {
            "tool": "iperf3" if self.is_iperf3 else "iperf2",
            "start": {
                **self.start,
                side: {"host": self.peer},
                "test_start": {
                    "protocol": "UDP" if self.udp else "TCP",
                    "num_streams": len(streams),
                    "omit": float(any(row["omitted"] for row in rows)),
                    **self.settings,
                },
            },
            "intervals": [{"sum": row} for row in intervals],
            "end": {
                "sum_sent": sent,
                "sum_received": received,
                "sum": received or sent,
                "streams": [{"sender": {"min_rtt": 1e3 * ms}} for ms in self.connect_ms],
            },
        }

    def _totals(
        self, rows: list[dict[str, Any]]
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return the rows of the whole test, as sent and as received."""
        if self.is_iperf3:
            by_side = {row["side"]: row for row in rows}
            return by_side.get("sender"), by_side.get("receiver")
        reported = next((row for row in rows if row["side"] == "receiver"), None)
        last = next((row for row in reversed(rows) if not row["side"]), None)
        if last is None or last["begin_s"] or (self.is_client and self.udp and not reported):
            return None, reported
        return (last, reported or last) if self.is_client else (None, last)


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each test in the file."""
    return rows_of(_tests(Lines(stream, options.name, TOOL_LINE_BYTES), options.name), options)


def read_csv(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each test in CSV of iperf 2."""
    return rows_of(_csv_tests(Lines(stream, options.name, TOOL_LINE_BYTES)), options)


def _csv_tests(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each test of iperf 2's CSV (``-y C``) as one document; times without a zone are UTC.

    A line is an interval of a stream, or of all streams (-1), to the time that it names; the last
    of a test is its total. Lines with jitter are of UDP, where a server's report follows the
    client's count. A test whose server is at the other end than the first one's (``-r``) flows
    back.
    """
    test: _TestText | None = None
    begun_s, back, ends, first = 0.0, False, [""] * 4, [""] * 4
    for number, line in enumerate(lines, start=1):
        found = _csv_row(line)
        if found is None:
            if line.strip() and not line.startswith("time,"):
                yield number, "not a row of iperf 2's CSV of a TCP test"
            continue
        printed_s, (src, port, dst, to_port), row = found
        first = first if first[1] else [src, port, dst, to_port]
        is_back = port == first[3] != to_port or to_port == first[1] != port
        start_s = printed_s - row["begin_s"] - row["seconds"]
        if test and "jitter_ms" in row and [dst, src] == ends[::2]:
            test.udp, test.server_report, row["side"] = True, True, "receiver"
        elif test is None or abs(start_s - begun_s) > SAME_START_S or ends[2] != dst:
            if test:
                yield test.line, test.document()
            test = _TestText(number, is_iperf3=False, peer=dst, udp="jitter_ms" in row)
            test.start = {"timestamp": {"timesecs": printed_s}, "version": ""}
            test.settings["reverse"] = float(is_back)
            begun_s, back, ends = start_s, is_back, [src, port, dst, to_port]
        else:
            test.both_ways |= is_back != back
        test.rows.append(row)
    if test:
        yield test.line, test.document()


def _csv_row(line: str) -> tuple[float, list[str], dict[str, Any]] | None:
    """Return a line's time in seconds since 1970, its ends and figures; None if it is no row."""
    cells = line.strip().split(",")
    cells[6:7] = cells[6].split("-") if len(cells) > 6 else []
    at, figures = (
        _LINES["csv_time"].fullmatch(cells[0]),
        [limits.number(cell) for cell in cells[6:]],
    )
    if at is None or len(figures) < 4 or any(one is None or one < 0 for one in figures[:4]):
        return None
    try:
        printed = datetime.strptime(at[2] + (at[1] or at[3] or "+0000"), "%Y%m%d%H%M%S%z")
    except ValueError:
        return None
    begin_s, end_s, moved, bps, *rest = (one or 0.0 for one in figures)
    row = {
        "id": "SUM" if cells[5] == "-1" else cells[5],
        "begin_s": begin_s,
        "side": "",
        "omitted": False,
        "seconds": end_s - begin_s,
        "bytes": moved,
        "bits_per_second": bps,
    }
    if len(rest) >= 5 and "." in cells[10] and "." in cells[13]:
        row |= {"jitter_ms": rest[0], "lost_percent": max(0.0, rest[3])}
    return printed.timestamp(), cells[1:5], row


def _tests(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each test as one document, or a reason to leave it out."""
    test: _TestText | None = None
    version, start, listening, recognised = "", dict[str, Any](), "", False
    early = set[str]()
    for number, line in enumerate(lines, start=1):
        if (error := _LINES["error"].match(line)) and not (test and test.rows):
            problem = explained(error[1] or error[2]).replace("iperf3", "iperf")
            yield test.line if test else number, problem
            test, recognised = None, True
        elif found := _LINES["version"].match(line):
            version = f"iperf {found[1]}"
        elif line.startswith("Time: ") and (at_s := time_s(line[6:])):
            start = {"timestamp": {"timesecs": at_s}}
        elif found := _LINES["listening"].match(line):
            listening = found[1]
        elif found := _LINES["client"].match(line) or _LINES["server"].match(line):
            if test:
                yield test.line, test.document()
            is_iperf3 = not line.startswith("Client")
            test = _TestText(number, is_iperf3, not line.startswith("Accepted"), found[1])
            test.udp = ", UDP port" in line
            test.start = {"version": version, **start}
            test.streams |= early
            recognised, start, early = True, {}, set()
        elif found := _LINES["stream"].match(line):
            # On a busy machine, threads of iperf 2 print this before the header of their next test,
            # and a server of iperf 2 prints nothing else when the next test begins.
            is_next = test is None or bool(not test.is_iperf3 and test.rows)
            if is_next and not listening and (test is None or test.is_client):
                early.add(found[1])
                start = _start(found) or start
                continue
            if test is None or (is_next and not test.is_client):
                if test:
                    yield test.line, test.document()
                test = _TestText(number, is_iperf3=False, is_client=False, peer=found[2])
                test.udp = listening == "UDP"
            recognised = True
            test.streams.add(found[1])
            test.start |= _start(found)
            if connect := _LINES["connect_time"].search(found[3]):
                test.connect_ms.append(float(connect[1]))
        elif test:
            _take(test, line)
    if test:
        yield test.line, test.document()
    if not recognised:
        problem = "holds no text output of iperf 2 or iperf 3"
        raise FormatError(name, problem, remedy="Of `iperf3 -J`, use `relayd import iperf3`.")


def _start(stream: re.Match[str]) -> dict[str, Any]:
    """Return the time at which a stream began, which iperf 2 prints with -e."""
    moment = _LINES["on"].search(stream[3])
    return {"timestamp": {"timesecs": time_s(moment[1])}} if moment else {}


def _take(test: _TestText, line: str) -> None:
    """Take up a line of a test that has begun."""
    if row := _LINES["row"].match(line):
        test.both_ways |= row[2] is not None
        _take_row(test, row)
    elif line.endswith("Server Report:"):
        test.server_report = True
    elif line.startswith("Reverse mode"):
        test.settings["reverse"] = 1
    elif found := _LINES["omitting"].match(line):
        test.settings["omit"] = float(found[1])
    elif found := re.match(r" +Target Bitrate: (\d{1,15})$", line):
        test.settings["target_bitrate"] = float(found[1])
    elif found := re.match(r" +Cookie: (\S{1,80})$", line):
        test.start["cookie"] = found[1]
    elif found := _LINES["paced"].match(line):
        bps = float(found[1]) * 1e3 ** "_KMGT".index(found[2] or "_")
        bps *= BITS_PER_BYTE if found[3] == "Byte" else 1
        test.settings["fqrate"] = bps
    elif found := _LINES["window"].match(line):
        test.start["sock_bufsize"] = float(found[1]) * 1024 ** "_KMG".index(found[2] or "_")
    elif "Datagrams" in line:
        test.udp = True


def _take_row(test: _TestText, row: re.Match[str]) -> None:
    begin_s, end_s = float(row[3]), float(row[4])
    bps = float(row[5]) * (factor_of(row[6] + row[7], RATE) or 0.0) * BITS_PER_MBIT
    side = next((word for word in ("sender", "receiver") if row[8].rstrip().endswith(word)), "")
    taken: dict[str, Any] = {
        "id": row[1],
        "begin_s": begin_s,
        "side": "receiver" if test.server_report else side,
        "omitted": "(omitted)" in row[8],
        "seconds": end_s - begin_s,
        "bits_per_second": bps,
        "bytes": bps * (end_s - begin_s) / 8,
    }
    if found := _LINES["datagrams"].search(row[8]):
        jitter, lost, total = float(found[1]), int(found[2]), int(found[3])
        taken |= {"jitter_ms": jitter, "lost_percent": 100 * lost / total if total else None}
    if found := _LINES["retransmits"].match(row[8]):
        taken["retransmits"] = int(found[1])
    test.rows.append(taken)


IMPORTER = importer_of("iperf", {"": read, "csv": read_csv})
