"""The store: every sample with its origin, and immutable snapshots of estimates.

:func:`relayd.store.samples.ingest.ingest` takes in a whole file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayd.store.location import Address, Location, parse_location
from relayd.store.opening import Store, default_path, open_if_there, open_store
from relayd.store.snapshots import SnapshotRow

if TYPE_CHECKING:
    from relayd.store.samples.ingest import Batch, ImportReport, SkippedRows, append, content_digest
    from relayd.store.samples.reading import Counts, StoredBatch, StoredSample

__all__ = [
    "Address",
    "Batch",
    "Counts",
    "ImportReport",
    "Location",
    "SkippedRows",
    "SnapshotRow",
    "Store",
    "StoredBatch",
    "StoredSample",
    "append",
    "content_digest",
    "default_path",
    "open_if_there",
    "open_store",
    "parse_location",
]

_OF_SAMPLES = ("Counts", "StoredBatch", "StoredSample")


def __getattr__(name: str) -> object:
    # Planning reads snapshots alone; what samples need takes as long to load as to open the file.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "samples.reading" if name in _OF_SAMPLES else "samples.ingest"
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
