"""Output of ping (Linux iputils, BusyBox, macOS, BSD, Windows) and of tools like it.

These are fping, hping3, tcping, paping and psping. One table says what their lines tell: words are
in any language and encoding; figures, their order and their units are not. ping of Windows writes
whole milliseconds, and less than one as ``<1ms``, which is taken for half of one.

The round-trip time is the median of the replies after the first, which pays for address
resolution and cold caches; quiet output gives only the mean over all. Jitter is the standard
deviation that the tool prints (``mdev``), of the same replies where they are there. Loss is
counted from packets, not from the rounded percentage.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from statistics import median, pstdev
from typing import BinaryIO

from planner.model.errors import FormatError
from probes.importers import limits
from probes.importers.importer import format_table, importer_of, pattern_of
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.text import TOOL_LINE_BYTES, Lines, documents, list_field
from probes.metrics import MAX_RTT_MS
from probes.samples import MAX_TIME_S, MIN_TIME_S, SkippedRow

NO_REPLY = "no reply came back: the host is down, or something filters ICMP (Azure does)"
NO_SUMMARY = "the run was cut off before its summary, so its loss is not known"
NO_TIMES = "replies carry no times (packets too small)"
ODD_COUNTS = "the summary counts more replies than requests, or no request"

_LINES = tuple((tool, pattern_of(line)) for tool, line in format_table()["ping_lines"])
_PATTERNS = {name: pattern_of(line) for name, line in format_table()["ping_patterns"].items()}
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
_TOOLS = {"/stddev": "ping bsd", "/std-dev": "ping bsd", "/mdev": "ping iputils"}
_HEADERS_BYTES = {"ping": 28, "ping6": 48}
"""Of IPv4 or IPv6, and ICMP: RFC 791, RFC 8200, RFC 792."""


@dataclass(slots=True)
class PingRun:
    """One run of ping, as far as it was read."""

    line: int
    host: str = ""
    tool: str = "ping"
    start_s: float | None = None
    replies_ms: array[float] = field(default_factory=lambda: array("d"))
    has_summary: bool = False
    sent: float | None = None
    received: float = 0
    duplicates: int = 0
    summary_ms: tuple[float | None, ...] = ()
    errors: Counter[str] = field(default_factory=Counter)
    step_ms: float = 0.0
    """Of which all figures are multiples; what varies less is not seen."""
    counts_errors: bool = False
    """Whether what routers answer (unreachable) may be among those received."""


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each run in the file.

    Raises a FormatError if there is no output of ping.
    """
    run: PingRun | None = None
    host, recognised, not_sent = "", False, 0
    lines = Lines(stream, options.name, TOOL_LINE_BYTES, errors="replace")
    for number, line in enumerate(lines, start=1):
        line = _COLOUR.sub("", line) if "\x1b" in line else line
        tool, told = _told(line)
        if not told and _PATTERNS["failed"].match(line):
            yield SkippedRow(number, _failure(line))
            recognised, not_sent = True, not_sent + 1
            continue
        header, summary = (
            (None, None)
            if told
            else (_PATTERNS["header"].match(line), _PATTERNS["summary"].match(line))
        )
        is_over = run is None or run.sent is not None or (run.has_summary and not told)
        if header or (is_over and (summary or told)):
            if run:
                yield from outcomes(run, options, not_sent)
                not_sent = 0
            run = PingRun(number)
        if run is None:
            continue
        recognised = True
        run.has_summary |= bool(summary)
        of_header = header and (header[2] or header[1] or header[3])
        found = summary[1] if summary and run.line == number else told.get("host")
        if name := of_header or found:
            host = options.one_host(host, name, number)
        if header and _PATTERNS["bytes_of_data"].match(line):
            run.tool = "ping iputils"
        elif not header:
            _take(run, line, tool, told)
    if run:
        yield from outcomes(run, options, not_sent)
    if not recognised:
        problem = "holds no output of ping that relayd can read"
        remedy = "Give what ping prints, from its first line to its summary."
        raise FormatError(options.name, problem, remedy=remedy)


def read_json(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield what :func:`read` does, of the JSON that fping prints since 5.3 (``-J``)."""
    lines = []
    for _, document in documents(stream, options.name):
        for kind, told in (document or {}).items():
            known = told if isinstance(told, dict) else {}
            listed = " ".join(str(one or "-") for one in list_field(known, "values"))
            template = format_table()["fping_lines"].get(kind.replace("intSum", "summary"), "")
            lines.append(template.format_map(defaultdict(str, known, listed=listed)))
    return read(BytesIO("\n".join([*lines, ""]).encode()), options)


def _told(line: str) -> tuple[str, dict[str, str | None]]:
    """Return the tool whose reply, counts or list a line is, if it tells, and its parts."""
    for tool, pattern in _LINES:
        if found := pattern.match(line):
            return tool, found.groupdict()
    return "", {}


def _take(run: PingRun, line: str, tool: str, named: dict[str, str | None]) -> None:
    """Take up a line of a run; skip lines of no use."""
    if "ms" in named:
        _take_reply(run, tool, named)
    elif "list" in named:
        run.tool, cells = "fping", (named["list"] or "").split()
        found = [limits.number(cell) for cell in cells if cell != "-"]
        run.replies_ms.extend(ms for ms in found if ms and not limits.fault("rtt_ms", ms, ""))
        run.sent, run.received = len(cells), len(found)
    elif named:
        counts = {name: int(cell) for name, cell in named.items() if name != "host" and cell}
        run.received, run.duplicates = counts["received"], counts.get("duplicates", 0)
        run.sent = counts.get("sent", run.received + counts.get("lost", 0))
        run.counts_errors = "lost" in named
        if mean := _PATTERNS["mean"].match(line):  # of fping, on the same line
            mean_ms = limits.number(mean["ms"] or mean["third"])
            run.tool, run.summary_ms = "fping", (None, mean_ms)
    elif times := _PATTERNS["times"].match(line):
        run.summary_ms = tuple(_figure(cell or "") for cell in times.groups()[1:])
        of_ping = run.tool.startswith("ping")
        run.tool = _TOOLS.get(times["deviation"] or "", "ping busybox") if of_ping else run.tool
    elif mean := _PATTERNS["mean"].match(line):
        run.summary_ms = (None, limits.number(mean["ms"] or mean["third"]))
    elif error := _PATTERNS["icmp_error"].search(line):
        run.errors[error[1]] += 1


def _take_reply(run: PingRun, tool: str, named: dict[str, str | None]) -> None:
    if (at := named.get("at")) and run.start_s is None and not run.replies_ms:
        run.start_s = limits.number(at)
    if tool or named["busybox"]:
        run.tool = tool or "ping busybox"
    # A duplicate is the same request answered again, later.
    if "DUP!" in (named.get("rest") or ""):
        return
    value = _figure(named["ms"] or "") or 0.0
    if sign := named.get("sign"):  # of Windows
        run.step_ms, value = 1.0, value / 2 if sign == "<" else value
    if 0 < value <= MAX_RTT_MS:
        run.replies_ms.append(value)


def outcomes(run: PingRun, options: ImportOptions, not_sent: int = 0) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of a run, of whose packets so many never left the host."""
    detail: dict[str, object] = {}
    if run.counts_errors and (run.replies_ms or not run.summary_ms):
        run.received = min(run.received, len(run.replies_ms))
    if run.sent is not None:
        # The summary counts what the host itself refused to send as transmitted.
        run.sent -= min(not_sent, max(0, run.sent - run.received))
        detail |= {"packets": run.sent, "replies": run.received}
    if run.duplicates:
        detail["duplicates"] = run.duplicates
    if run.errors:
        detail["errors"] = run.errors
    is_time = run.start_s and MIN_TIME_S <= run.start_s <= MAX_TIME_S
    start_s = options.start_s(run.start_s if is_time else None)
    if run.sent is None:
        yield SkippedRow(run.line, NO_SUMMARY)
    elif run.sent == 0 and not_sent:
        return  # each error has told why
    elif run.sent == 0 or run.received > run.sent:
        yield SkippedRow(run.line, ODD_COUNTS)
        return
    else:
        lost_pct = 100.0 * (run.sent - run.received) / run.sent
        yield options.sample("loss_pct", lost_pct, start_s, run.tool, detail)
        if run.received == 0:
            yield SkippedRow(run.line, NO_REPLY)
            return
    if run.step_ms:
        detail["step_ms"] = run.step_ms
    rtt_ms, jitter_ms = _times(run, detail)
    if jitter_ms is not None and jitter_ms < run.step_ms:
        jitter_ms = None
    yield from round_trips(run.line, rtt_ms, jitter_ms, start_s, run.tool, detail, options)


def round_trips(
    line: int,
    rtt_ms: float | None,
    jitter_ms: float | None,
    at_s: float,
    tool: str,
    detail: Mapping[str, object],
    options: ImportOptions,
    column: str = "rtt",
) -> Iterator[ImportedRow]:
    """Yield RTT and jitter, or the reason why there are none."""
    if rtt_ms is None:
        yield SkippedRow(line, NO_TIMES)
    elif problem := limits.fault("rtt_ms", rtt_ms, column):
        yield SkippedRow(line, problem)
    else:
        yield options.sample("rtt_ms", rtt_ms, at_s, tool, detail)
        if jitter_ms is not None and not limits.fault("jitter_ms", jitter_ms, ""):
            yield options.sample("jitter_ms", jitter_ms, at_s, tool, detail)


def _times(run: PingRun, detail: dict[str, object]) -> tuple[float | None, float | None]:
    """Return RTT and jitter in ms; None where no reply carried a time."""
    names = ("min_ms", "avg_ms", "max_ms", "mdev_ms")
    printed = dict(zip(names, run.summary_ms, strict=False))
    detail |= {name: value for name, value in printed.items() if value is not None}
    later = run.replies_ms[1:]
    if later:
        detail |= {"first_ms": run.replies_ms[0], "median_of": len(later)}
        return median(later), pstdev(later) if len(later) >= 2 else None
    rtt_ms = printed.get("avg_ms")
    if rtt_ms is None and run.replies_ms:
        rtt_ms = run.replies_ms[0]
    if rtt_ms is not None:
        detail["first_included"] = True
    return rtt_ms, printed.get("mdev_ms") if run.received >= 2 else None


def _figure(cell: str) -> float | None:
    """Read a figure; some locales print a decimal comma, and ping never groups digits."""
    if "," in cell and cell.count(",") == 1:
        cell = cell.replace(",", ".")
    return limits.number(cell)


def _failure(line: str) -> str:
    tool, _, text = line.partition(": ")
    if known := _PATTERNS["mtu"].search(line):
        mtu = int(known[1])
        size = mtu - _HEADERS_BYTES.get(tool, 28)
        return f"message too long: the MTU here is {mtu}; ping with -s {size} or less"
    if _PATTERNS["too_long"].search(line):
        return "message too long for the path, which may not divide it: ping with a smaller size"
    for parts, meaning in format_table()["ping_failures"]:
        if re.search(parts, text.lower()):
            return f"ping failed: {meaning}"
    return f"ping failed: {(text or line).strip()[:80]}"


IMPORTER = importer_of("ping", {"": read, "json": read_json})
