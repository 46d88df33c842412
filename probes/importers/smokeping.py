"""Smokeping's archives of round-trip times, as ``rrdtool fetch FILE AVERAGE`` prints them.

A line is one round of pings, 20 by default: the time by which it ended, the number of pings lost,
the median of the others, and each of them, sorted, in seconds. Older lines are averages over
several rounds. ``-nan`` stands for what was not measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from statistics import pstdev

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S
from probes.importers import limits
from probes.importers.csv_samples import CUT_OFF
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import NO_REPLY
from probes.importers.text import Lines
from probes.samples import Skipped

NOTHING_MEASURED = "nothing was measured then (-nan)"
NOT_A_ROUND = "not a time and a figure for each column"
ODD_LOSS = "more pings were lost than were sent"
MAX_LINE_CHARS = 16_384
"""Of some 20 for each ping; Smokeping's own limit of pings is below a thousand."""

_PING = re.compile(r"ping\d{1,4}")


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each round in the file."""
    columns: list[str] = []
    lines = Lines(source, options.name, MAX_LINE_CHARS)
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if not columns:
            columns = _columns(words, options.name)
        elif number == lines.cut_off and not options.force:
            yield Skipped(number, CUT_OFF)
        else:
            yield from _row(number, words, columns, options)


def _row(
    line: int, words: list[str], columns: list[str], options: ImportOptions
) -> Iterator[ImportedRow]:
    time_s = limits.number(words[0].removesuffix(":"))
    figures = [limits.number(word) for word in words[1:]]
    known = [value for value in figures if value is not None]
    is_whole = len(known) == len(figures) == len(columns)
    if time_s is not None and limits.MIN_TIME_S <= time_s <= limits.MAX_TIME_S and is_whole:
        yield from _round(line, time_s, dict(zip(columns, known, strict=True)), options)
    else:
        yield Skipped(line, NOT_A_ROUND)


def _columns(words: list[str], name: str) -> list[str]:
    if not {"loss", "median", "ping1"} <= set(words):
        raise FormatError(
            name,
            "does not begin with the columns of Smokeping's archives (loss, median, ping1, ...)",
            remedy="Give what `rrdtool fetch TARGET.rrd AVERAGE` prints, from its first line on.",
        )
    return words


def _round(
    line: int, time_s: float, figures: dict[str, float], options: ImportOptions
) -> Iterator[ImportedRow]:
    sent = sum(1 for name in figures if _PING.fullmatch(name))
    lost, median_s = figures["loss"], figures["median"]
    if isnan(lost):
        yield Skipped(line, NOTHING_MEASURED)
        return
    if not 0 <= lost <= sent:
        yield Skipped(line, ODD_LOSS)
        return
    detail = {"packets": sent, "replies": round(sent - lost, 3)}
    yield options.sample("loss_pct", 100.0 * lost / sent, time_s, "smokeping", detail)
    if isnan(median_s):
        yield Skipped(line, NO_REPLY)
        return
    rtt_ms = median_s * MS_PER_S
    if problem := limits.fault("rtt_ms", rtt_ms, "median"):
        yield Skipped(line, problem)
        return
    yield options.sample("rtt_ms", rtt_ms, time_s, "smokeping", detail)
    times_ms = [
        value * MS_PER_S
        for name, value in figures.items()
        if _PING.fullmatch(name) and not limits.fault("rtt_ms", value * MS_PER_S, name)
    ]
    if len(times_ms) >= 2:
        yield options.sample("jitter_ms", pstdev(times_ms), time_s, "smokeping", detail)
