"""Writes a catalogue document as TOML, one figure a line where that helps a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_of(document: Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]]) -> str:
    """Return a document of tables and lists of tables as TOML."""
    lines: list[str] = []
    for name, content in document.items():
        alone = isinstance(content, Mapping)
        for table in [content] if isinstance(content, Mapping) else content:
            lines.append(f"[{name}]" if alone else f"[[{name}]]")
            lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
            lines.append("")
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, str):
        return _text(value)
    return json.dumps(value)  # numbers and truth values are written alike


def _text(words: str) -> str:
    # JSON's escapes are TOML's, but for one character that TOML wants escaped, too.
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007F")
