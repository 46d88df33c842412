"""Files of a question: demands, transfers, volumes, tasks, and plans in progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.fields.specified import Field, Items
from planner.model.errors import FormatError
from relayd.files.demands import read_demands
from relayd.files.rows import read_json, read_rows, read_text


def from_file(fields: Sequence[Field], name: str) -> dict[str, Any]:
    """Return the values of fields that are in one file; ``-`` is standard input.

    Raises
    ------
    InputError
        If it can't be read, or is not of a format that says them.
    """
    first = fields[0]
    if len(fields) == 1:
        if isinstance(first.kind, Items):
            return {first.name: read_rows(name, first.key, least=first.kind.least)}
        return {first.name: _READERS[first.kind.name](name, first.key)}
    content = read_json(name, first.key)
    if not isinstance(content, dict):
        keys = ", ".join(field.key for field in fields)
        raise FormatError(first.key, f"must be a JSON object with {keys}", value=name)
    return {field.name: content[field.key] for field in fields if field.key in content}


def _read_volumes(name: str, key: str) -> Any:
    if name.endswith(".json") and isinstance(content := read_json(name, key), dict):
        return content
    return read_rows(name, key)


# By kind of field.
_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "pairs": lambda name, _: read_demands(name),
    "by_place": _read_volumes,
    "document": read_text,
}
