"""Rows of named fields in files: CSV under a header, or a JSON list of objects."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

from planner.fields import json_text
from planner.model.errors import FormatError, InputError


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
