"""The store: every sample with its origin, and immutable snapshots of estimates.

Planning reads snapshots alone, and loads no more than they need: samples have a room of their own
(:mod:`relayd.store.samples`), and so has each engine.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # to type checkers true
if TYPE_CHECKING:
    from typing import Any

    from relayd.store.location import Address, Location, default_path, parse_location
    from relayd.store.opening import Store, open_if_there, open_store
    from relayd.store.snapshots import SnapshotRow

# Imported on first use: where there is no store yet, a plan loads no database.
_HOME = {
    "Address": "relayd.store.location",
    "Location": "relayd.store.location",
    "SnapshotRow": "relayd.store.snapshots",
    "Store": "relayd.store.opening",
    "default_path": "relayd.store.location",
    "open_if_there": "relayd.store.opening",
    "open_store": "relayd.store.opening",
    "parse_location": "relayd.store.location",
}

__all__ = [
    "Address",
    "Location",
    "SnapshotRow",
    "Store",
    "default_path",
    "open_if_there",
    "open_store",
    "parse_location",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
