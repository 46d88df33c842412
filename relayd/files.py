"""Files of people: rows of named fields (CSV or JSON), demands, and earlier plans."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError  # takes 70 ms

from planner.fields import json_text
from planner.model.answer import Answer
from planner.model.errors import FormatError, InputError
from planner.model.units import parse_volume_gb
from planner.transfer.plan import Plan


def read_text(name: str, what: str) -> str:
    """Read a text file; ``-`` is standard input.

    Raises
    ------
    InputError
        If it can't be read.
    FormatError
        If it is not text.
    """
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(what, f"can't be read ({error.strerror})", value=name) from None
    except UnicodeDecodeError:
        raise FormatError(what, "is not UTF-8 text", value=name) from None


def json_of(text: str, name: str, what: str) -> Any:
    """Return the content of a JSON text from the file `name`."""
    try:
        return json_text.read_json(text)
    except ValueError as error:
        raise FormatError(what, str(error), value=name) from None


def is_json(text: str, name: str) -> bool:
    """Say whether a text is JSON by its first character, or by the file's name."""
    return text.lstrip()[:1] in {"{", "["} or name.endswith(".json")


def read_json(name: str, what: str) -> Any:
    """Read a JSON file."""
    return json_of(read_text(name, what), name, what)


def read_rows(name: str, what: str, *, least: int = 1) -> list[dict[str, Any]]:
    """Read rows: CSV, or a JSON list of objects (or an object that has it under `what`).

    Parameters
    ----------
    name : str
        ``-`` is standard input.
    what : str
        What the rows are, for errors.
    least : int
        0 where a header with no rows under it is fine, as an empty JSON list always is.

    Raises
    ------
    InputError
        If the file can't be read.
    FormatError
        If it is neither, naming the line.
    """
    text = read_text(name, what)
    if is_json(text, name):
        content = json_of(text, name, what)
        if isinstance(content, dict) and isinstance(content.get(what), list):
            content = content[what]
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise FormatError(what, "must be a JSON list of objects", value=name)
        return content
    lines = csv_lines(text)
    if not lines or len(lines) - 1 < least:
        raise FormatError(what, "has no rows under its header", value=name)
    first, header = lines[0]
    if len(set(header)) < len(header):
        raise FormatError(f"{name}, line {first}", "names a column twice", value=header)
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            problem = f"has {len(cells)} of {len(header)} columns"
            raise FormatError(f"{name}, line {number}", problem, value=cells)
    return [dict(zip(header, cells, strict=True)) for _, cells in lines[1:]]


def csv_lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines of a CSV text with their numbers, without spaces, but for empty ones."""
    lines = enumerate(csv.reader(io.StringIO(text)), 1)
    stripped = [(number, [cell.strip() for cell in cells]) for number, cells in lines]
    return [(number, cells) for number, cells in stripped if any(cells)]


VOLUME_NAMES = ("volume_gb", "gb", "volume")


def read_demands(name: str) -> list[tuple[str, str, float]]:
    """Read sources, destinations and GB from a file; ``-`` is CSV on standard input.

    CSV has the columns ``src, dst, volume_gb``, or is a matrix: a first row of destinations and a
    first column of sources. JSON is ``[{"src": ..., "dst": ..., "volume_gb": ...}]`` or
    ``{src: {dst: GB}}``. A volume is a number of GB or has a unit, such as ``1.5TB``.

    Raises
    ------
    InputError
        If the file can't be read.
    FormatError
        If it is neither, naming the line.
    """
    text = read_text(name, "demands")
    found = _from_json(text, name) if is_json(text, name) else _from_csv(text, name)
    return [(src, dst, _volume(value, where)) for src, dst, value, where in found]


_Demand: TypeAlias = tuple[str, str, object, str]
"""Source, destination, volume as it is written, and the place for errors."""


def _from_json(text: str, name: str) -> Iterator[_Demand]:
    content = json_of(text, name, "demands")
    if isinstance(content, dict) and isinstance(content.get("demands"), dict | list):
        content = content["demands"]
    if isinstance(content, dict):
        for src, row in content.items():
            if not isinstance(row, dict):
                raise FormatError(
                    f"{name}, {src}",
                    "must map destinations to GB",
                    value=row,
                    remedy='Write {"src": {"dst": 100}}.',
                )
            for dst, value in row.items():
                yield src, dst, value, f"{name}, {src} -> {dst}"
        return
    for number, item in enumerate(content if isinstance(content, list) else [content], 1):
        where = f"{name}, entry {number}"
        volume = _named_volume(item) if isinstance(item, dict) else None
        if volume is None or not {"src", "dst"} <= item.keys():
            raise FormatError(where, "needs src, dst and volume_gb", value=item)
        yield str(item["src"]), str(item["dst"]), volume, where


def _named_volume(item: dict[str, Any]) -> object:
    return next((item[key] for key in VOLUME_NAMES if item.get(key) is not None), None)


def _from_csv(text: str, name: str) -> Iterator[_Demand]:
    lines = csv_lines(text)
    if len(lines) < 2:
        raise FormatError(
            "demands",
            "has no rows under its header",
            value=name,
            remedy="Write src,dst,volume_gb, or a matrix with names above and to the left.",
        )
    header = lines[0][1]
    lowered = [cell.lower() for cell in header]
    is_list = {"src", "dst"} <= set(lowered)
    column = next((c for c in VOLUME_NAMES if c in lowered), "")
    if is_list and not column:
        problem = f"has no column {' or '.join(VOLUME_NAMES)}"
        raise FormatError(f"{name}, line 1", problem, value=header)
    at = [lowered.index(key) for key in ("src", "dst", column)] if is_list else []
    for number, row in lines[1:]:
        where = f"{name}, line {number}"
        if len(row) <= max(at) if is_list else len(row) != len(header):
            problem = f"has {len(row)} of {len(header)} columns"
            raise FormatError(where, problem, value=row if is_list else row[0])
        if is_list:
            yield row[at[0]], row[at[1]], row[at[2]], where
            continue
        for dst, cell in zip(header[1:], row[1:], strict=True):
            if cell and dst != row[0]:
                yield row[0], dst, cell, f"{where}, column {dst}"


def _volume(value: object, where: str) -> float:
    # As text: JSON allows whole numbers that are beyond any float.
    words = str(value)
    try:
        return float(words)
    except ValueError:
        return parse_volume_gb(words, where)


_REMEDY = "Give a plan or its JSON."


def document_of(
    plan: Answer | Mapping[str, Any] | str, name: str | None = None
) -> Mapping[str, Any]:
    """Return a plan of any kind as a document, without checking its content.

    Parameters
    ----------
    plan : Answer, mapping or str
        Or its JSON.
    name : str, optional
        Of the file that it is from, for errors.

    Raises
    ------
    InputError
        If it is no JSON object.
    """
    if isinstance(plan, Answer):
        return plan.model_dump("json")
    found: object = plan
    if isinstance(plan, str):
        try:
            found = json_text.read_json(plan)
        except ValueError as fault:
            raise InputError("plan", str(fault), value=name, remedy=_REMEDY) from None
    if not isinstance(found, Mapping):
        raise InputError(
            "plan", "is not a plan", value=name or type(found).__name__, remedy=_REMEDY
        )
    return found


def plan_of(plan: Answer | Mapping[str, Any] | str) -> Plan:
    """Return the plan of one transfer, and check that it is complete.

    Raises
    ------
    InputError
        If it is no such plan; names the first thing that is wrong.
    """
    if isinstance(plan, Plan):
        return plan
    try:
        return TypeAdapter(Plan).validate_python(document_of(plan))
    except ValidationError as faults:
        first = faults.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            "plan", f"is not a plan of one transfer: {place}: {first['msg']}", remedy=_REMEDY
        ) from None
