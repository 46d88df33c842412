"""Smokeping's archives of round-trip times, as ``rrdtool fetch FILE AVERAGE`` prints them.

A line is one round of pings, 20 by default: the time by which it ended, the number of pings lost,
the median of the others, and each of them, sorted, in seconds. Older lines are averages over
several rounds. ``-nan`` stands for a missing measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isnan
from statistics import pstdev
from typing import BinaryIO

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S
from probes.importers import limits
from probes.importers.importer import FileKind, Importer
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import NO_REPLY, round_trips
from probes.importers.text import CUT_OFF, Lines
from probes.samples import MAX_TIME_S, MIN_TIME_S, SkippedRow

ODD_LOSS = "more pings were lost than were sent"
MAX_LINE_BYTES = 16_384
"""About 20 bytes for each ping; Smokeping's own limit of pings is below a thousand."""

_PING = re.compile(r"ping\d{1,4}")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each round in the file.

    Raises a FormatError if the file does not begin with Smokeping's columns.
    """
    columns: list[str] = []
    lines = Lines(stream, options.name, MAX_LINE_BYTES)
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if not columns:
            columns = words
            if not {"loss", "median", "ping1"} <= set(columns):
                problem = "does not begin with Smokeping's columns (loss, median, ping1, ...)"
                remedy = "Give all that `rrdtool fetch TARGET.rrd AVERAGE` prints."
                raise FormatError(options.name, problem, remedy=remedy)
        elif number == lines.cut_off and not options.force:
            yield SkippedRow(number, CUT_OFF)
        else:
            time_s = limits.number(words[0].removesuffix(":"))
            figures = [value for word in words[1:] if (value := limits.number(word)) is not None]
            is_whole = len(figures) == len(words) - 1 == len(columns)
            if is_whole and time_s and MIN_TIME_S <= time_s <= MAX_TIME_S:
                of_columns = dict(zip(columns, figures, strict=True))
                yield from _round(number, time_s, of_columns, options)
            else:
                yield SkippedRow(number, "not a time and a figure for each column")


def _round(
    line: int, time_s: float, figures: Mapping[str, float], options: ImportOptions
) -> Iterator[ImportedRow]:
    sent = sum(1 for name in figures if _PING.fullmatch(name))
    lost, rtt_ms = figures["loss"], figures["median"] * MS_PER_S
    if isnan(lost) or not 0 <= lost <= sent:
        yield SkippedRow(line, "nothing was measured then (-nan)" if isnan(lost) else ODD_LOSS)
        return
    detail = {"packets": sent, "replies": round(sent - lost, 3)}
    yield options.sample("loss_pct", 100.0 * lost / sent, time_s, "smokeping", detail)
    if isnan(rtt_ms):
        yield SkippedRow(line, NO_REPLY)
        return
    times_ms = [
        value * MS_PER_S
        for name, value in figures.items()
        if _PING.fullmatch(name) and not limits.fault("rtt_ms", value * MS_PER_S, name)
    ]
    jitter_ms = pstdev(times_ms) if len(times_ms) >= 2 else None
    yield from round_trips(
        line, rtt_ms, jitter_ms, time_s, "smokeping", detail, options, column="median"
    )


IMPORTER = Importer(
    name="smokeping",
    order=100,
    needs_ends=True,
    kinds=(
        FileKind(
            "Smokeping's data as rrdtool prints them",
            r"\A\s*(?:\w+ +){0,3}loss +median +ping1 ?",
            read,
        ),
    ),
)
