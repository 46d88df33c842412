"""Files of demands: tables and matrices in any unit, networks, logs of Spark, and bills.

Networks are those of SNDlib (https://sndlib.put.poznan.pl), in its native format and in XML, and
graphs in GraphML or GML whose edges state a volume.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

from planner.fields.demands import END_NAMES, VOLUME_NAMES, Demands, Pair, demands_gb
from planner.model.catalogue import Catalogue
from planner.model.errors import FormatError, InputError
from planner.model.units import (
    MBPS_PER_GBPS,
    S_PER_H,
    duration_text,
    moved_gb,
    parse_duration_s,
    parse_rate_gbps,
    parse_volume_gb,
    volume_unit_in,
)
from probes.importers import ImportOptions
from probes.importers.graphs import graph_of
from probes.importers.tables import json_rows
from relayd.bills import read_bill
from relayd.catalogue.loading import load_catalogue
from relayd.files import belongs_elsewhere, is_json, json_of, read_text, table_rows
from relayd.integrations.spark import read_shuffles

_SNDLIB = re.compile(r"\s*\?SNDlib native|\s*(?:<\?[^>]*>\s*)?<network\b[^>]*sndlib")
_SNDLIB_DEMAND = re.compile(
    r"<demand\b[^>]*>\s*<source>\s*([^<]+?)\s*</source>\s*<target>\s*([^<]+?)\s*</target>\s*"
    r"(?:<routingUnit>[^<]*</routingUnit>\s*)?<demandValue>([^<]+)<"
    r"|^ *\S+ \( *(\S+) +(\S+) *\) +\d+ +(\S+) +(?:UNLIMITED|\d+)\s*?$",
    re.MULTILINE,
)
_GRAPH = re.compile(r"\s*(?:<[?!][^>]*>\s*)*<graphml|(?:\s*(?:Creator|Version) .*)*\s*graph\s*\[")
_FROM = re.compile("src|sou?rce|from|origin|send|client", re.IGNORECASE)
_TO = re.compile("dst|dest|to$|to[ _]|target|recei|server|sink", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[\d.,]+(?:e[+-]?\d+)?\s*", re.IGNORECASE)
_SHOWN = 12


def read_demands(
    name: str | Path,
    columns: Mapping[str, str] = {},
    regions: Mapping[str, str] = {},
    unit: str = "",
    catalogue: Catalogue | None = None,
    text: str | None = None,
) -> Demands:
    """Read demands from a file, unless its `text` is given; ``-`` is standard input.

    CSV has columns for source, destination and a volume, or is a matrix: a first row of
    destinations and a first column of sources. JSON is ``[{"src": ..., "dst": ..., "volume_gb":
    ...}]`` or ``{src: {dst: GB}}``. A volume is a number of GB unless it, its column's head or the
    corner of the matrix names a unit, or else `unit` does. A table's `columns` may say which stand
    for ``src``, ``dst`` and ``volume_gb``; `regions` where hosts of a log of Spark and nodes of a
    network are. What demands of bills (for their names, see `catalogue`), logs and rates rest on is
    in their ``notes``.

    Raises
    ------
    InputError
        If the file can't be read, or a volume is none.
    FormatError
        If it is of no such kind: says what it has, and which columns are probably meant.
    """
    name = str(name)
    is_log = text is None and (Path(name).is_dir() or name.endswith((".zst", ".zstd")))
    if text is None:
        text = "" if is_log else read_text(name, "demands")
    notes: tuple[str, ...] = ()
    if is_log or re.match(r'\s*\{"Event":\s*"SparkListener', text):
        how = "what goes from A to B is what A wrote, times B's share of what was read"
        notes = (f"Volumes follow from an event log of Spark, which has no pairs: {how}.",)
        log = name if is_log else text.encode().splitlines()
        found: Any = _of_spark(log, name, regions)
    elif bill := read_bill(text, name, catalogue or load_catalogue()):
        found, notes = bill.demands_gb(), bill.notes()
        if not found:
            problem = f"is {bill.what}, and names no traffic between two regions"
            remedy = f"`relayd study bill {shlex.quote(name)}` shows what it has."
            raise FormatError(name, problem, remedy=remedy)
    elif _SNDLIB.match(text):
        found, notes = _of_sndlib(text, name, unit)
    else:
        found = _of_text(text, name, columns, unit)
    if _SNDLIB.match(text) or _GRAPH.match(text):
        found = [(regions.get(src, src), regions.get(dst, dst), gb) for src, dst, gb in found]
    demands = demands_gb(found)
    demands.notes = notes
    return demands


def _of_spark(log: str | list[bytes], name: str, regions: Mapping[str, str]) -> Any:
    """Return what a job shuffled between regions, over all its stages."""
    found: defaultdict[Pair, float] = defaultdict(float)
    problem = "is an event log of Spark without a shuffle between two regions"
    try:
        for one in read_shuffles(log, regions):
            for (src, gb), (dst, read) in product(one.input_gb.items(), one.read_gb.items()):
                found[src, dst] += gb * read / (sum(one.read_gb.values()) or 1.0)
    except (FormatError, ArithmeticError, LookupError, TypeError) as fault:  # damaged, or cut down
        problem += f" ({fault})"
    if any(src != dst for src, dst in found):
        return found
    remedy = "Needed are tasks with Shuffle Bytes Written, and their readers in a later stage."
    raise FormatError(name, problem, remedy=remedy)


def _of_sndlib(text: str, name: str, unit: str) -> tuple[list[Any], tuple[str, ...]]:
    """Return the demands of a network of SNDlib, and a note if they are stated as rates."""
    stated = dict(re.findall(r"\b(unit|granularity)(?:\s*=\s*|>\s*)(\w+)", text))
    rows = [tuple(filter(None, groups)) for groups in _SNDLIB_DEMAND.findall(text)]
    if not (rate := stated.get("unit", "").lower().replace("persec", "/s")):
        if not unit:
            raise FormatError(name, "states no unit of its demands", remedy="Add --unit GB.")
        return [(src, dst, _in_unit(number, unit)) for src, dst, number in rows], ()
    period_s = S_PER_H
    with suppress(InputError):  # of months
        period_s = parse_duration_s(stated.get("granularity", "1h"))
    mbps = [parse_rate_gbps(f"{row[2]} {rate}", name) * MBPS_PER_GBPS for row in rows]
    found = [(*row[:2], moved_gb(one, period_s)) for row, one in zip(rows, mbps, strict=True)]
    return found, (f"Volumes are what rates of {name} move in {duration_text(period_s)}.",)


def _of_text(text: str, name: str, columns: Mapping[str, str], unit: str) -> Any:
    """Return the demands of a table, a matrix or a graph, or raise a FormatError."""
    has_json, is_graph = is_json(text, name), _GRAPH.match(text)
    try:
        if is_graph:
            graph = graph_of(text.encode(), name)
            labels = graph.nodes(data="label")
            names = {node: node if ":" in node else label or node for node, label in labels}
            rows = [
                {"src": names[u], "dst": names[v], **{str(key): data[key] for key in data}}
                for u, v, data in graph.edges.data()
            ]
        elif has_json:
            content = json_of(text, name, "demands")
            found = content.get("demands", content) if isinstance(content, dict) else content
            kinds = {*map(type, found.values() if isinstance(found, dict) else found)}
            if dict not in kinds if isinstance(found, list) else not kinds & {str, list}:
                return found
            rows = [row for _, row in json_rows(BytesIO(text.encode()), ImportOptions(name=name))]
        else:
            rows = table_rows(text, name)
        heads = [*dict.fromkeys(head for row in rows for head in row)] or [""]
        if wrong := {*columns} - {"src", "dst", "volume_gb"} or {*columns.values()} - {*heads}:
            remedy = f"Give src, dst and volume_gb; {name} has {', '.join(heads)}."
            raise InputError("columns", "names no column", value=min(wrong), remedy=remedy)
        of = {END_NAMES.get(head.lower(), head.lower()): head for head in reversed(heads)}
        sized = [head for head in heads if volume_unit_in(head)]
        volumes = [of[one] for one in VOLUME_NAMES if one in of] or sized[: len(sized) == 1]
        of |= dict(zip(["volume_gb"], volumes, strict=False)) | dict(columns)
        if {"src", "dst", "volume_gb"} <= of.keys():
            cells = [[row.get(of[one], "") for one in ("src", "dst", "volume_gb")] for row in rows]
            unit = volume_unit_in(of["volume_gb"]) or unit
            return [(str(src), str(dst), _in_unit(cell, unit)) for src, dst, cell in cells]
        corner, *targets = heads
        words = [dst for dst in targets if all(_is_word(row.get(dst, "")) for row in rows)]
        if has_json or is_graph or (words and not {row[corner] for row in rows} & {*targets}):
            raise _unknown(name, rows[0] if rows else {})
    except FormatError as fault:
        raise belongs_elsewhere(text, name, "plan shuffle") or fault from None
    unit = volume_unit_in(corner) or unit
    found = [(row[corner], dst, _in_unit(row[dst], unit)) for row in rows for dst in targets]
    return [(src, dst, cell) for src, dst, cell in found if cell and src != dst]


def _is_word(cell: Any) -> bool:
    return not re.match(r"[+-]?[.\d]|nan$|inf$|-?$", str(cell), re.IGNORECASE)


def _in_unit(cell: Any, unit: str) -> Any:
    """Return a bare number of a unit in GB; other cells as they are."""
    is_bare = unit and _NUMBER.fullmatch(str(cell))
    return parse_volume_gb(f"{cell} {unit}", "volume_gb") if is_bare else cell


def _unknown(name: str, row: Mapping[str, Any]) -> FormatError:
    """Return an error that says what a table has, and the options that would probably read it."""
    units = {head: volume_unit_in(head) for head in row}
    shown = [f"{h} ({row[h]!r}{f', in {u}' if u else ''})" for h, u in units.items()]
    words = [head for head in row if _is_word(row[head])]
    moved = [h for h in row if units[h]] + [h for h in row if _NUMBER.fullmatch(str(row[h]))]
    # Heads that begin as if they meant it go first: sorting keeps the others' order.
    src = [*sorted(words, key=lambda head: not _FROM.match(head)), "COLUMN"][0]
    others = [head for head in words if head != src]
    dst = [*sorted(others, key=lambda head: not _TO.match(head)), "COLUMN"][0]
    volume = [*moved, "COLUMN"][0]
    unit = "" if units.get(volume) else " --unit GB"
    columns = shlex.quote(f"src={src},dst={dst},volume_gb={volume}")
    more = f" and {len(shown) - _SHOWN} more" if shown[_SHOWN:] else ""
    problem = f"is no table of demands that relayd knows: it has {', '.join(shown[:_SHOWN])}{more}"
    said = f"relayd plan shuffle {shlex.quote(name)} --columns {columns}{unit}"
    return FormatError(name, problem, remedy=f"Say which are meant, probably: {said}")
