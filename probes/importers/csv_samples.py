"""Tables of users: one row a pair of regions, one column a quantity, in any order; or matrices.

Known columns, with the spellings accepted, stand in :data:`FIGURES` and :data:`OTHERS`; the unit
is part of a figure's name and converted by the factor next to it, here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, BinaryIO

from planner.model.errors import FormatError, InputError
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S, S_PER_H
from probes.importers import limits
from probes.importers.options import BAD_REGION, SAME_REGION, ImportedRow, ImportOptions, split
from probes.importers.tables import FileTable, Rows, csv_table, json_rows, matrix_table, row_table
from probes.importers.text import time_s
from probes.samples import ADDRESSES, METRICS, Metric, Sample, Skipped

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
    ("egress_cap", "egress_cap_mbps", _RATE_MBPS),
    ("ingress_cap", "ingress_cap_mbps", _RATE_MBPS),
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
    **{name: (name, 1.0) for name in ("connections", "at_once", "vms", "warmed_up", "tool")},
    "address": ("address", 1.0),
    "window_mb": ("window_mb", 1.0),
    **{f"volume_{unit}": ("volume", factor) for unit, factor in _VOLUME_GB.items()},
    **{f"duration_{unit}": ("duration", factor) for unit, factor in _DURATION_S.items()},
    **dict.fromkeys(("measured_at", "measured_at_s", "timestamp"), ("measured_at", 1.0)),
}

_KNOWN: dict[str, tuple[str, float]] = {**FIGURES, **OTHERS}

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_RATES = ("per_flow_mbps", "aggregate_mbps")
_ABOUT_RATES = (*_RATES, "udp_mbps")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row of a CSV file, or each cell of a matrix."""
    return _of_table(csv_table(stream, options), options)


def read_json(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row of a JSON file, or each cell of a matrix."""
    return _of_table(row_table(json_rows(stream, options), options.name), options)


def _of_table(table: FileTable, options: ImportOptions) -> Iterator[ImportedRow]:
    if table.header and table.header[0].lower() in FIGURES and ":" in table.header[-1]:
        options = replace(options, metric=options.metric or table.header[0].lower())
    is_matrix = options.metric and stated_metric(options)
    return _samples(matrix_table(table, options) if is_matrix else table, options)


def read_rows(rows: Rows, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of rows whose cells have names that are known here."""
    return _samples(row_table(rows, options.name), replace(options, columns={}, metric=""))


def stated_metric(options: ImportOptions) -> str:
    """Return the column name that was stated for the figures of a matrix or a time series."""
    if options.metric in FIGURES:
        return options.metric
    problem = f"is needed, because {options.name} does not say what its values are"
    problem = "is not a figure that relayd knows" if options.metric else problem
    remedy = "For example: rtt_ms, loss_pct, aggregate_gbps or per_flow_bps."
    raise InputError("--metric", problem, value=options.metric or None, remedy=remedy)


def _samples(table: FileTable, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row of a table."""
    if not table.header:  # each row has its fault
        yield from (Skipped(at, str(fault)) for at, fault in table.rows)
        return
    columns = _columns(table, options)
    used = {at for at, *_ in columns.values()}
    for at, column in enumerate(table.header):
        if at not in used:
            yield Skipped(table.header_line, f"column {column[:40]!r} is not used")
    usual = {
        "measured_at": options.measured_at_s,
        "connections": options.connections,
        "duration": options.duration_s,
        "tool": "csv",
        "src_vm": options.src_vm,
        "dst_vm": options.dst_vm,
        "src": split(options.src) if "src" not in columns else None,
        "dst": split(options.dst) if "dst" not in columns else None,
    }
    crowded: list[tuple[int, int, Sample]] = []
    alone: set[tuple[str, str, str]] = set()
    for number, cells in table.rows:
        setting = cells if isinstance(cells, str) else _setting(cells, columns, usual, options)
        if isinstance(setting, str):
            yield Skipped(number, setting)
            continue
        count = setting["at_once"] or 1
        for row in _figures_of(number, cells, columns, setting):
            is_rate = isinstance(row, Sample) and row.metric in _RATES
            if isinstance(row, Sample) and is_rate and count > 1:
                crowded.append((number, count, row))
                continue
            yield row
            if isinstance(row, Sample) and is_rate and "at_once" in columns:
                alone.add((row.src, row.dst, row.metric))
    yield from _of_several(crowded, alone)


def _columns(table: FileTable, options: ImportOptions) -> dict[str, tuple[int, str, float]]:
    """Return the place, the name and the factor of each column that is known, by its meaning."""
    for name, column in options.columns.items():
        if name not in _KNOWN:
            remedy = "It knows src, dst, measured_at, connections, and figures such as rtt_ms."
            problem = "names a column that relayd does not know"
            raise InputError("--columns", problem, value=name, remedy=remedy)
        if column not in table.header:
            remedy = f"The file has {', '.join(table.header)[:200]}."
            raise InputError("--columns", "is no column of the file", value=column, remedy=remedy)
    stated = {_KNOWN[name][0] for name in options.columns}
    named = [(table.header.index(column), column, name) for name, column in options.columns.items()]
    named += [
        (at, column, column.lower())
        for at, column in enumerate(table.header)
        if column not in options.columns.values()
        and _KNOWN.get(column.lower(), ("",))[0] not in stated
    ]
    found: dict[str, tuple[int, str, float]] = {}
    for at, column, name in named:
        meaning, factor = _KNOWN.get(name, ("", 1.0))
        if not meaning:
            continue
        if meaning in found:
            problem = f"states {meaning} twice, in {found[meaning][1]!r} and {column!r}"
            raise FormatError(options.name, problem, remedy="Remove one of the two columns.")
        found[meaning] = at, column, factor
    missing = [name for name in ("src", "dst") if name not in found]
    if missing and not (len(missing) == 2 and options.src and options.dst):
        problem = f"line {table.header_line} lacks the column {', '.join(missing)}"
        remedy = (
            "The first line names the columns, such as src,dst,rtt_ms,aggregate_mbps; say "
            "--columns src=NAME,dst=NAME for other names, or --src and --dst of a single pair."
        )
        raise FormatError(options.name, problem, value=",".join(table.header)[:60], remedy=remedy)
    if found.keys().isdisjoint(METRICS):
        problem = f"line {table.header_line} names no figure that relayd knows"
        remedy = (
            "Figures are rtt_ms, per_flow_mbps, aggregate_mbps, udp_mbps, jitter_ms, "
            "loss_pct, egress_cap_mbps, ingress_cap_mbps and transfer_s, or the same with another "
            "unit, such as aggregate_gbps."
        )
        raise FormatError(options.name, problem, value=",".join(table.header)[:60], remedy=remedy)
    if "measured_at" not in found:
        options.start_s()
    return found


def _volume_gb(cell: str, factor: float) -> float | None:
    volume = limits.number(cell) or 0.0
    return volume * factor if 0 < volume < inf else None


def _count(cell: str, _: float) -> int | None:
    return limits.connections(cell)


def _text(cell: str, _: float) -> str:
    return cell


_CELLS: dict[str, tuple[Callable[[str, float], Any], str]] = {
    "src": (lambda cell, _: split(cell), BAD_REGION),
    "dst": (lambda cell, _: split(cell), BAD_REGION),
    "measured_at": (
        lambda cell, _: time_s(cell),
        "measured_at is neither ISO 8601 nor seconds since 1970",
    ),
    "connections": (_count, "connections is not a count"),
    "at_once": (_count, "at_once is not a count"),
    "vms": (_count, "vms is not a count"),
    "duration": (limits.duration_s, "duration is not a duration"),
    "volume": (_volume_gb, "volume is not a volume"),
    "window_mb": (_volume_gb, "window_mb is not a window"),
    "warmed_up": (lambda cell, _: _TRUTH.get(cell.lower()), "warmed_up is neither true nor false"),
    "address": (
        lambda cell, _: cell if cell in ADDRESSES else None,
        "address is neither public nor private",
    ),
    **dict.fromkeys(("tool", "src_vm", "dst_vm", "src_zone", "dst_zone"), (_text, "")),
}
"""The reader of each column's cells, and the fault of a cell that it can't read, in order."""


def _setting(
    cells: Sequence[str],
    columns: Mapping[str, tuple[int, str, float]],
    usual: Mapping[str, Any],
    options: ImportOptions,
) -> dict[str, Any] | str:
    """Return the setting in which the figures of a row were measured, or the row's fault."""
    setting: dict[str, Any] = {}
    for name, (reader, fault) in _CELLS.items():
        at, _, factor = columns.get(name, (None, "", 1.0))
        cell = "" if at is None else cells[at].strip()
        if cell and name in ("src", "dst"):
            if options.provider and ":" not in cell:
                cell = f"{options.provider}:{cell}"
            cell = cell if split(cell) else options.named(cell)
        value: Any = reader(cell, factor) if cell else usual.get(name)
        if value is None and (cell or name in ("src", "dst", "measured_at")):
            if cell or name != "measured_at":
                return fault
            return "measured_at is empty and --measured-at was not stated"
        setting[name] = value
        if name == "dst" and setting["src"][0] == value[0]:
            return SAME_REGION
    return setting


def _figures_of(
    number: int,
    cells: Sequence[str],
    columns: Mapping[str, tuple[int, str, float]],
    setting: Mapping[str, Any],
) -> Iterator[ImportedRow]:
    """Yield the samples of one row, and its faults."""
    filled = 0
    for metric, (at, column, factor) in columns.items():
        if metric not in METRICS or not (cell := cells[at].strip()):
            continue
        filled += 1
        value = limits.number(cell)
        if value is not None:
            value *= factor
        problem = limits.fault(metric, value, column)
        if metric == "transfer_s" and setting["volume"] is None:
            missing = f"{column} of a transfer says nothing without volume_gb or volume_mb"
            problem = problem or missing
        if value is None or problem:
            yield Skipped(number, problem)
        else:
            yield _sample(metric, value, setting)
    if not filled:
        yield Skipped(number, "no figure in this row")


def _of_several(
    crowded: Sequence[tuple[int, int, Sample]], alone: Collection[tuple[str, str, str]]
) -> Iterator[ImportedRow]:
    """Yield what VMs carried in tests at once: their caps, or as much as they can carry at least.

    Where all tests of a VM are there, their sum is a sample of its cap; the estimator knows by
    their peers and windows whether the cap held them. Of a link, a test among others tells no more
    than a floor: the tests with the fewest others are samples of links.
    """
    fewest = dict.fromkeys(alone, 1)
    groups: dict[tuple[str, float, int, str], list[tuple[int, Sample]]] = {}
    for number, count, test in crowded:
        pair = test.src, test.dst, test.metric
        fewest[pair] = min(count, fewest.get(pair, count))
        for metric, region in (("egress", test.src), ("ingress", test.dst)):
            key = region, test.measured_at_s, count, metric
            groups.setdefault(key, []).append((number, test))
    for _, count, test in crowded:
        if count == fewest[test.src, test.dst, test.metric]:
            yield test
    for (region, _, count, direction), found in groups.items():
        number, first = found[0]
        outward = direction == "egress"
        peers = {test.dst if outward else test.src: test.value for _, test in found}
        if len(found) != count or len(peers) != count:
            yield Skipped(number, "fewer or more tests at once than at_once says")
            continue
        yield first._replace(
            src=region,
            dst=region,
            metric="egress_cap_mbps" if outward else "ingress_cap_mbps",
            value=sum(peers.values()),
            connections=sum(test.connections or 1 for _, test in found),
            src_vm=first.src_vm if outward else first.dst_vm,
            dst_vm="",
            src_zone=first.src_zone if outward else first.dst_zone,
            dst_zone="",
            detail=json.dumps({"together_mbps": peers}),
        )


def _sample(metric: Metric, value: float, setting: Mapping[str, Any]) -> Sample:
    (src, src_zone), (dst, dst_zone) = setting["src"], setting["dst"]
    if metric in limits.OF_ONE_VM:  # of the VM at the source, or at the destination
        outward = metric == "egress_cap_mbps"
        region, vm = (src, setting["src_vm"]) if outward else (dst, setting["dst_vm"])
        at_s, tool = setting["measured_at"], setting["tool"]
        return Sample(region, region, metric, value, at_s, tool, src_vm=vm or "")
    about_rates, vms = metric in _ABOUT_RATES, setting["vms"] or 1
    connections = 1 if metric == "per_flow_mbps" else setting["connections"]
    detail = {"volume_gb": setting["volume"]} if metric == "transfer_s" else {}
    if about_rates and setting["window_mb"]:
        detail = {"window_mb": setting["window_mb"]}
    if about_rates and vms > 1:
        detail["vms"] = vms
    return Sample(
        src,
        dst,
        metric,
        value / vms if about_rates else value,  # of one VM pair
        setting["measured_at"],
        setting["tool"],
        connections if about_rates else None,
        setting["duration"] if about_rates else None,
        about_rates and bool(setting["warmed_up"]),
        setting["src_zone"] or src_zone,
        setting["dst_zone"] or dst_zone,
        setting["src_vm"] or "",
        setting["dst_vm"] or "",
        json.dumps(detail) if detail else "",
        setting["address"],
    )
