"""A person's own CSV: one row a pair of regions, one column a quantity, in any order.

Known columns, with the spellings accepted, stand in :data:`FIGURES` and :data:`OTHERS`; the unit
is part of a figure's name and converted by the factor beside it, here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import NamedTuple

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S, S_PER_H
from probes.importers import limits
from probes.importers.csv_table import CsvTable
from probes.importers.endpoints import Endpoints
from probes.importers.options import ImportedRow, ImportOptions
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
_ABOUT_RATES = ("per_flow_mbps", "aggregate_mbps", "udp_mbps")


class _Figure(NamedTuple):
    at: int
    column: str
    metric: Metric
    factor: float


class _Columns(NamedTuple):
    figures: list[_Figure]
    others: dict[str, tuple[int, float]]
    unused: list[str]


class _Row(NamedTuple):
    """What a row contains beside its figures."""

    src: tuple[str, str]
    dst: tuple[str, str]
    measured_at_s: float
    connections: int | None
    duration_s: float | None
    warmed_up: bool
    volume_gb: float | None


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row."""
    table = CsvTable(source, options.name, force=options.force)
    columns = _understood(table, options)
    for column in columns.unused:
        yield Skipped(table.header_line, f"column {column!r} is not used")
    endpoints = Endpoints()
    for number, cells, problem in table.rows():
        if problem:
            yield Skipped(number, problem)
            continue
        row = _row(cells, columns.others, endpoints, options)
        if isinstance(row, str):
            yield Skipped(number, row)
            continue
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
            if figure.metric == "transfer_s" and row.volume_gb is None:
                problem = problem or f"{figure.column} {NO_VOLUME}"
            if problem or value is None:
                yield Skipped(number, problem)
            else:
                yield _sample(figure.metric, value, row, cells, columns.others, options)
        if not found:
            yield Skipped(number, NO_FIGURE)


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


def _row(
    cells: list[str],
    others: dict[str, tuple[int, float]],
    endpoints: Endpoints,
    options: ImportOptions,
) -> _Row | str:
    """Read a row's regions, time and settings, or return what is wrong with them."""

    def cell(name: str) -> str:
        return cells[others[name][0]].strip() if name in others else ""

    src, dst = endpoints[cell("src")], endpoints[cell("dst")]
    if src is None or dst is None:
        return BAD_REGION
    if src[0] == dst[0]:
        return SAME_REGION
    measured_at_s = options.measured_at_s
    if written := cell("measured_at"):
        measured_at_s = _time_s(written)
        if measured_at_s is None:
            return BAD_TIME
    if measured_at_s is None:
        return NO_TIME
    connections, duration_s = options.connections, options.duration_s
    if written := cell("connections"):
        connections = limits.connections(written)
        if connections is None:
            return BAD_CONNECTIONS
    if written := cell("duration"):
        duration_s = limits.number(written)
        if duration_s is not None:
            duration_s *= others["duration"][1]
        if duration_s is None or not 0 < duration_s <= limits.MAX_DURATION_S:
            return BAD_DURATION
    volume_gb = None
    if written := cell("volume"):
        volume_gb = limits.number(written)
        if volume_gb is None or not 0 < volume_gb < inf:
            return BAD_VOLUME
        volume_gb *= others["volume"][1]
    warmed_up = _TRUTH.get(cell("warmed_up").lower())
    if warmed_up is None:
        return BAD_WARMED_UP
    return _Row(src, dst, measured_at_s, connections, duration_s, warmed_up, volume_gb)


def _sample(
    metric: Metric,
    value: float,
    row: _Row,
    cells: list[str],
    others: dict[str, tuple[int, float]],
    options: ImportOptions,
) -> Sample:
    def cell(name: str) -> str:
        return cells[others[name][0]].strip() if name in others else ""

    about_rates = metric in _ABOUT_RATES
    connections = row.connections if about_rates else None
    return Sample(
        row.src[0],
        row.dst[0],
        metric,
        value,
        row.measured_at_s,
        cell("tool") or TOOL,
        connections=1 if metric == "per_flow_mbps" else connections,
        duration_s=row.duration_s if about_rates else None,
        warmed_up=row.warmed_up and about_rates,
        src_zone=cell("src_zone") or row.src[1],
        dst_zone=cell("dst_zone") or row.dst[1],
        src_vm=cell("src_vm") or options.src_vm,
        dst_vm=cell("dst_vm") or options.dst_vm,
        detail=json.dumps({"volume_gb": row.volume_gb}) if metric == "transfer_s" else "",
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
