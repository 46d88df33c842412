"""The store: every sample with its origin, and immutable snapshots of estimates.

Planning reads snapshots alone, and loads no more than they need: samples have a room of their own
(:mod:`relayd.store.samples`), and so has each engine.
"""

from __future__ import annotations

from relayd.store.location import Address, Location, default_path, parse_location
from relayd.store.opening import Store, open_if_there, open_store
from relayd.store.snapshots import SnapshotRow

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
