"""Opening a history: a store, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relayd.history.data_set import DataSetHistory
from relayd.history.source import SampleHistory
from relayd.history.stored import StoredHistory
from relayd.store import open_store
from relayd.store.location import Location


@contextmanager
def open_history(where: Location) -> Iterator[SampleHistory]:
    """Open a store, or a data set as ``relayd export samples`` writes it.

    Parameters
    ----------
    where : Path or Address
        A folder is a data set.

    Raises
    ------
    StoreError
        If it is a store that can't be read.
    InputError, FormatError
        If it is a folder that holds no Parquet files, or a damaged one.
    """
    if isinstance(where, Path) and where.is_dir():
        yield DataSetHistory(where)
        return
    with open_store(where, mode="read") as store:
        yield StoredHistory(store)
