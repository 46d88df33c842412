"""Overlays: dated files of imported prices, which lie over the built-in tables.

``relayd catalogue import`` and ``update`` write one; each counts until it is undone, the newest
first. They lie in ``RELAYD_CATALOGUE_DIR``, else in the user's data folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from platformdirs import user_data_path

from planner.model.errors import InputError

NAME = r"\d{4}-\d{4}-\d\d-\d\d-[a-z0-9-]+\.toml"


def overlay_folder() -> Path:
    """Return where overlays lie; the folder need not exist."""
    chosen = os.environ.get("RELAYD_CATALOGUE_DIR")
    return Path(chosen) if chosen else user_data_path("relayd", appauthor=False) / "catalogue"


def overlays_in_force(folder: Path | None = None) -> list[Path]:
    """Return the overlays that count, the oldest first."""
    where = folder or overlay_folder()
    try:
        names = [path.name for path in where.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            str(where),
            f"can't be read ({error.strerror})",
            remedy="Make it readable, or name another folder in RELAYD_CATALOGUE_DIR.",
        ) from None
    return [Path(where, name) for name in sorted(names) if re.fullmatch(NAME, name)]
