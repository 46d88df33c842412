"""Overlays: dated files of imported prices, which lie over the built-in tables.

``relayd catalogue import`` and ``update`` write one; each counts until it is undone, the newest
first. They lie in ``RELAYD_CATALOGUE_DIR``, else in the user's data folder.
"""

from __future__ import annotations

import os

from planner.hints import TYPE_CHECKING
from planner.model.errors import InputError
from relayd.folders import user_data_folder

if TYPE_CHECKING:
    from pathlib import Path

NAME = r"\d{4}-\d{4}-\d\d-\d\d-[a-z0-9-]+\.toml"


def overlay_folder() -> Path:
    """Return where overlays lie; the folder need not exist."""
    from pathlib import Path

    return Path(_overlay_folder())


def _overlay_folder() -> str:
    chosen = os.environ.get("RELAYD_CATALOGUE_DIR")
    return chosen or os.path.join(user_data_folder(), "catalogue")


def overlays_in_force(folder: Path | None = None) -> list[Path]:
    """Return the overlays that count, the oldest first."""
    where = folder or _overlay_folder()
    try:
        names = os.listdir(where)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            str(where),
            f"can't be read ({error.strerror})",
            remedy="Make it readable, or name another folder in RELAYD_CATALOGUE_DIR.",
        ) from None
    if not names:
        return []
    import re
    from pathlib import Path

    return [Path(where, name) for name in sorted(names) if re.fullmatch(NAME, name)]
