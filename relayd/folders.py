"""Where a user's settings, data and cache belong: names of folders, which need not exist.

Names are texts here and in what reads the catalogue: nearly all that a plan without a store would
need `pathlib` for, which takes longer to load than the files take to be read.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # to type checkers true
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "relayd"
_ON_LINUX = sys.platform == "linux"


def user_data_folder() -> str:
    """Return the folder of this user's data."""
    if _ON_LINUX:
        return _xdg("XDG_DATA_HOME", "~/.local/share")
    from platformdirs import user_data_dir

    return user_data_dir(NAME, appauthor=False)


def user_cache_folder() -> str:
    """Return the folder of what saves this user time."""
    if _ON_LINUX:
        return _xdg("XDG_CACHE_HOME", "~/.cache")
    from platformdirs import user_cache_dir

    return user_cache_dir(NAME)


def paths_of(names: Sequence[str | Path]) -> list[Path]:
    """Return paths of names; of none, without loading what makes them."""
    if not names:
        return []
    from pathlib import Path

    return [Path(name) for name in names]


def _xdg(variable: str, default: str) -> str:
    # The XDG base directory specification: folders that are not absolute don't count. platformdirs
    # follows it, and takes long to load.
    folder = os.environ.get(variable, "")
    return os.path.join(folder if os.path.isabs(folder) else os.path.expanduser(default), NAME)
