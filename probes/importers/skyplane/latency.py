"""Raw latency files of Skyplane's profiler (``latency.csv``): one ping summary a row, in ms.

Rows measured from GCP are contaminated: pings run in parallel in containers took each other's
replies. Such a row shows a spread that no idle path has, ``max - min > max(3 ms, 3 % of min)``, or
it repeats the figures that another destination shows from the same source. In the grid of April
2022 these two tests mark 472 of 1,836 GCP rows, the same as those whose reverse direction
disagrees. (Replies that were mixed up entered both summaries a few microseconds apart, hence
"repeats" within 0.005 ms.) Rows from elsewhere are kept whatever their spread: it is real there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from probes.importers import limits
from probes.importers.csv_samples import CsvTable
from probes.importers.endpoints import Endpoints
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.skyplane.throughput import (
    BAD_REGION,
    ENDS,
    SAME_REGION,
    TOOL,
    columns_at,
    tier_not_kept,
)
from probes.samples import Sample, Skipped

COLUMNS = (*ENDS, "min_rtt", "avg_rtt", "max_rtt", "mdev_rtt")

WIDE_SPREAD = "contaminated: max - min is over max(3 ms, 3 %) in a row from GCP"
REPEATED = "contaminated: repeats another destination's figures in a row from GCP"
OUT_OF_ORDER = "min_rtt, avg_rtt and max_rtt are not in order"

SPREAD_MS = 3.0
SPREAD_SHARE = 0.03
SAME_MS = 0.005
HELD_ROWS = 65_536
"""Rows from GCP are judged together with their neighbours, up to this many at a time."""


class _Held(NamedTuple):
    number: int
    min_ms: float
    max_ms: float
    sample: Sample


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield one sample of ``rtt_ms`` (the mean) a row; rows from GCP come after the others."""
    table = CsvTable(source, options.name, force=options.force)
    (
        src_at,
        src_tier_at,
        src_vm_at,
        dst_at,
        dst_tier_at,
        dst_vm_at,
        min_at,
        avg_at,
        max_at,
        mdev_at,
    ) = columns_at(table, COLUMNS, options.name)
    start_s = options.start_s()
    tiers = frozenset(options.tiers)
    endpoints = Endpoints()
    held: list[_Held] = []

    for number, row, problem in table.rows():
        if problem:
            yield Skipped(number, problem)
            continue
        ends = row[src_tier_at], row[dst_tier_at]
        if not tiers.issuperset(ends):
            yield Skipped(number, tier_not_kept(ends, tiers))
            continue
        src, dst = endpoints[row[src_at]], endpoints[row[dst_at]]
        if src is None or dst is None:
            yield Skipped(number, BAD_REGION)
            continue
        if src[0] == dst[0]:
            yield Skipped(number, SAME_REGION)
            continue
        figures = _figures(row[min_at], row[avg_at], row[max_at])
        if isinstance(figures, str):
            yield Skipped(number, figures)
            continue
        min_ms, avg_ms, max_ms = figures
        detail: dict[str, float | str] = {"min_ms": min_ms, "max_ms": max_ms}
        mdev_ms = limits.number(row[mdev_at])
        if not limits.fault("jitter_ms", mdev_ms, "mdev_rtt") and mdev_ms is not None:
            detail["mdev_ms"] = mdev_ms
        if ends != ("PREMIUM", "PREMIUM"):
            detail |= {"src_tier": ends[0], "dst_tier": ends[1]}
        sample = Sample(
            src[0],
            dst[0],
            "rtt_ms",
            avg_ms,
            start_s,
            TOOL,
            src_zone=src[1],
            dst_zone=dst[1],
            src_vm=row[src_vm_at],
            dst_vm=row[dst_vm_at],
            detail=json.dumps(detail),
        )
        if options.force or not src[0].startswith("gcp:"):
            yield sample
            continue
        held.append(_Held(number, min_ms, max_ms, sample))
        if len(held) >= HELD_ROWS:
            yield from _judge(held)
            held.clear()
    yield from _judge(held)


def _figures(*cells: str) -> tuple[float, float, float] | str:
    """Read min, avg and max in ms, or return what is wrong with them."""
    figures = []
    for cell, column in zip(cells, ("min_rtt", "avg_rtt", "max_rtt"), strict=True):
        if not cell.strip():
            return f"{column} is empty"
        value = limits.number(cell)
        if (problem := limits.fault("rtt_ms", value, column)) or value is None:
            return problem
        figures.append(value)
    low, mean, high = figures
    return (low, mean, high) if low <= mean <= high else OUT_OF_ORDER


def _judge(held: list[_Held]) -> Iterator[ImportedRow]:
    """Tell clean rows from contaminated ones; rows of one source are compared with each other."""
    # Rows are put into cells as wide as the tolerance, so that only the nine around a row can hold
    # its like; two destinations a cell are enough to find another than one's own.
    cells: dict[tuple[str, int, int], list[_Held]] = {}
    for row in held:
        others = cells.setdefault(_cell(row), [])
        if len(others) < 2 and all(row.sample.dst != other.sample.dst for other in others):
            others.append(row)
    for row in held:
        if row.max_ms - row.min_ms > max(SPREAD_MS, SPREAD_SHARE * row.min_ms):
            yield Skipped(row.number, WIDE_SPREAD)
        elif _repeats_another(row, cells):
            yield Skipped(row.number, REPEATED)
        else:
            yield row.sample


def _cell(row: _Held) -> tuple[str, int, int]:
    return row.sample.src, int(row.min_ms / SAME_MS), int(row.max_ms / SAME_MS)


def _repeats_another(row: _Held, cells: dict[tuple[str, int, int], list[_Held]]) -> bool:
    src, low, high = _cell(row)
    return any(
        other.sample.dst != row.sample.dst
        and abs(other.min_ms - row.min_ms) <= SAME_MS
        and abs(other.max_ms - row.max_ms) <= SAME_MS
        for near_low in (low - 1, low, low + 1)
        for near_high in (high - 1, high, high + 1)
        for other in cells.get((src, near_low, near_high), ())
    )
