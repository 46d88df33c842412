"""Demand matrices in files: CSV as a list or a matrix, JSON as a list or nested objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from planner.model.errors import FormatError
from planner.model.units import parse_volume_gb
from relayd.files.rows import csv_lines, is_json, json_of, read_text

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
