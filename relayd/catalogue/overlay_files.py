"""Writes overlays as a whole or not at all, and takes them back."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from tempfile import NamedTemporaryFile

from planner.model.errors import InputError
from relayd.catalogue.overlays import NAME, overlay_folder, overlays_in_force

UNDONE = "undone"
_MOST = 9999


def add_overlay(text: str, source: str, on: date) -> Path:
    """Write an overlay as a whole or not at all, and return its path.

    Parameters
    ----------
    text : str
        TOML.
    source : str
        A word for the file's name, such as ``azure-retail``.
    on : date
    """
    folder = overlay_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            number = _last_number(folder)
            while number < _MOST:
                number += 1
                path = folder / f"{number:04}-{on.isoformat()}-{source}.toml"
                if any(folder.glob(f"{number:04}-*.toml")):
                    continue
                try:
                    # Unlike a renaming, a link replaces nothing that another process wrote.
                    path.hardlink_to(file.name)
                except FileExistsError:
                    continue
                _sync(folder)
                return path
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Free some space or make it writable; nothing has changed."
        raise InputError(str(folder), problem, remedy=remedy) from None
    raise InputError(str(folder), "is full of overlays", remedy="Undo some of them.")


def undo_overlay(name: str | None = None) -> list[Path]:
    """Set the newest overlay aside, or the one that is named and all after it.

    An overlay holds what differs from those before it, so none of them counts without those.

    Returns
    -------
    list of Path
        Where they lie now, the newest first.
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
    aside = in_force[0].parent / UNDONE
    try:
        aside.mkdir(exist_ok=True)
        undone = [path.replace(aside / path.name) for path in reversed(in_force[first:])]
        _sync(aside.parent)
    except OSError as error:
        remedy = "Make the folder writable, or move the overlay away by hand."
        raise InputError(
            str(aside), f"can't be written ({error.strerror})", remedy=remedy
        ) from None
    return undone


def _last_number(folder: Path) -> int:
    """Return the highest number in use, also among what was undone: none is used twice."""
    files = [*folder.glob("*.toml"), *(folder / UNDONE).glob("*.toml")]
    return max((int(f.name[:4]) for f in files if re.fullmatch(NAME, f.name)), default=0)


def _sync(folder: Path) -> None:
    """Make names durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
