"""Files of people: rows of named fields (CSV or JSON), and earlier plans.

:func:`sync` waits until any file is on disk.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shlex
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError  # takes 70 ms

from planner.fields import json_text
from planner.model.answer import Answer
from planner.model.errors import FormatError, InputError
from planner.transfer.plan import Plan


def read_text(name: str, what: str) -> str:
    """Read a text file, as it is or compressed with gzip; ``-`` is standard input.

    Raises :class:`InputError` if it can't be read, :class:`FormatError` if it is not text.
    """
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return io.StringIO(content.decode("utf-8-sig"), None).read()  # with \n at the ends of lines
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(what, f"is damaged: {error}", value=name) from None
    except OSError as error:
        raise InputError(what, f"can't be read ({error.strerror})", value=name) from None
    except UnicodeDecodeError:
        raise FormatError(what, "is not UTF-8 text", value=name) from None


def json_of(text: str, name: str, what: str) -> Any:
    """Return the content of a JSON text from the file `name`.

    Raises FormatError if it is not valid JSON; names `what`, and the file as the value.
    """
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
    """Read rows: a table, JSON lines, or a JSON list of objects, also under `what` in an object.

    The name ``-`` is standard input. The least is 0 where a header with no rows under it is fine,
    as an empty JSON list always is. Raises :class:`InputError` if the file can't be read,
    :class:`FormatError` if it is neither, naming the line.
    """
    text = read_text(name, what)
    if is_json(text, name):
        in_lines = text.lstrip().startswith("{") and "\n{" in text.strip()
        lines = text.split("\n") if in_lines else [text]
        found = [json_of(line, name, what) for line in lines if line.strip()]
        content = found if in_lines else found[0]
        if isinstance(content, dict) and isinstance(content.get(what), list):
            content = content[what]
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise FormatError(what, "must be a JSON list of objects", value=name)
        return content
    return table_rows(text, name, least)


def table_rows(text: str, name: str, least: int = 1) -> list[dict[str, Any]]:
    """Return the rows of a table, without spaces around cells; see :func:`read_rows`.

    Tables are read as :mod:`probes.importers.tables` reads them: commas, semicolons or tabs
    separate columns, or it is one of Markdown or HTML.
    """
    from probes.importers.options import ImportOptions  # with all that imports need
    from probes.importers.tables import BLANK, REPEATED_HEADER, csv_table, html_table

    is_page = re.match(r"\s*<(?!\?)", text) and "<table" in text.lower()
    if not least and not is_page and text.strip() and "\n" not in text.strip():
        return []  # a header alone
    stream, options = io.BytesIO((text.rstrip("\n") + "\n").encode()), ImportOptions(name=name)
    is_markdown = text.lstrip().startswith("|")
    table = (
        html_table(stream, options)
        if is_page
        else csv_table(stream, options, is_markdown=is_markdown)
    )
    rows = []
    for line, cells in table.rows:
        if isinstance(cells, list):
            rows.append(dict(zip(table.header, map(str.strip, cells), strict=True)))
        elif cells not in (BLANK, REPEATED_HEADER):
            raise FormatError(f"{name}, line {line}", f"has {cells}")
    return rows


def belongs_elsewhere(text: str, name: str, command: str) -> FormatError | None:
    """Return the error that a file is for another command than `command`, which can't read it.

    None if nothing says so: tables and graphs may hold anything, unless they name a figure.
    """
    from probes.importers import HEAD_BYTES, identified  # with all formats
    from probes.importers.csv_samples import FIGURES

    try:
        found = identified(text[:HEAD_BYTES].encode(), name)
    except FormatError as fault:
        is_for_another = "`relayd " in str(fault) and command not in str(fault)
        return fault if is_for_another else None
    is_table = found.importer.name in {"csv", "graph"}
    if found.kind.is_guess or (is_table and not FIGURES.keys() & {*re.findall(r"\w+", text)}):
        return None
    problem = f"is {found.what}: what was measured"
    return FormatError(name, problem, remedy=f"Use `relayd import {shlex.quote(name)}`.")


_REMEDY = "Give a plan or its JSON."


def document_of(
    plan: Answer | Mapping[str, Any] | str, name: str | None = None
) -> Mapping[str, Any]:
    """Return a plan of any kind, or its JSON, as a document, without checking its content.

    The name is that of its file. Raises :class:`InputError` if it is no JSON object.
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
        problem = "is not a plan"
        raise InputError("plan", problem, value=name or type(found).__name__, remedy=_REMEDY)
    return found


def plan_of(plan: Answer | Mapping[str, Any] | str) -> Plan:
    """Return the plan of one transfer, and check that it is complete.

    Raises :class:`InputError` if it is no such plan, and names the first thing that is wrong.
    """
    if isinstance(plan, Plan):
        return plan
    try:
        return TypeAdapter(Plan).validate_python(document_of(plan))
    except ValidationError as faults:
        first = faults.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"is not a plan of one transfer: {place}: {first['msg']}"
        raise InputError("plan", problem, remedy=_REMEDY) from None


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
