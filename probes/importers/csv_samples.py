"""Tables of users: one row a pair of regions, one column a quantity, in any order; or matrices.

Known columns, with the spellings accepted, stand in :data:`FIGURES` and :data:`OTHERS`; the unit
is part of a figure's name and converted by the factor next to it, here and nowhere else.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any, BinaryIO

from planner.model.errors import FormatError, InputError
from probes.importers import limits
from probes.importers.importer import format_table, importer_of
from probes.importers.options import BAD_REGION, SAME_REGION, ImportedRow, ImportOptions, split
from probes.importers.tables import (
    UNIT,
    FileTable,
    Rows,
    csv_table,
    factor_of,
    html_table,
    json_rows,
    matrix_table,
    row_table,
    series_table,
)
from probes.importers.text import time_s
from probes.metrics import DURATION, METRICS, THROUGHPUT, Dimension, Metric
from probes.samples import ADDRESSES, KNOWN_LIMITS, Sample, SkippedRow

_VOLUME_GB = {"mb": 1e-3, "gb": 1.0, "tb": 1e3, "mib": 2**20 / 1e9, "gib": 2**30 / 1e9}

FIGURES: dict[str, tuple[Metric, float]] = {
    f"{facts.base}_{unit}": (facts.name, factor)
    for facts in METRICS.values()
    for unit, factor in facts.dimension.units.items()
}
"""Column name to metric and the factor that turns the column's unit into the metric's."""

OTHERS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("src", "src_region", "source"), ("src", 1.0)),
    **dict.fromkeys(("dst", "dst_region", "dest", "destination"), ("dst", 1.0)),
    **{name: (name, 1.0) for name in ("src_zone", "dst_zone", "src_vm", "dst_vm")},
    **{name: (name, 1.0) for name in ("connections", "at_once", "vms", "warmed_up", "tool")},
    "address": ("address", 1.0),
    "window_mb": ("window_mb", 1.0),
    "limited_by": ("limited_by", 1.0),
    **{f"volume_{unit}": ("volume", factor) for unit, factor in _VOLUME_GB.items()},
    **{f"duration_{unit}": ("duration", factor) for unit, factor in DURATION.units.items()},
    **dict.fromkeys(("measured_at", "measured_at_s", "timestamp"), ("measured_at", 1.0)),
}

_KNOWN: dict[str, tuple[str, float]] = {**FIGURES, **OTHERS}

_WITH_UNIT = re.compile(r"([-+]?[\d.]+) ?([^\d\s.][^\s]*)")
_MOST_REPEATED = 4096  # cells of a column that are read once: long files repeat a few
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row of a CSV file, or each cell of a matrix."""
    return _of_table(csv_table(stream, options), options)


def read_markdown(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield what :func:`read` does, of a table in Markdown."""
    return _of_table(csv_table(stream, options, is_markdown=True), options)


def read_html(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield what :func:`read` does, of a table of a web page."""
    return _of_table(html_table(stream, options), options)


def read_json(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield what :func:`read` does, of rows in JSON."""
    return _of_table(row_table(json_rows(stream, options), options.name), options)


def _of_table(table: FileTable, options: ImportOptions) -> Iterator[ImportedRow]:
    if table.header and table.header[0].lower() in FIGURES and ":" in table.header[-1]:
        options = replace(options, metric=options.metric or table.header[0].lower())
    series = table if options.columns else series_table(table, options.metric)
    if series is not table or options.metric:
        stated_metric(options)
    if options.metric and series is table:
        series = matrix_table(table, options)
    return _samples(series, options)


def read_rows(rows: Rows, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of rows whose cells have names that are known here."""
    return _samples(row_table(rows, options.name), replace(options, columns={}, metric=""))


def stated_metric(options: ImportOptions) -> str:
    """Return the column name that was stated for the figures of a matrix or a time series.

    Raises an InputError if none was stated, or relayd knows no such figure.
    """
    if options.metric in FIGURES:
        return options.metric
    problem = f"is needed, because {options.name} does not say what its values are"
    problem = "is not a figure that relayd knows" if options.metric else problem
    remedy = "For example: rtt_ms, loss_pct, aggregate_gbps or per_flow_bps."
    raise InputError("--metric", problem, value=options.metric or None, remedy=remedy)


def _samples(table: FileTable, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each figure of each row of a table."""
    if not table.header:  # each row has its fault
        yield from (SkippedRow(at, str(fault)) for at, fault in table.rows)
        return
    columns = _columns(table, options)
    used = {at for at, *_ in columns.values()}
    for at, column in enumerate(table.header):
        if at not in used:
            yield SkippedRow(table.header_line, f"column {column[:40]!r} is not used")
    usual = dict.fromkeys(_CELLS) | {
        "measured_at": options.measured_at_s,
        "connections": options.connections,
        "duration": options.duration_s,
        "tool": "csv",
        "src_vm": options.src_vm,
        "dst_vm": options.dst_vm,
        "src": split(options.src) if "src" not in columns else None,
        "dst": split(options.dst) if "dst" not in columns else None,
    }
    readers = [
        (name, *columns.get(name, (None, "", 1.0)), lru_cache(_MOST_REPEATED)(read), fault)
        for name, (read, fault) in _CELLS.items()
        if name in columns or name in ("src", "dst")
    ]
    figures = {METRICS[name].name: columns[name] for name in columns if name in METRICS}
    crowded: list[tuple[int, int, Sample]] = []
    fewest: dict[tuple[str, str, str], int] = {}
    for number, cells in table.rows:
        setting = cells if isinstance(cells, str) else _setting(cells, readers, usual, options)
        if isinstance(setting, str):
            yield SkippedRow(number, setting)
            continue
        count = setting["at_once"] or 1
        for row in _figures_of(number, cells, figures, setting):
            if "at_once" in columns and isinstance(row, Sample) and row.metric in THROUGHPUT:
                pair = row.src, row.dst, row.metric
                fewest[pair] = min(count, fewest.get(pair, count))
                if count > 1:
                    crowded.append((number, count, row))
                    continue
            yield row
    yield from _of_several(crowded, fewest)


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
    named = [(column, *_KNOWN[name]) for name, column in options.columns.items()]
    named += [
        (column, *_KNOWN[column.lower()])
        for column in table.header
        if column not in options.columns.values()
        and _KNOWN.get(column.lower(), (None,))[0] not in (None, *stated)
    ]
    found: dict[str, tuple[int, str, float]] = {}
    for column, meaning, factor in named:
        if meaning in found:
            problem = f"states {meaning} twice, in {found[meaning][1]!r} and {column!r}"
            raise FormatError(options.name, problem, remedy="Remove one of the two columns.")
        found[meaning] = table.header.index(column), column, factor
    missing = [name for name in ("src", "dst") if name not in found]
    is_pair = len(missing) == 2 and options.src and options.dst
    if (missing and not is_pair) or found.keys().isdisjoint(METRICS):
        problem = f"line {table.header_line} lacks the column {', '.join(missing)}"
        if is_pair or not missing:
            problem = f"line {table.header_line} names no figure that relayd knows"
        raise FormatError(options.name, problem, remedy=_described(table, options))
    if "measured_at" not in found:
        options.start_s()
    return found


_USUAL_UNITS = {"loss": "pct", "jitter": "ms", "rtt": "ms", "per_flow": "mbps"}
_DIMENSIONS = {one.base: one.dimension for one in METRICS.values()}
_MOST_SHOWN = 8


def _guess(heading: str, cell: str) -> str:
    """Return the name of a known column that one with this heading may be; else ``""``."""
    words = [word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", heading)]
    fitting = (
        meaning
        for meaning, pattern in format_table()["guesses"].items()
        if any(re.fullmatch(pattern, word) for word in words)
    )
    if (meaning := next(fitting, "")) not in _USUAL_UNITS or re.search("[,=]", heading):
        return meaning
    dimension, stated = _DIMENSIONS[meaning], (UNIT.search(heading), _WITH_UNIT.fullmatch(cell))
    units = [words[-1], *(found[found.lastindex or 0] for found in stated if found)]
    factor = next((known for one in units if (known := factor_of(one, dimension))), None)
    usual = "" if factor else _USUAL_UNITS[meaning]  # bytes have no column
    unit = next((name for name, known in dimension.units.items() if known == factor), usual)
    return f"{meaning}_{unit}" if unit else ""


def _described(table: FileTable, options: ImportOptions) -> str:
    """Return a table's columns with an example each, and the command that may read it."""
    rows = (cells for _, cells in table.rows if not isinstance(cells, str))
    examples = [cell.strip() for cell in next(rows, [""] * len(table.header))]
    found = [*zip(table.header, examples, strict=True)]
    shown = [f"{name[:24]} ({cell[:20]})" if cell else name[:24] for name, cell in found]
    more = f" and {len(shown) - _MOST_SHOWN} more" if shown[_MOST_SHOWN:] else ""
    guesses = dict(options.columns)
    # A column of regions goes before one of hosts, and what was received before what was sent.
    for heading, cell in sorted(found, key=lambda one: ("egion" not in one[0], "sent" in one[0])):
        known = {name.rpartition("_")[0] for name in guesses if name in FIGURES} | {*guesses, ""}
        name = _guess(heading, cell)
        if known.isdisjoint((name, name.rpartition("_")[0] or name)):
            guesses[name] = heading
    if not FIGURES.keys() & guesses:
        guesses["rtt_ms"] = "COLUMN"
    words = ["--provider", "PROVIDER"] if ":" not in "".join([options.provider, *examples]) else []
    if guesses.keys().isdisjoint(("src", "dst")):
        words = ["--src", "PROVIDER:REGION", "--dst", "PROVIDER:REGION"]
    else:
        guesses = {"src": "COLUMN", "dst": "COLUMN", **guesses}
    columns = ",".join(f"{name}={heading}" for name, heading in guesses.items())
    command = shlex.join(["relayd", "import", options.name, "--columns", columns, *words])
    return f"It has {', '.join(shown[:_MOST_SHOWN])}{more}. Say what they are; a guess: {command}"


def _volume_gb(cell: str, factor: float) -> float | None:
    volume = limits.number(cell) or 0.0
    return volume * factor if 0 < volume < inf else None


_CELLS: dict[str, tuple[Callable[[str, float], Any], str]] = {
    **dict.fromkeys(("src", "dst"), (lambda cell, _: split(cell), BAD_REGION)),
    "measured_at": (
        # 13 digits are milliseconds, which Grafana writes.
        lambda cell, _: time_s(cell[:10] if re.fullmatch(r"1\d{12}", cell) else cell),
        "measured_at is neither ISO 8601 nor seconds since 1970",
    ),
    **{
        name: (lambda cell, _: limits.connections(cell), f"{name} is not a count")
        for name in ("connections", "at_once", "vms")
    },
    "duration": (limits.duration_s, "duration is not a duration"),
    "volume": (_volume_gb, "volume is not a volume"),
    "window_mb": (_volume_gb, "window_mb is not a window"),
    "warmed_up": (lambda cell, _: _TRUTH.get(cell.lower()), "warmed_up is neither true nor false"),
    "address": (
        lambda cell, _: cell if cell in ADDRESSES else None,
        "address is neither public nor private",
    ),
    "limited_by": (
        lambda cell, _: cell if cell in (*KNOWN_LIMITS, "unknown") else None,
        "limited_by is none of network, application, disk and unknown",
    ),
    **dict.fromkeys(
        ("tool", "src_vm", "dst_vm", "src_zone", "dst_zone"), (lambda cell, _: cell, "")
    ),
}
"""The reader of each column's cells, and the fault of a cell that it can't read, in order."""


def _setting(
    cells: Sequence[str],
    readers: Sequence[tuple[Any, ...]],
    usual: Mapping[str, Any],
    options: ImportOptions,
) -> dict[str, Any] | str:
    """Return the setting in which the figures of a row were measured, or the row's fault."""
    setting = {**usual}
    for name, at, _, factor, read, fault in readers:
        cell = "" if at is None else cells[at].strip()
        if cell and name in ("src", "dst"):
            if options.provider and ":" not in cell:
                cell = f"{options.provider}:{cell}"
            cell = cell if split(cell) else options.named(cell)
        value = read(cell, factor) if cell else usual[name]
        if value is None and (cell or name in ("src", "dst", "measured_at")):
            if cell or name != "measured_at":
                return str(fault)
            return "measured_at is empty and --measured-at was not stated"
        setting[name] = value
        if name == "dst" and setting["src"][0] == value[0]:
            return SAME_REGION
    return setting


def _figures_of(
    number: int,
    cells: Sequence[str],
    figures: Mapping[Metric, tuple[int, str, float]],
    setting: Mapping[str, Any],
) -> Iterator[ImportedRow]:
    """Yield the samples of one row, and its faults."""
    (src, src_zone), (dst, dst_zone) = setting["src"], setting["dst"]
    src_vm, dst_vm, vms = setting["src_vm"] or "", setting["dst_vm"] or "", setting["vms"] or 1
    at_s, tool = setting["measured_at"], setting["tool"]
    filled = [metric for metric, (at, *_) in figures.items() if cells[at].strip()]
    if not filled:
        yield SkippedRow(number, "no figure in this row")
    for metric in filled:
        at, column, factor = figures[metric]
        value, detail = _figure(cells[at].strip(), METRICS[metric].dimension, factor), {}
        problem = limits.fault(metric, value, column)
        if metric == "transfer_s":
            detail["volume_gb"] = setting["volume"]
            if not (problem or setting["volume"]):
                problem = f"{column} of a transfer says nothing without volume_gb or volume_mb"
        if value is None or problem:
            yield SkippedRow(number, problem)
        elif end := METRICS[metric].cap_of:
            region, vm = (src, src_vm) if end == "src" else (dst, dst_vm)
            yield Sample(region, region, metric, value, at_s, tool, src_vm=vm)
        else:
            is_rate = METRICS[metric].is_rate
            if setting["limited_by"] and (is_rate or metric == "transfer_s"):
                detail["limited_by"] = setting["limited_by"]
            if is_rate and setting["window_mb"]:
                detail["window_mb"] = setting["window_mb"]
            if is_rate and vms > 1:
                detail["vms"] = vms
            connections = 1 if METRICS[metric].flows == "one" else setting["connections"]
            yield Sample(
                src=src,
                dst=dst,
                metric=metric,
                value=value / vms if is_rate else value,  # of one VM pair
                measured_at_s=at_s,
                tool=tool,
                connections=connections if is_rate else None,
                duration_s=setting["duration"] if is_rate else None,
                warmed_up=is_rate and bool(setting["warmed_up"]),
                src_zone=setting["src_zone"] or src_zone,
                dst_zone=setting["dst_zone"] or dst_zone,
                src_vm=src_vm,
                dst_vm=dst_vm,
                detail=json.dumps(detail) if detail else "",
                address=setting["address"],
            )


def _figure(cell: str, dimension: Dimension, factor: float) -> float | None:
    """Read a figure in the unit of its column, or in the one that stands behind it."""
    if (value := limits.number(cell)) is None and (found := _WITH_UNIT.fullmatch(cell)):
        value, told = limits.number(found[1]), factor_of(found[2], dimension)
        return None if value is None or told is None else value * told
    return None if value is None else value * factor


def _of_several(
    crowded: Sequence[tuple[int, int, Sample]], fewest: Mapping[tuple[str, str, str], int]
) -> Iterator[ImportedRow]:
    """Yield what VMs carried in tests at once: their caps, or as much as they can carry at least.

    Where all tests of a VM are there, their sum is a sample of its cap; the estimator knows by
    their peers and windows whether the cap held them. Of a link, a test among others tells no more
    than a floor: the tests with the `fewest` others of its pair and metric are samples of links.
    """
    groups: dict[tuple[str, float, int, str], list[tuple[int, Sample]]] = {}
    for number, count, test in crowded:
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
            yield SkippedRow(number, "fewer or more tests at once than at_once says")
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


IMPORTER = importer_of(
    "csv", {"": read, "markdown": read_markdown, "html": read_html, "json": read_json}
)
