"""Files of demands: tables and matrices in any unit, networks, logs of engines, and bills.

A file is recognised by what is in it. Of SNDlib's networks (https://sndlib.put.poznan.pl), the
native format and XML are read; of GraphML and GML, edges that state a volume.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

from planner.fields.demands import END_NAMES, VOLUME_NAMES, Demands, demands_gb
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
_NUMBER = re.compile(r"\s*[\d.,]+(?:e[+-]?\d+)?\s*", re.IGNORECASE)
_SHOWN = 12


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
    name, known = str(name), catalogue or load_catalogue()
    found: Any = None
    notes: tuple[str, ...] = ()
    is_log = Path(name).is_dir() or name.endswith((".zst", ".zstd"))
    text = "" if is_log else read_text(name, "demands")
    if is_log or _SPARK.match(text):
        found, notes = _of_spark(name, regions, known)
    elif bill := read_bill(text, name, known):
        if not (found := bill.demands_gb()):
            problem = f"is {bill.what}, and names no traffic between two regions"
            remedy = f"`relayd study bill {shlex.quote(name)}` shows what it has."
            raise FormatError(name, problem, remedy=remedy)
        notes = bill.notes()
    elif _SNDLIB.match(text):
        found, notes = _of_sndlib(text, name, unit)
    else:
        found = _of_text(text, name, columns, unit, command)
    demands = demands_gb(found)
    if regions:
        placed: Counter[tuple[str, str]] = Counter()
        for ends, gb in demands.items():
            src, dst = (_placed(end, regions) for end in ends)
            placed[src, dst] += gb  # type: ignore[assignment]
        demands = demands_gb(placed)
    demands.notes = notes
    return demands


def _placed(name: str, regions: Mapping[str, str]) -> str:
    return next((region for given, region in regions.items() if fnmatchcase(name, given)), name)


# ---- tables --------------------------------------------------------------------------------------


def _of_text(
    text: str, name: str, columns: Mapping[str, str], unit: str, command: str
) -> Mapping[str, Any] | list[tuple[str, str, Any]]:
    """Return demands of a table, a matrix or a graph, or raise a FormatError."""
    try:
        if _GRAPH.match(text):
            edges = graph_of(text.encode(), name).edges(data=True)
            rows: Any = [{"src": u, "dst": v} | data for u, v, data in edges]
        elif is_json(text, name):
            content = json_of(text, name, "demands")
            found = content.get("demands", content) if isinstance(content, dict) else content
            if isinstance(found, dict) and not {*map(type, found.values())} & {str, list}:
                return found
            if isinstance(found, list) and not any(isinstance(one, dict) for one in found):
                return found
            rows = [row for _, row in json_rows(BytesIO(text.encode()), ImportOptions(name=name))]
        else:
            rows = csv_rows(text, name, "demands", least=1)
        found = _of_table(rows, name, columns, unit)
        if found is None and (is_json(text, name) or (found := _of_matrix(rows, unit)) is None):
            raise _unknown(name, rows[0], command)
    except FormatError as fault:
        raise _measured(text, name) or fault from None
    return found


def _of_table(
    rows: Sequence[Mapping[str, Any]], name: str, columns: Mapping[str, str], unit: str
) -> list[tuple[str, str, Any]] | None:
    """Return source, destination and volume of rows; None if no columns are called so."""
    heads = [*dict.fromkeys(head for row in rows for head in row)]
    if wrong := {*columns} - {"src", "dst", "volume_gb"} or {*columns.values()} - {*heads}:
        remedy = f"Give src, dst and volume_gb; {name} has {', '.join(heads[:_SHOWN])}."
        raise InputError("--columns", "names no column", value=min(wrong), remedy=remedy)
    of = {END_NAMES.get(head.lower(), head.lower()): head for head in reversed(heads)}
    sized = [head for head in heads if volume_unit_in(head)]
    named = [of[one] for one in VOLUME_NAMES if one in of] or sized[: len(sized) == 1]
    of |= {**dict(zip(("volume_gb",), named, strict=False)), **columns}
    if not {"src", "dst", "volume_gb"} <= of.keys():
        return None
    src, dst, volume = of["src"], of["dst"], of["volume_gb"]
    unit = volume_unit_in(volume) or unit
    return [(str(r.get(src)), str(r.get(dst)), _in_unit(r.get(volume), unit)) for r in rows]


def _of_matrix(rows: Sequence[Mapping[str, str]], unit: str) -> list[tuple[str, str, Any]] | None:
    """Return the cells of a matrix that hold something; None if it is none."""
    corner, *targets = rows[0]
    is_square = {row[corner] for row in rows} & {*targets}
    if not is_square and any(all(_is_word(row[dst]) for row in rows) for dst in targets):
        return None
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


def _of_sndlib(text: str, name: str, unit: str) -> tuple[Counter[tuple[str, str]], tuple[str, ...]]:
    """Return the demands of a network of SNDlib, with a note; parallel ones are added."""
    stated = dict(re.findall(r"\b(unit|granularity)(?:\s*=\s*|>)(\w+)", text))
    unit = stated.get("unit", "").lower().replace("persec", "/s") or unit
    if not unit:
        remedy = "Say it: --unit Mbit/s, or --unit GB."
        raise FormatError(name, "states no unit of its demands", remedy=remedy)
    period_s = S_PER_H
    with suppress(InputError):  # of months
        period_s = parse_duration_s(stated.get("granularity", "1h"))
    found: Counter[tuple[str, str]] = Counter()
    for groups in _SNDLIB_DEMAND.findall(re.split(r"(?m)^\s*DEMANDS", text)[-1]):
        src, dst, number = map(unescape, filter(None, groups))
        found[src, dst] += _in_unit(number, unit, period_s)
    note = f"Volumes are what rates of {name} move in {duration_text(period_s)}."
    return found, (note,) if "/" in unit else ()


def _of_spark(
    name: str, regions: Mapping[str, str], catalogue: Catalogue
) -> tuple[Counter[tuple[str, str]], tuple[str, ...]]:
    """Return what a job shuffled between regions over all its stages, with a note."""

    def region(host: str) -> str:
        # https://docs.aws.amazon.com/vpc/latest/userguide/vpc-dns.html: that of us-east-1 alone has
        # no region, as ip-10-0-1-5.us-east-1.compute.internal has. Google's have the zone.
        parts = ["us-east-1"] if host.endswith(".ec2.internal") else [host, *host.split(".")]
        by_name = (only_region(one, catalogue) for one in parts)
        given = _placed(host, regions)
        return given if given != host else next(filter(None, by_name), "")

    found: Counter[tuple[str, str]] = Counter()
    for shuffle in read_shuffles(name, region):
        found.update(shuffle.demands_gb)
    if not found:
        problem = "is an event log of Spark without a shuffle between two regions"
        remedy = (
            "Tasks that wrote (Shuffle Bytes Written) and tasks of a later stage that read are "
            "needed; --regions HOST=REGION,... says where hosts are."
        )
        raise FormatError(name, problem, remedy=remedy)
    return found, (
        f"Volumes follow from {name}, an event log of Spark, which has no pairs: what goes from A "
        "to B is what A wrote, times B's share of what was read.",
    )


# ---- what is none --------------------------------------------------------------------------------


def _unknown(name: str, row: Mapping[str, Any], command: str) -> FormatError:
    """Return an error that says what a table has, and the command that would probably read it."""
    units = {head: volume_unit_in(head) for head in row}
    shown = [f"{h} ({row[h]!r}{f', in {u}' if u else ''})" for h, u in units.items()][:_SHOWN]
    words = [head for head in row if _is_word(str(row[head]))]
    src, dst = ([h for h in words if re.match(p, h, re.IGNORECASE)] for p in (_FROM, _TO))
    volume = [head for head in row if units[head] or volume_unit_in(str(row[head]))]
    volume += [head for head in row if _NUMBER.fullmatch(str(row[head]))]
    first = next(iter([*src, *(h for h in words if h not in dst)]), "COLUMN")
    second = next(iter([*dst, *(h for h in words if h != first)]), "COLUMN")
    moved = next(iter(volume), "COLUMN")
    columns = shlex.quote(f"src={first},dst={second},volume_gb={moved}")
    said = f"relayd {command} {shlex.quote(name)} --columns {columns}"
    said += "" if units.get(moved) else " --unit GB"
    more = f" and {len(row) - _SHOWN} more" if row.keys() - [*row][:_SHOWN] else ""
    problem = f"is no table of demands that relayd knows: it has {', '.join(shown)}{more}"
    return FormatError(name, problem, remedy=f"Say which are meant, probably: {said}")


_FROM, _TO = "src|sou?rce|from|origin|send|client", "dst|dest|to$|to[ _]|target|recei|server|sink"


def _measured(text: str, name: str) -> FormatError | None:
    """Return an error if a text is what a tool measured, or a table of that."""
    with suppress(FormatError):
        found = identified(text[:HEAD_BYTES].encode(), name)
        is_table = found.importer.name in ("csv", "graph")
        if not found.kind.is_guess and (not is_table or FIGURES.keys() & re.findall(r"\w+", text)):
            problem = f"is {found.what}: what was measured, not what is to be sent"
            return FormatError(name, problem, remedy=f"Use `relayd import {shlex.quote(name)}`.")
    return None
