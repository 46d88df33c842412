"""Files of demands: tables and matrices in any unit, networks, logs of engines, and bills.

A file is recognised by what is in it. Of SNDlib's networks (https://sndlib.put.poznan.pl), the
native format and XML are read; of GraphML and GML, edges that state a volume.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

from planner.fields.demands import END_NAMES, VOLUME_NAMES, Demands, Pair, demands_gb
from planner.model.aliases import only_region
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
from probes.importers import HEAD_BYTES, ImportOptions, identified
from probes.importers.csv_samples import FIGURES
from probes.importers.graphs import graph_of
from probes.importers.tables import json_rows
from relayd.catalogue.loading import load_catalogue
from relayd.demands.bills import read_bill
from relayd.files import csv_rows, is_json, json_of, read_text
from relayd.integrations.spark import read_shuffles

_SPARK = re.compile(r'\s*\{"Event":\s*"SparkListener')
_GRAPH = re.compile(r"\s*(?:<[?!][^>]*>\s*)*<graphml|(?:\s*(?:Creator|Version) .*)*\s*graph\s*\[")
_SNDLIB = re.compile(r"\s*\?SNDlib native|\s*(?:<\?[^>]*>\s*)?<network\b[^>]*sndlib")
_SNDLIB_DEMAND = re.compile(
    r"<demand\b.*?<source>\s*(.*?)\s*</source>\s*<target>\s*(.*?)\s*</target>.*?<demandValue>(.*?)<"
    r"|^ *\S+ \( *(\S+) +(\S+) *\) +\d+ +(\S+) +(?:UNLIMITED|\d+)\s*?$",
    re.DOTALL | re.MULTILINE,
)
_FROM = re.compile("src|sou?rce|from|origin|send|client", re.IGNORECASE)
_TO = re.compile("dst|dest|to$|to[ _]|target|recei|server|sink", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[\d.,]+(?:e[+-]?\d+)?\s*", re.IGNORECASE)
_SHOWN = 12
_OF_SPARK = (
    "Volumes follow from an event log of Spark, which has no pairs: what goes from A to B is what "
    "A wrote, times B's share of what was read."
)


def read_demands(
    name: str | Path,
    *,
    columns: Mapping[str, str] = {},
    regions: Mapping[str, str] = {},
    unit: str = "",
    catalogue: Catalogue | None = None,
    command: str = "plan shuffle",
) -> Demands:
    """Read demands from a file; ``-`` is standard input.

    CSV has columns ``src``, ``dst`` and a volume, or is a matrix: a first row of destinations and a
    first column of sources. JSON is ``[{"src": ..., "dst": ..., "volume_gb": ...}]`` or ``{src:
    {dst: GB}}``. A volume is a number of GB unless it, its column's head or the corner of the
    matrix names a unit. What demands of bills, logs and rates rest on is in their ``notes``.

    Parameters
    ----------
    name : str or Path
    columns : mapping, optional
        Of a table: ``src``, ``dst`` and ``volume_gb`` to the columns that it has instead.
    regions : mapping, optional
        Regions by the names that the file has; ``*`` stands for anything.
    unit : str
        Of figures without one, such as ``TiB`` or ``Mbit/s``: a rate stands for what it moves in
        the period that the file states, else in an hour.
    catalogue : Catalogue, optional
        For names on bills and in logs; by default relayd's own.
    command : str
        That errors say how to call.

    Raises
    ------
    InputError
        If the file can't be read, or a volume is none.
    FormatError
        If it is of no such kind: says what it has, and which columns are probably meant.
    """
    name, known, period_s = str(name), catalogue or load_catalogue(), S_PER_H
    is_log = Path(name).is_dir() or name.endswith((".zst", ".zstd"))
    text = "" if is_log else read_text(name, "demands")
    found: Any = None
    notes: tuple[str, ...] = ()
    if is_log or _SPARK.match(text):
        found, notes = _of_spark(name, regions, known), (_OF_SPARK,)
    elif bill := read_bill(text, name, known):
        if not (found := bill.demands_gb()):
            problem = f"is {bill.what}, and names no traffic between two regions"
            remedy = f"`relayd study bill {shlex.quote(name)}` shows what it has."
            raise FormatError(name, problem, remedy=remedy)
        notes = bill.notes()
    elif _SNDLIB.match(text):
        found, unit, period_s = _of_sndlib(text, name, unit)
    else:
        found = _of_text(text, name, columns, unit, command)
    if not notes and re.search("(?i)/s|bps", unit):
        notes = (f"Volumes are what rates of {name} move in {duration_text(period_s)}.",)
    demands = demands_gb(found)
    if regions:
        placed: defaultdict[Pair, float] = defaultdict(float)
        for (src, dst), gb in demands.items():
            placed[_placed(src, regions), _placed(dst, regions)] += gb
        demands = demands_gb(placed)
    demands.notes = notes
    return demands


def _placed(name: str, regions: Mapping[str, str]) -> str:
    return next((region for given, region in regions.items() if fnmatchcase(name, given)), name)


# ---- tables --------------------------------------------------------------------------------------


def _of_text(text: str, name: str, columns: Mapping[str, str], unit: str, command: str) -> Any:
    """Return the demands of a table, a matrix or a graph, or raise a FormatError."""
    has_json, rows = is_json(text, name), list[dict[str, Any]]()
    try:
        if _GRAPH.match(text):
            edges = graph_of(text.encode(), name).edges(data=True)
            rows = [{"src": u, "dst": v} | data for u, v, data in edges]
        elif has_json:
            content = json_of(text, name, "demands")
            found = content.get("demands", content) if isinstance(content, dict) else content
            kinds = {*map(type, found.values() if isinstance(found, dict) else found)}
            if dict not in kinds if isinstance(found, list) else not kinds & {str, list}:
                return found
            rows = [row for _, row in json_rows(BytesIO(text.encode()), ImportOptions(name=name))]
        else:
            rows = csv_rows(text, name, "demands", least=1)
        if not any(rows):
            raise FormatError(name, "holds no demands", remedy="Write rows of src, dst, volume_gb.")
        heads = [*dict.fromkeys(head for row in rows for head in row)]
        if wrong := {*columns} - {"src", "dst", "volume_gb"} or {*columns.values()} - {*heads}:
            remedy = f"Give src, dst and volume_gb; {name} has {', '.join(heads[:_SHOWN])}."
            raise InputError("--columns", "names no column", value=min(wrong), remedy=remedy)
        of = {END_NAMES.get(head.lower(), head.lower()): head for head in reversed(heads)}
        sized = [head for head in heads if volume_unit_in(head)]
        volumes = [of[one] for one in VOLUME_NAMES if one in of] or sized[: len(sized) == 1]
        of |= dict.fromkeys(["volume_gb"][: len(volumes)], "".join(volumes[:1])) | dict(columns)
        if {"src", "dst", "volume_gb"} <= of.keys():
            src, dst, volume = of["src"], of["dst"], of["volume_gb"]
            unit = volume_unit_in(volume) or unit
            return [(str(r.get(src)), str(r.get(dst)), _in_unit(r.get(volume), unit)) for r in rows]
        corner, *targets = heads
        is_square = {row[corner] for row in rows} & {*targets}
        words = [dst for dst in targets if all(_is_word(row.get(dst, "")) for row in rows)]
        if _GRAPH.match(text) or has_json or (words and not is_square):
            raise _unknown(name, rows[0], command)
    except FormatError as fault:
        raise _measured(text, name) or fault from None
    unit = volume_unit_in(corner) or unit
    cells = [(row[corner], dst, _in_unit(row[dst], unit)) for row in rows for dst in targets]
    return [cell for cell in cells if cell[2] and cell[0] != cell[1]]


def _is_word(cell: str) -> bool:
    return not re.match(r"[+-]?[.\d]|nan$|inf$|-?$", cell, re.IGNORECASE)


def _in_unit(cell: Any, unit: str, period_s: float = S_PER_H) -> Any:
    """Return a bare number in GB: of a rate, what it moves in a period; other cells as they are."""
    if not unit or not _NUMBER.fullmatch(str(cell)):
        return cell
    with suppress(InputError):
        return moved_gb(parse_rate_gbps(f"{cell} {unit}") * MBPS_PER_GBPS, period_s)
    return parse_volume_gb(f"{cell} {unit}", "--unit")


# ---- networks, and logs --------------------------------------------------------------------------


def _of_sndlib(text: str, name: str, unit: str) -> tuple[Counter[Pair], str, float]:
    """Return the demands of a network of SNDlib, parallel ones added; their unit and period (s)."""
    stated = dict(re.findall(r"\b(unit|granularity)(?:\s*=\s*|>)(\w+)", text))
    if not (unit := stated.get("unit", "").lower().replace("persec", "/s") or unit):
        remedy = "Say it: --unit Mbit/s, or --unit GB."
        raise FormatError(name, "states no unit of its demands", remedy=remedy)
    period_s, found = S_PER_H, Counter[Pair]()
    with suppress(InputError):  # of months
        period_s = parse_duration_s(stated.get("granularity", "1h"))
    for groups in _SNDLIB_DEMAND.findall(re.split(r"(?m)^\s*DEMANDS", text)[-1]):
        src, dst, number = map(unescape, filter(None, groups))
        found[src, dst] += _in_unit(number, unit, period_s)
    return found, unit, period_s


def _of_spark(name: str, regions: Mapping[str, str], catalogue: Catalogue) -> Counter[Pair]:
    """Return what a job shuffled between regions, over all its stages."""

    @cache  # each task names its host
    def region(host: str) -> str:
        # https://docs.aws.amazon.com/vpc/latest/userguide/vpc-dns.html: that of us-east-1 alone has
        # no region, as ip-10-0-1-5.us-east-1.compute.internal has. Google's have the zone.
        parts = ["us-east-1"] if host.endswith(".ec2.internal") else [host, *host.split(".")]
        by_name = (only_region(one, catalogue) for one in parts)
        given = _placed(host, regions)
        return given if given != host else next(filter(None, by_name), "")

    found = Counter[Pair]()
    for shuffle in read_shuffles(name, region):
        found.update(shuffle.demands_gb)
    if not found:
        problem = "is an event log of Spark without a shuffle between two regions"
        remedy = (
            "Tasks that wrote (Shuffle Bytes Written) and tasks of a later stage that read are "
            "needed; --regions HOST=REGION,... says where hosts are."
        )
        raise FormatError(name, problem, remedy=remedy)
    return found


# ---- what is none --------------------------------------------------------------------------------


def _unknown(name: str, row: Mapping[str, Any], command: str) -> FormatError:
    """Return an error that says what a table has, and the command that would probably read it."""
    units = {head: volume_unit_in(head) for head in row}
    shown = [f"{h} ({row[h]!r}{f', in {u}' if u else ''})" for h, u in units.items()]
    words = [head for head in row if _is_word(str(row[head]))]
    moved = [h for h in row if units[h]] + [h for h in row if _NUMBER.fullmatch(str(row[h]))]
    # Heads that begin as if they meant it go first: sorting keeps the others' order.
    src = [*sorted(words, key=lambda h: not _FROM.match(h)), "COLUMN"][0]
    dst = [*sorted({*words} - {src}, key=lambda h: (not _TO.match(h), words.index(h))), "COLUMN"][0]
    chosen = f"src={src},dst={dst},volume_gb={[*moved, 'COLUMN'][0]}"
    said = f"relayd {command} {shlex.quote(name)} --columns {shlex.quote(chosen)}"
    said += "" if moved and units[moved[0]] else " --unit GB"
    more = f" and {len(shown) - _SHOWN} more" if shown[_SHOWN:] else ""
    problem = f"is no table of demands that relayd knows: it has {', '.join(shown[:_SHOWN])}{more}"
    return FormatError(name, problem, remedy=f"Say which are meant, probably: {said}")


def _measured(text: str, name: str) -> FormatError | None:
    """Return an error if a text is what a tool measured, or a table of that."""
    with suppress(FormatError):
        found = identified(text[:HEAD_BYTES].encode(), name)
        is_table = found.importer.name in ("csv", "graph")
        if not found.kind.is_guess and (not is_table or FIGURES.keys() & re.findall(r"\w+", text)):
            problem = f"is {found.what}: what was measured, not what is to be sent"
            return FormatError(name, problem, remedy=f"Use `relayd import {shlex.quote(name)}`.")
    return None
