"""Overlays: dated files of imported prices, which lie over the built-in tables.

``relayd data catalogue import`` and ``update`` write one; each counts until undone, the newest
first. They lie in ``RELAYD_CATALOGUE_DIR``, else in the user's data folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import NamedTemporaryFile

from platformdirs import user_data_path

from planner.model.errors import InputError
from relayd.files import sync

_NAME = r"\d{4}-\d{4}-\d\d-\d\d-[a-z0-9-]+\.toml"
_UNDONE = "undone"
_MOST = 9999


def overlay_folder() -> Path:
    """Return the folder of overlays; it need not exist."""
    chosen = os.environ.get("RELAYD_CATALOGUE_DIR")
    return Path(chosen) if chosen else user_data_path("relayd", appauthor=False) / "catalogue"


def overlays_in_force() -> list[Path]:
    """Return the overlays that count, the oldest first.

    Raises InputError if the folder cannot be read.
    """
    where = overlay_folder()
    try:
        names = [path.name for path in where.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        remedy = "Make it readable, or name another folder in RELAYD_CATALOGUE_DIR."
        raise InputError(str(where), problem, remedy=remedy) from None
    return [Path(where, name) for name in sorted(names) if re.fullmatch(_NAME, name)]


def add_overlay(text: str, source: str, on: date) -> Path:
    """Write an overlay, TOML, as a whole or not at all; return its path.

    `source` is a word for the file's name, such as ``azure-retail``.

    Raises InputError if the folder cannot be written, or all numbers are in use; nothing has
    changed then.
    """
    folder = overlay_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            # The highest number in use, also among what was undone: none is used twice.
            others = [*folder.glob("*.toml"), *(folder / _UNDONE).glob("*.toml")]
            numbers = [int(one.name[:4]) for one in others if re.fullmatch(_NAME, one.name)]
            for number in range(max(numbers, default=0) + 1, _MOST + 1):
                path = folder / f"{number:04}-{on.isoformat()}-{source}.toml"
                try:
                    # Unlike a renaming, a link replaces nothing that another process wrote.
                    path.hardlink_to(file.name)
                except FileExistsError:
                    continue
                sync(folder)
                return path
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Free some space or make it writable; nothing has changed."
        raise InputError(str(folder), problem, remedy=remedy) from None
    raise InputError(str(folder), "is full of overlays", remedy="Undo some of them.")


def undo_overlay(name: str | None = None) -> list[Path]:
    """Set the newest overlay aside, or the one that is named and all after it.

    An overlay holds what differs from those before it, so none of them counts without those.
    Returns where they lie now, the newest first.

    Raises InputError if no overlay is in force, none has that name, or the folder cannot be
    written.
    """
    in_force = overlays_in_force()
    if not in_force:
        raise InputError("undo", "finds no overlay", remedy="The catalogue is as relayd ships it.")
    names = [path.name for path in in_force]
    if name is None:
        first = len(names) - 1
    else:
        fitting = [k for k, known in enumerate(names) if name in {known, known[:4], known[:-5]}]
        if not fitting:
            raise InputError("undo", "is no overlay", value=name, remedy=f"Known: {names}.")
        first = fitting[0]
    aside = in_force[0].parent / _UNDONE
    try:
        aside.mkdir(exist_ok=True)
        undone = [path.replace(aside / path.name) for path in reversed(in_force[first:])]
        sync(aside.parent)
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Make the folder writable, or move the overlay away by hand."
        raise InputError(str(aside), problem, remedy=remedy) from None
    return undone


# --- TOML ---------------------------------------------------------------------------------------


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
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


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
