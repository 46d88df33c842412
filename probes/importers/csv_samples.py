"""A person's own CSV: one row a pair of regions, one column a quantity, in any order.

Known columns, with the spellings accepted, stand in :data:`FIGURES` and :data:`OTHERS`; the unit
is part of a figure's name and converted by the factor beside it, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S, S_PER_H
from probes.importers import limits
from probes.importers.csv_at_once import (
    ABOUT_RATES,
    Cells,
    CsvColumns,
    CsvFigure,
    samples_at_once,
    volume_detail,
)
from probes.importers.csv_table import CsvTable
from probes.importers.endpoints import split
from probes.importers.options import ImportedRow, ImportOptions
from probes.sample_columns import SampleColumns
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

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_FEW_LINES, _PARTS = 64, 8


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow | SampleColumns]:
    """Yield a sample for each figure of each row; many at once where nothing is wrong with them."""
    table = CsvTable(source, options.name, force=options.force)
    columns = _understood(table, options)
    for column in columns.unused:
        yield Skipped(table.header_line, f"column {column!r} is not used")
    readers = _readers(columns.others, options)
    for number, lines in table.blocks():
        yield from _of_lines(number, lines, table, columns, readers)


def _of_lines(
    number: int,
    lines: list[str],
    table: CsvTable,
    columns: CsvColumns,
    readers: Mapping[str, Cells],
) -> Iterator[ImportedRow | SampleColumns]:
    """Yield the samples of lines that begin at a number: one by one near one that is wrong."""
    cells = table.columns(lines)
    found = cells and samples_at_once(cells, columns, readers)
    if found:
        yield found
    elif len(lines) > _FEW_LINES:
        part = -(-len(lines) // _PARTS)
        for at in range(0, len(lines), part):
            yield from _of_lines(number + at, lines[at : at + part], table, columns, readers)
    else:
        for line, row, problem in table.rows_of(number, lines):
            if problem:
                yield Skipped(line, problem)
            else:
                yield from _of_row(line, row, columns, readers)


def _understood(table: CsvTable, options: ImportOptions) -> CsvColumns:
    figures: list[CsvFigure] = []
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
            figures.append(CsvFigure(at, column, *FIGURES[name]))
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
    return CsvColumns(figures, others, unused)


def _of_row(
    number: int, cells: Sequence[str], columns: CsvColumns, readers: Mapping[str, Cells]
) -> Iterator[ImportedRow]:
    """Yield the samples of one row, and what is wrong with it."""
    others = columns.others
    try:
        setting: dict[str, Any] = {}
        for name, reader in readers.items():
            setting[name] = reader.meaning(cells[others[name][0]] if name in others else "")
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


def _readers(others: Mapping[str, tuple[int, float]], options: ImportOptions) -> dict[str, Cells]:
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
    return {name: Cells(reader) for name, reader in readers.items()}


def _sample(metric: Metric, value: float, setting: Mapping[str, Any]) -> Sample:
    (src, src_zone), (dst, dst_zone) = setting["src"], setting["dst"]
    about_rates = metric in ABOUT_RATES
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
        volume_detail(setting["volume"]) if metric == "transfer_s" else "",
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
