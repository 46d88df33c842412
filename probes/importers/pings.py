"""Round trips of tools like ping: fping, hping3, tcping, paping, psping, and ping of Windows.

One table says what their lines tell. Words are in the system's language and encoding; figures,
their order and their units are not. ping of Windows writes whole milliseconds, and less than one
as ``<1ms``, which is taken for half of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from probes.importers import limits
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import MAX_LINE_BYTES, PingRun, one_host, outcomes
from probes.importers.text import Lines
from probes.samples import Skipped

NO_RUN = "no reply and no summary: the run was cut off, or its host does not answer"

_HOST, _MS = r"(?P<host>[^\s:\[\]]\S{0,200}?)", r"(?P<ms>\d{1,9}(?:[.,]\d{1,9})?)"
_IPV4, _IPV6 = r"\d{1,3}(?:\.\d{1,3}){3}", r"[\da-fA-F]{0,4}:[\da-fA-F:]{1,40}(?:%\w{1,20})?"
_WHOLE_MS = r"(?P<sign>[=<])\s?(?P<ms>\d{1,9})\s?[^\s\d=<]{1,8}"
_REPLIES = tuple(
    (tool, re.compile(pattern))
    for tool, pattern in (
        ("fping", rf"(?:\[(?P<at>\d{{9,10}}\.\d+)\] )?{_HOST} +: \[\d+\], \d+ bytes, {_MS} ms"),
        ("fping", rf"{_HOST} is alive \({_MS} ms\)"),
        ("hping3", rf".*\bip={_HOST} .*\bseq=\d+ .*\brtt={_MS} ms"),
        ("tcping", rf"Probing {_HOST}:\d+/tcp - Port is open - time={_MS} ?ms"),
        ("tcping", rf"Ping tcp://{_HOST}:\d+\S* connected - time={_MS} ?ms"),
        ("tcping", rf"Reply from {_HOST} (?:\(\S+\) )?on port \d+ .*time={_MS} ?ms"),
        ("tcping", rf"seq \d+: tcp response from {_HOST} .*\[open\] +{_MS} ms"),
        ("paping", rf"Connected to {_HOST}:? time={_MS}ms protocol="),
        ("psping", rf"Connecting to {_HOST}:\d+: from \S+ {_MS}ms"),
        ("psping", rf"Reply from {_HOST}: {_MS}ms"),
        ("ping windows", rf"(?=\S).{{0,80}}?(?P<host>{_IPV4}).*{_WHOLE_MS} TTL=\d+\s*$"),
        ("ping windows", rf"\S.{{0,80}}?(?P<host>{_IPV6}): .*{_WHOLE_MS}\s*$"),
    )
)
_COUNTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_HOST} +: xmt/rcv/%\w+ = (?P<sent>\d{{1,9}})/(?P<received>\d{{1,9}})/",
        r"(?P<sent>\d{1,9}) packets tra\w+, (?P<received>\d{1,9}) packets received",
        r"(?P<sent>\d{1,9}) (?:\w+ )?probes transmitted .*\| (?P<received>\d{1,9}) received",
        r"(?P<sent>\d{1,9}) probes sent, (?P<received>\d{1,9}) successful",
        r"\s+(?P<received>\d{1,9}) successful, (?P<lost>\d{1,9}) failed",
        r"[^=]*= (?P<sent>\d{1,9})(?![\w.])[^=\d]+= (?P<received>\d{1,9})(?![\w.])"
        r"[^=\d]+= \d{1,9}(?![\w.])",
    )
)
_MEAN = re.compile(
    r".*min/avg/max[^\d=:]*[=:] *[\d.]+\w*/(?P<ms>[\d.]{1,20})|"
    r"[^=]*= *[\d.]+ *m?s[^=\d]+= *[\d.]+ *m?s[^=\d]+= *(?P<third>[\d.]{1,20}) *m?s"
)
_LIST = re.compile(rf"{_HOST} +: (?P<list>(?:[\d.]+|-)(?: (?:[\d.]+|-))*)\s*$")
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
HALF_MS = 0.5


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each run in the file."""
    run, host, runs = None, "", 0
    lines = Lines(stream, options.name, MAX_LINE_BYTES, errors="replace")
    for number, text in enumerate(lines, start=1):
        line = _COLOUR.sub("", text)
        reply = next(((tool, m) for tool, one in _REPLIES if (m := one.match(line))), None)
        counts = next((m for one in _COUNTS if (m := one.match(line))), None)
        listed = _LIST.match(line)
        if counts is None and reply is None and listed is None:
            if run and (mean := _MEAN.match(line)):
                run.summary_ms = (None, limits.number(mean["ms"] or mean["third"]))
            continue
        if run is None or run.sent is not None:
            if run:
                yield from _outcomes(run, options)
            run, runs = PingRun(number), runs + 1
        found = reply[1] if reply else counts or listed
        if found and (named := found.groupdict().get("host")):
            host = one_host(host, named, number, options)
        if reply:
            _take(run, *reply)
        elif listed:
            run.tool, cells = "fping", listed["list"].split()
            run.replies_ms.extend(limits.number(cell) or 0.0 for cell in cells if cell != "-")
            run.sent, run.received = len(cells), len(run.replies_ms)
        elif counts:
            told = {name: int(cell) for name, cell in counts.groupdict().items() if name != "host"}
            run.received = told["received"]
            run.sent = told.get("sent", run.received + told.get("lost", 0))
            if mean := _MEAN.match(line):  # of fping, on the same line
                run.tool, run.summary_ms = "fping", (None, limits.number(mean["ms"]))
    if run:
        yield from _outcomes(run, options)
    if not runs:
        yield Skipped(1, NO_RUN)


def _take(run: PingRun, tool: str, reply: re.Match[str]) -> None:
    """Take up a reply."""
    named = reply.groupdict()
    value = limits.number(named["ms"].replace(",", "."))
    if named.get("sign") == "<" and value is not None:
        value *= HALF_MS
    if tool == "ping windows":
        run.step_ms = 1.0
    run.tool, run.replies = tool, run.replies + 1
    if named.get("at") and run.start_s is None:
        run.start_s = limits.number(named["at"])
    if value is not None and not limits.fault("rtt_ms", value, ""):
        run.replies_ms.append(value)


def _outcomes(run: PingRun, options: ImportOptions) -> Iterator[ImportedRow]:
    # ping of Windows counts what routers answer ("unreachable") as received.
    if run.sent is not None and (run.tool == "ping windows" or not run.summary_ms):
        run.received = min(run.received, len(run.replies_ms))
    yield from outcomes(run, options)
