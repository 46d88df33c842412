"""Files that Skyplane's profiler writes: raw throughput and raw latency.

A row of ``throughput.csv`` is one iperf3 test between two VMs over many connections.
``throughput_received`` is the figure to use: ``throughput_sent`` counts bytes that are still in
send buffers and does not repeat (rank correlation between two months 0.995 against 0.54 on AWS
pairs).
The tests are short and cold, so they lose slow start; that is left for the estimator to correct,
which knows the round-trip time: here they are only marked ``warmed_up=False`` with their duration.

A row of ``latency.csv`` is one ping summary, in ms. Rows measured from GCP are contaminated: pings
run in parallel in containers took each other's replies. Such a row shows a spread that no idle
path has, ``max - min > max(3 ms, 3 % of min)``, or it repeats the figures that another destination
shows from the same source. In the grid of April 2022 these two tests mark 472 of 1,836 GCP rows,
the same as those whose reverse direction disagrees. (Replies that were mixed up entered both
summaries a few microseconds apart, hence "repeats" within 0.005 ms.) Rows from elsewhere are kept
whatever their spread: it is real there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import BinaryIO, TypeAlias

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_MBIT
from probes.importers import limits
from probes.importers.importer import importer_of
from probes.importers.options import SAME_REGION, ImportedRow, ImportOptions, split
from probes.importers.tables import csv_table
from probes.metrics import throughput_of
from probes.samples import Sample, SkippedRow

TOOL = "skyplane"
RECEIVED, RECEIVED_LATER = "throughput_received", "throughput_recieved"
"""A column as the profiler spells it, until and from November 2022."""

FAILED = "the test failed (success is not True)"
BAD_REGION = "src_region or dst_region is not provider:region"
BAD_CONNECTIONS = "iperf3_connections is not a count"
BAD_DURATION = "iperf3_runtime is not a duration"
WIDE_SPREAD = "contaminated: max - min is over max(3 ms, 3 %) in a row from GCP"
REPEATED = "contaminated: repeats another destination's figures in a row from GCP"
OUT_OF_ORDER = "min_rtt, avg_rtt and max_rtt are not in order"

SPREAD_MS = 3.0
SPREAD_SHARE = 0.03
SAME_MS = 0.005
HELD_ROWS = 65_536
"""Rows from GCP are judged together with their neighbours, up to this many at a time."""
_TIERS = ("PREMIUM", "STANDARD")
_OF_END = ("region", "tier", "instance_class")


TUNED_MB = 2**29 / 1e6
"""Half of the 1 GiB to which the profiler raises ``tcp_rmem`` (since 17 January 2022)."""
_Reader: TypeAlias = Callable[[Sample, dict[str, str], list[str]], Sample | str]
"""Makes a sample, or its fault, of one without value, network tiers unless usual, and its cells."""


def read_throughput(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield one sample of ``aggregate_mbps`` (``per_flow_mbps`` for one connection) a row."""
    tuned = {} if options.hosts == "as they come" else {"window_mb": TUNED_MB}

    def tested(sample: Sample, tiers: dict[str, str], cells: list[str]) -> Sample | str:
        stated_connections, stated_s, received, success = cells
        bps, connections = limits.number(received), limits.connections(stated_connections)
        mbps, duration_s = bps and bps / BITS_PER_MBIT, limits.duration_s(stated_s)
        if success != "True":
            return FAILED
        if not received.strip():
            return f"{RECEIVED} is empty"
        if (problem := limits.fault("aggregate_mbps", mbps, RECEIVED)) or mbps is None:
            return problem
        if connections is None or duration_s is None:
            return BAD_CONNECTIONS if connections is None else BAD_DURATION
        return sample._replace(
            metric=throughput_of(connections),
            value=mbps,
            connections=connections,
            duration_s=duration_s,
            detail=json.dumps(tiers | tuned) if tiers | tuned else "",
        )

    columns = ("iperf3_connections", "iperf3_runtime", RECEIVED, "success")
    for number, row in _rows(stream, options, columns, tested):
        yield SkippedRow(number, row) if isinstance(row, str) else row


def read_latency(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield one sample of ``rtt_ms`` (the mean) a row; rows from GCP come after the others."""
    held: list[tuple[int, float, float, Sample]] = []
    columns = ("min_rtt", "avg_rtt", "max_rtt", "mdev_rtt")
    for number, row in _rows(stream, options, columns, _pinged):
        if isinstance(row, str):
            yield SkippedRow(number, row)
        elif options.force or not row.src.startswith("gcp:"):
            yield row
        else:
            detail = row.read_detail()
            held.append((number, detail["min_ms"], detail["max_ms"], row))
        if len(held) >= HELD_ROWS:
            yield from _judge(held)
            held.clear()
    yield from _judge(held)


def _rows(
    stream: BinaryIO, options: ImportOptions, columns: tuple[str, ...], reader: _Reader
) -> Iterator[tuple[int, Sample | str]]:
    """Yield the number of each row with its sample, or the reason to leave it out.

    Wanted are these columns besides the regions, network tiers and VMs.
    """
    table = csv_table(stream, options)
    header = [RECEIVED if column == RECEIVED_LATER else column for column in table.header]
    wanted = [f"{end}_{name}" for end in ("src", "dst") for name in _OF_END] + [*columns]
    missing = [column for column in wanted if column not in header]
    if missing:
        problem = f"line {table.header_line} lacks the column {', '.join(missing)}"
        remedy = "Only Skyplane's raw file has them all; `relayd import csv` reads others."
        raise FormatError(options.name, problem, remedy=remedy)
    places = [header.index(column) for column in wanted]
    start_s = options.start_s()
    for number, cells in table.rows:
        if isinstance(cells, str):
            yield number, cells
            continue
        src_name, src_tier, src_vm, dst_name, dst_tier, dst_vm, *rest = (cells[n] for n in places)
        src, dst = split(src_name), split(dst_name)
        other_tier = next((one for one in (src_tier, dst_tier) if one not in options.tiers), None)
        if other_tier is not None:
            # A tier that is none would make a reason of every damaged row.
            known = f"network tier {other_tier} is not among those kept"
            yield number, known if other_tier in _TIERS else "unknown tier"
        elif src is None or dst is None:
            yield number, BAD_REGION
        elif src[0] == dst[0]:
            yield number, SAME_REGION
        else:
            sample = Sample(src[0], dst[0], "rtt_ms", 0.0, start_s, TOOL)
            sample = sample._replace(src_zone=src[1], dst_zone=dst[1], src_vm=src_vm, dst_vm=dst_vm)
            is_usual = src_tier == dst_tier == "PREMIUM"
            stated = {} if is_usual else {"src_tier": src_tier, "dst_tier": dst_tier}
            yield number, reader(sample, stated, rest)


def _pinged(sample: Sample, tiers: dict[str, str], cells: list[str]) -> Sample | str:
    """Read min, avg, max and mdev in ms, or return their fault."""
    figures = []
    for cell, column in zip(cells, ("min_rtt", "avg_rtt", "max_rtt"), strict=False):
        if not cell.strip():
            return f"{column} is empty"
        value = limits.number(cell)
        if (problem := limits.fault("rtt_ms", value, column)) or value is None:
            return problem
        figures.append(value)
    low, mean, high = figures
    if not low <= mean <= high:
        return OUT_OF_ORDER
    detail: dict[str, float | str] = {"min_ms": low, "max_ms": high}
    mdev_ms = limits.number(cells[3])
    if not limits.fault("jitter_ms", mdev_ms, "mdev_rtt") and mdev_ms is not None:
        detail["mdev_ms"] = mdev_ms
    return sample._replace(value=mean, detail=json.dumps(detail | tiers))


def _judge(held: Sequence[tuple[int, float, float, Sample]]) -> Iterator[ImportedRow]:
    """Tell clean rows from contaminated ones; rows of one source are compared with each other."""
    # Rows are put into cells as wide as the tolerance, so that only the nine around a row can hold
    # its like; two destinations a cell are enough to find another than one's own.
    cells: dict[tuple[str, int, int], dict[str, tuple[float, float]]] = defaultdict(dict)
    places = [(row[3].src, int(row[1] / SAME_MS), int(row[2] / SAME_MS)) for row in held]
    for place, (_, min_ms, max_ms, sample) in zip(places, held, strict=True):
        if len(cells[place]) < 2:
            cells[place].setdefault(sample.dst, (min_ms, max_ms))
    for (src, low, high), (number, min_ms, max_ms, sample) in zip(places, held, strict=True):
        near = product((src,), (low - 1, low, low + 1), (high - 1, high, high + 1))
        others = (other for cell in near for other in cells.get(cell, {}).items())
        if max_ms - min_ms > max(SPREAD_MS, SPREAD_SHARE * min_ms):
            yield SkippedRow(number, WIDE_SPREAD)
        elif any(
            dst != sample.dst
            and abs(low_ms - min_ms) <= SAME_MS
            and abs(high_ms - max_ms) <= SAME_MS
            for dst, (low_ms, high_ms) in others
        ):
            yield SkippedRow(number, REPEATED)
        else:
            yield sample


THROUGHPUT_FILE = importer_of("skyplane-throughput", {"": read_throughput})
LATENCY_FILE = importer_of("skyplane-latency", {"": read_latency})
