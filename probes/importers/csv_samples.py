"""A person's own CSV: one row a pair of regions, one column a quantity, in any order.

Known columns, with the spellings accepted, stand in :data:`FIGURES` and :data:`OTHERS`; the unit
is part of a figure's name and converted by the factor beside it, here and nowhere else.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S, S_PER_H
from probes.importers import limits
from probes.importers.endpoints import split
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.text import Lines
from probes.samples import Metric, Sample, Skipped

TOOL = "csv"

_RATE_MBPS = {
    "bps": 1 / BITS_PER_MBIT,
    "kbps": 1 / 1000,
    "mbps": 1.0,
    "gbps": MBPS_PER_GBPS,
    "tbps": MBPS_PER_GBPS * 1000,
}
_TIME_MS = {"us": 1 / 1000, "ms": 1.0, "s": MS_PER_S}
_SHARE_PCT = {"pct": 1.0, "percent": 1.0, "fraction": 100.0, "ratio": 100.0}
_VOLUME_GB = {"mb": 1e-3, "gb": 1.0, "tb": 1e3, "mib": 2**20 / 1e9, "gib": 2**30 / 1e9}
_DURATION_S = {"ms": 1 / MS_PER_S, "s": 1.0, "min": 60.0, "h": S_PER_H}

_QUANTITIES: tuple[tuple[str, Metric, dict[str, float]], ...] = (
    ("rtt", "rtt_ms", _TIME_MS),
    ("jitter", "jitter_ms", _TIME_MS),
    ("per_flow", "per_flow_mbps", _RATE_MBPS),
    ("aggregate", "aggregate_mbps", _RATE_MBPS),
    ("udp", "udp_mbps", _RATE_MBPS),
    ("loss", "loss_pct", _SHARE_PCT),
    ("transfer", "transfer_s", _DURATION_S),
)
FIGURES: dict[str, tuple[Metric, float]] = {
    f"{base}_{unit}": (metric, factor)
    for base, metric, units in _QUANTITIES
    for unit, factor in units.items()
}
"""Column name to metric and the factor that turns the column's unit into the metric's."""

OTHERS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("src", "src_region", "source"), ("src", 1.0)),
    **dict.fromkeys(("dst", "dst_region", "dest", "destination"), ("dst", 1.0)),
    **{name: (name, 1.0) for name in ("src_zone", "dst_zone", "src_vm", "dst_vm")},
    **{name: (name, 1.0) for name in ("connections", "warmed_up", "tool")},
    **{f"volume_{unit}": ("volume", factor) for unit, factor in _VOLUME_GB.items()},
    **{f"duration_{unit}": ("duration", factor) for unit, factor in _DURATION_S.items()},
    **dict.fromkeys(("measured_at", "measured_at_s", "timestamp"), ("measured_at", 1.0)),
}

BAD_REGION = "src or dst is not provider:region"
SAME_REGION = "src and dst are the same region"
BAD_TIME = "measured_at is neither ISO 8601 nor seconds since 1970"
NO_TIME = "measured_at is empty and --measured-at was not stated"
BAD_CONNECTIONS = "connections is not a count"
BAD_DURATION = "duration is not a duration"
BAD_VOLUME = "volume is not a volume"
NO_VOLUME = "of a transfer says nothing without volume_gb or volume_mb"
BAD_WARMED_UP = "warmed_up is neither true nor false"
NO_FIGURE = "no figure in this row"

BLANK = "blank line"
REPEATED_HEADER = "the header again"
TOO_FEW = "fewer columns than the header (cut off?)"
TOO_MANY = "more columns than the header"
CUT_OFF = "last line has no line end, so its last figure may be cut off"

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_MOST_CELLS = 65_536
"""Whose meaning is remembered, of each column: most files repeat theirs."""
_ABOUT_RATES = ("per_flow_mbps", "aggregate_mbps", "udp_mbps")


class CsvTable:
    """A header and the rows below it, with the fault of each damaged one.

    Parameters
    ----------
    source : Iterator[bytes]
        The file.
    name : str
        What messages call it.
    force : bool
        Take a last line without a line end for whole.

    Attributes
    ----------
    header : list[str]
        Column names, stripped, as the file spells them.
    header_line : int
        Line of the header: 1 unless blank lines precede it.

    Raises
    ------
    FormatError
        If there is no header, a column is named twice, or (from :meth:`rows`) there is no row.
    """

    def __init__(self, source: Iterator[bytes], name: str, *, force: bool) -> None:
        self._name = name
        self._force = force
        self._lines = Lines(source, name)
        self._numbered = enumerate(self._lines, start=1)
        found = next(((at, line) for at, line in self._numbered if line.strip()), None)
        if found is None:
            raise FormatError(name, "holds nothing but blank lines")
        self.header_line, line = found
        self._header_text = line
        self.header = [cell.strip() for cell in self._cells(self.header_line, line)]
        if len(self.header) == 1 and (";" in line or "\t" in line):
            separator = "semicolons" if ";" in line else "tabs"
            raise FormatError(
                name,
                f"separates its columns by {separator}",
                remedy="Write commas between columns and points in figures.",
            )
        twice = [column for column in self.header if self.header.count(column) > 1 and column]
        if twice:
            raise FormatError(
                name,
                f"line {self.header_line} names the column {twice[0]!r} twice",
                remedy="Remove or rename one.",
            )

    def rows(self) -> Iterator[tuple[int, list[str], str]]:
        """Yield line number, cells and what is wrong with the row (``""`` if nothing)."""
        width, number = len(self.header), 0
        for number, line in self._numbered:
            cells = line.split(",") if '"' not in line else self._cells(number, line)
            problem = ""
            if len(cells) != width:
                problem = TOO_FEW if len(cells) < width else TOO_MANY
                problem = problem if line.strip() else BLANK
            elif line == self._header_text:
                problem = REPEATED_HEADER
            elif self._lines.cut_off and not self._force:
                problem = CUT_OFF
            yield number, cells, problem
        if not number:
            raise FormatError(self._name, "holds a header and no rows")

    def _cells(self, number: int, line: str) -> list[str]:
        try:
            return next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            raise FormatError(
                self._name,
                f"line {number} has a quotation mark that does not fit: {error}",
                remedy="A quoted cell ends on its own line; quotes inside one are doubled.",
            ) from error


class _Figure(NamedTuple):
    """A column that has a figure, and how its unit becomes that of the metric."""

    at: int
    column: str
    metric: Metric
    factor: float


class _Columns(NamedTuple):
    """What the columns of a file are: by meaning, where others are and their factors."""

    figures: list[_Figure]
    others: dict[str, tuple[int, float]]
    unused: list[str]


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row."""
    table = CsvTable(source, options.name, force=options.force)
    columns = _understood(table, options)
    for column in columns.unused:
        yield Skipped(table.header_line, f"column {column!r} is not used")
    readers = _readers(columns.others, options)
    for number, cells, problem in table.rows():
        if problem:
            yield Skipped(number, problem)
        else:
            yield from _of_row(number, cells, columns, readers)


def _understood(table: CsvTable, options: ImportOptions) -> _Columns:
    figures: list[_Figure] = []
    others: dict[str, tuple[int, float]] = {}
    unused: list[str] = []
    taken: dict[str, str] = {}
    for at, column in enumerate(table.header):
        name = column.lower()
        meaning = FIGURES.get(name) or OTHERS.get(name)
        if meaning is None:
            unused.append(column[:40])
            continue
        if meaning[0] in taken:
            raise FormatError(
                options.name,
                f"states {meaning[0]} twice, in {taken[meaning[0]]!r} and {column!r}",
                remedy="Remove one of the two columns.",
            )
        taken[meaning[0]] = column
        if name in FIGURES:
            figures.append(_Figure(at, column, *FIGURES[name]))
        else:
            others[meaning[0]] = at, meaning[1]
    missing = [name for name in ("src", "dst") if name not in others]
    if missing:
        raise FormatError(
            options.name,
            f"line {table.header_line} lacks the column {', '.join(missing)}",
            value=",".join(table.header)[:60],
            remedy="The first line names the columns, such as src,dst,rtt_ms,aggregate_mbps.",
        )
    if not figures:
        raise FormatError(
            options.name,
            f"line {table.header_line} names no figure that relayd knows",
            value=",".join(table.header)[:60],
            remedy="Figures are rtt_ms, per_flow_mbps, aggregate_mbps, udp_mbps, jitter_ms, "
            "loss_pct and transfer_s, or the same with another unit, such as aggregate_gbps.",
        )
    if "measured_at" not in others and options.measured_at_s is None:
        options.start_s()
    return _Columns(figures, others, unused)


def _of_row(
    number: int,
    cells: Sequence[str],
    columns: _Columns,
    readers: Mapping[str, Callable[[str], Any]],
) -> Iterator[ImportedRow]:
    """Yield the samples of one row, and what is wrong with it."""
    others = columns.others
    try:
        setting: dict[str, Any] = {}
        for name, reader in readers.items():
            setting[name] = reader(cells[others[name][0]] if name in others else "")
            if name == "dst" and setting["src"][0] == setting["dst"][0]:
                raise ValueError(SAME_REGION)
    except ValueError as error:
        yield Skipped(number, str(error))
        return
    found = False
    for figure in columns.figures:
        cell = cells[figure.at].strip()
        if not cell:
            continue
        found = True
        value = limits.number(cell)
        if value is not None:
            value *= figure.factor
        problem = limits.fault(figure.metric, value, figure.column)
        if figure.metric == "transfer_s" and setting["volume"] is None:
            problem = problem or f"{figure.column} {NO_VOLUME}"
        if value is None or problem:
            yield Skipped(number, problem)
        else:
            yield _sample(figure.metric, value, setting)
    if not found:
        yield Skipped(number, NO_FIGURE)


def _readers(
    others: Mapping[str, tuple[int, float]], options: ImportOptions
) -> dict[str, Callable[[str], Any]]:
    """Return how the cells of each column are read, in the order in which faults are named."""

    def end(cell: str) -> tuple[str, str]:
        found = split(cell)
        if found is None:
            raise ValueError(BAD_REGION)
        return found

    def measured_at_s(cell: str) -> float:
        found = _time_s(cell) if cell else options.measured_at_s
        if found is None:
            raise ValueError(BAD_TIME if cell else NO_TIME)
        return found

    def connections(cell: str) -> int | None:
        found = limits.connections(cell) if cell else options.connections
        if cell and found is None:
            raise ValueError(BAD_CONNECTIONS)
        return found

    def duration_s(cell: str) -> float | None:
        if not cell:
            return options.duration_s
        found = limits.number(cell)
        found = found and found * others["duration"][1]
        if not found or not 0 < found <= limits.MAX_DURATION_S:
            raise ValueError(BAD_DURATION)
        return found

    def volume_gb(cell: str) -> float | None:
        if not cell:
            return None
        found = limits.number(cell)
        if found is None or not 0 < found < inf:
            raise ValueError(BAD_VOLUME)
        return found * others["volume"][1]

    def warmed_up(cell: str) -> bool:
        found = _TRUTH.get(cell.lower())
        if found is None:
            raise ValueError(BAD_WARMED_UP)
        return found

    readers: dict[str, Callable[[str], Any]] = {
        "src": end,
        "dst": end,
        "measured_at": measured_at_s,
        "connections": connections,
        "duration": duration_s,
        "volume": volume_gb,
        "warmed_up": warmed_up,
        "tool": lambda cell: cell or TOOL,
        "src_vm": lambda cell: cell or options.src_vm,
        "dst_vm": lambda cell: cell or options.dst_vm,
        "src_zone": str,
        "dst_zone": str,
    }
    return {name: _remembered(reader) for name, reader in readers.items()}


def _remembered(reader: Callable[[str], Any]) -> Callable[[str], Any]:
    return lru_cache(_MOST_CELLS)(lambda cell: reader(cell.strip()))


def _sample(metric: Metric, value: float, setting: Mapping[str, Any]) -> Sample:
    (src, src_zone), (dst, dst_zone) = setting["src"], setting["dst"]
    about_rates = metric in _ABOUT_RATES
    connections = 1 if metric == "per_flow_mbps" else setting["connections"]
    return Sample(
        src,
        dst,
        metric,
        value,
        setting["measured_at"],
        setting["tool"],
        connections if about_rates else None,
        setting["duration"] if about_rates else None,
        about_rates and setting["warmed_up"],
        setting["src_zone"] or src_zone,
        setting["dst_zone"] or dst_zone,
        setting["src_vm"],
        setting["dst_vm"],
        json.dumps({"volume_gb": setting["volume"]}) if metric == "transfer_s" else "",
    )


def _time_s(written: str) -> float | None:
    """Read seconds since 1970 or ISO 8601; a time without a zone is UTC."""
    value = limits.number(written)
    if value is not None and limits.MIN_TIME_S <= value <= limits.MAX_TIME_S:
        return value
    try:
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if limits.MIN_TIME_S <= seconds <= limits.MAX_TIME_S else None
