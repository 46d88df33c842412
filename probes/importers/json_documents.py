"""JSON documents one after another in a file, damaged ones set apart.

A tool that appends its runs to one file starts each document on a line of its own with ``{`` in
the first column, and no line inside a document does. So a file is cut before every such line and
each part must be a complete document. What does not divide that way is damage and refused, with
the place: a document that another one interrupts (the tool was restarted into the same file), one
that begins in the middle of a line, one that ends too early.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from planner.model.errors import FormatError
from probes.importers.text import Lines

MAX_DOCUMENT_CHARS = 1 << 26
"""64 million characters: 128 streams reported every second for half an hour."""


_WORD = re.compile(r"[\w.+-]*")


class Document(NamedTuple):
    """A JSON object and the line that it begins on."""

    line: int
    content: dict[str, Any]


class Noise(NamedTuple):
    """A line between documents that is no JSON."""

    line: int
    text: str


def documents(
    source: Iterator[bytes], name: str, noise: tuple[str, ...]
) -> Iterator[Document | Noise]:
    """Yield the documents of a file.

    Parameters
    ----------
    source : Iterator[bytes]
        The file.
    name : str
        What messages call it.
    noise : tuple[str, ...]
        Beginnings of lines that the tool is known to write between its documents.

    Raises
    ------
    FormatError
        If something is not a complete JSON object.
    """
    start, size = 0, 0
    parts: list[str] = []
    for number, line in enumerate(Lines(source, name, MAX_DOCUMENT_CHARS), start=1):
        if line.startswith("{") or (not parts and line.lstrip().startswith("{")):
            if parts:
                yield Document(start, _parsed(parts, start, name, next_start=number))
            start, parts, size = number, [], 0
        elif line.startswith(noise):
            yield Noise(number, line)
            continue
        elif not parts:
            if line.strip():
                raise FormatError(
                    name,
                    f"line {number} is not the beginning of a JSON object",
                    value=line[:60],
                    remedy="Give the tool's output alone, with nothing before it.",
                )
            continue
        parts.append(line)
        size += len(line)
        if size > MAX_DOCUMENT_CHARS:
            raise FormatError(
                name,
                f"the document of line {start} is longer than {MAX_DOCUMENT_CHARS:,} characters",
                remedy="Use fewer streams or longer intervals.",
            )
    if parts:
        yield Document(start, _parsed(parts, start, name, next_start=0))


def _parsed(parts: list[str], start: int, name: str, next_start: int) -> dict[str, Any]:
    text = "\n".join(parts)
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        _explain(error, text, start, name, next_start)
    except (RecursionError, ValueError) as error:
        problem = "nests too deep" if isinstance(error, RecursionError) else f"holds {error}"
        raise FormatError(name, f"the document of line {start} {problem}") from error
    if not isinstance(content, dict):  # a document begins with a brace
        raise TypeError(content)
    return content


def _explain(
    error: json.JSONDecodeError, text: str, start: int, name: str, next_start: int
) -> NoReturn:
    line, column = start + error.lineno - 1, error.colno
    doubled = "Two runs wrote into one file, or the tool was restarted; give each run its own file."
    if error.msg == "Extra data" and text[error.pos] == "{":
        raise FormatError(
            name, f"a second document begins inside line {line}, column {column}", remedy=doubled
        ) from error
    # An unfinished string or word is reported where it begins, anything else where the text ends.
    if error.msg.startswith("Unterminated string") or _WORD.fullmatch(text.rstrip(), error.pos):
        if next_start:
            raise FormatError(
                name,
                f"the document of line {start} is cut off by another one on line {next_start}",
                remedy=doubled,
            ) from error
        raise FormatError(
            name,
            f"the document of line {start} is cut off at line {line}, column {column}",
            remedy="The run was killed or the file was copied while it was written: run it again.",
        ) from error
    raise FormatError(
        name,
        f"is not valid JSON at line {line}, column {column}: {error.msg}",
        remedy="It is damaged: run the test again.",
    ) from error


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant}, which is no JSON number")


def field(content: object, *path: str) -> object:
    """Follow keys into nested objects; None where one is missing or no object."""
    for key in path:
        if not isinstance(content, dict):
            return None
        content = content.get(key)
    return content


def number_field(content: object, *path: str) -> float | None:
    """Return a finite number, or None where there is none."""
    found = field(content, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        value = float(found)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def text_field(content: object, *path: str) -> str:
    """Return a string, or ``""`` where there is none."""
    found = field(content, *path)
    return found if isinstance(found, str) else ""


def list_field(content: object, *path: str) -> list[Any]:
    """Return a list, or an empty one where there is none."""
    found = field(content, *path)
    return found if isinstance(found, list) else []
