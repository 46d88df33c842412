"""Raw throughput files of Skyplane's profiler (``throughput.csv``).

Each row is one iperf3 test between two VMs over many connections. ``throughput_received`` is the
figure to use: ``throughput_sent`` counts what is still in send buffers and does not repeat
(rank correlation between two months 0.995 against 0.54 on AWS pairs). The tests are short and
cold, so they lose slow start; that is left for the estimator to correct, which knows the
round-trip time: here they are only marked ``warmed_up=False`` with their duration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_MBIT
from probes.importers import limits
from probes.importers.csv_samples import CsvTable
from probes.importers.endpoints import Endpoints
from probes.importers.options import ImportedRow, ImportOptions
from probes.samples import Sample, Skipped

TOOL = "skyplane"
ENDS = (
    "src_region",
    "src_tier",
    "src_instance_class",
    "dst_region",
    "dst_tier",
    "dst_instance_class",
)
COLUMNS = (*ENDS, "iperf3_connections", "iperf3_runtime", "throughput_received", "success")
RECEIVED_LATER = "throughput_recieved"
"""How the profiler spells a column from November 2022 on."""

FAILED = "the test failed (success is not True)"
BAD_REGION = "src_region or dst_region is not provider:region"
SAME_REGION = "src and dst are the same region"
BAD_CONNECTIONS = "iperf3_connections is not a count"
BAD_DURATION = "iperf3_runtime is not a duration"


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield one sample of ``aggregate_mbps`` (``per_flow_mbps`` for one connection) a row."""
    table = CsvTable(source, options.name, force=options.force)
    (
        src_at,
        src_tier_at,
        src_vm_at,
        dst_at,
        dst_tier_at,
        dst_vm_at,
        connections_at,
        duration_at,
        received_at,
        success_at,
    ) = columns_at(table, COLUMNS, options.name)
    start_s = options.start_s()
    tiers = frozenset(options.tiers)
    endpoints = Endpoints()
    details: dict[tuple[str, str], str] = {}
    settings: dict[tuple[str, str], tuple[int | None, float | None]] = {}
    max_bps = limits.MAX_RATE_MBPS * BITS_PER_MBIT

    # A million rows pass here: no function call that a dictionary can save.
    for number, row, problem in table.rows():
        if problem:
            yield Skipped(number, problem)
            continue
        ends = row[src_tier_at], row[dst_tier_at]
        if ends[0] not in tiers or ends[1] not in tiers:
            yield Skipped(number, tier_not_kept(ends, tiers))
            continue
        if row[success_at] != "True":
            yield Skipped(number, FAILED)
            continue
        src, dst = endpoints[row[src_at]], endpoints[row[dst_at]]
        if src is None or dst is None:
            yield Skipped(number, BAD_REGION)
            continue
        if src[0] == dst[0]:
            yield Skipped(number, SAME_REGION)
            continue
        try:
            bps = float(row[received_at])
        except ValueError:
            bps = 0.0
        if not 0.0 < bps <= max_bps or "_" in row[received_at]:
            yield Skipped(number, _fault(row[received_at]))
            continue
        stated = row[connections_at], row[duration_at]
        setting = settings.get(stated)
        if setting is None:
            if len(settings) > 4096:
                settings.clear()
            setting = settings[stated] = _setting(*stated)
        connections, duration_s = setting
        if connections is None or duration_s is None:
            yield Skipped(number, BAD_CONNECTIONS if connections is None else BAD_DURATION)
            continue
        detail = details.get(ends)
        if detail is None:
            detail = details[ends] = tier_detail(ends)
        yield Sample(
            src[0],
            dst[0],
            "aggregate_mbps" if connections > 1 else "per_flow_mbps",
            bps / BITS_PER_MBIT,
            start_s,
            TOOL,
            connections,
            duration_s,
            False,
            src[1],
            dst[1],
            row[src_vm_at],
            row[dst_vm_at],
            detail,
        )


def columns_at(table: CsvTable, columns: tuple[str, ...], name: str) -> list[int]:
    """Return the position of each column.

    Raises
    ------
    FormatError
        Naming the columns that are missing.
    """
    header = [
        "throughput_received" if column == RECEIVED_LATER else column for column in table.header
    ]
    missing = [column for column in columns if column not in header]
    if missing:
        raise FormatError(
            name,
            f"line {table.header_line} lacks the column {', '.join(missing)}",
            remedy="Only Skyplane's raw file has them all; `relayd import csv` reads others.",
        )
    return [header.index(column) for column in columns]


def tier_detail(ends: tuple[str, str]) -> str:
    """Name the network tiers, unless both are the default."""
    if ends == ("PREMIUM", "PREMIUM"):
        return ""
    return json.dumps({"src_tier": ends[0], "dst_tier": ends[1]})


def tier_not_kept(ends: tuple[str, str], tiers: frozenset[str]) -> str:
    """Say which network tier a row was left out for."""
    tier = next(tier for tier in ends if tier not in tiers)
    # A tier that is none would make a reason of every damaged row.
    return f"network tier {tier} is not among those kept" if tier in _TIERS else "unknown tier"


_TIERS = ("PREMIUM", "STANDARD")


def _setting(connections: str, runtime: str) -> tuple[int | None, float | None]:
    duration_s = limits.number(runtime)
    if duration_s is not None and not 0 < duration_s <= limits.MAX_DURATION_S:
        duration_s = None
    return limits.connections(connections), duration_s


def _fault(cell: str) -> str:
    if not cell.strip():
        return "throughput_received is empty"
    value = limits.number(cell)
    mbps = None if value is None else value / BITS_PER_MBIT
    return limits.fault("aggregate_mbps", mbps, "throughput_received")
