"""Opening a history: a store, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

from probes.samples import Metric, Samples
from relayd.history.data_set import DataSetHistory
from relayd.history.source import SampleHistory
from relayd.store import Store, open_store
from relayd.store.location import Location
from relayd.transfers.register import transfer_rows

MOST_TRANSFERS = 100_000


class StoredHistory(SampleHistory):
    """The samples of a store that count.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def parts(
        self,
        metric: Metric | None = None,
        begin_s: float = -inf,
        end_s: float = inf,
        *,
        details: bool = False,
    ) -> Iterator[Samples]:
        """Yield samples in one part."""
        yield self._store.samples.read(
            metric=metric, since_s=begin_s, until_s=end_s, details=details
        )

    def finished_transfers(self, since_s: float | None) -> Iterator[tuple[str, str, float, float]]:
        """Yield source, destination, GB and seconds of transfers that programs reported."""
        for row in transfer_rows(self._store.database, "finished", limit=MOST_TRANSFERS):
            if row.ended_s is not None and row.began_s >= (since_s or 0.0):
                yield row.src, row.dst, row.volume_gb, row.ended_s - row.began_s

    def about(self) -> dict[str, str]:
        """Return the size of the store by name."""
        counts = self._store.samples.counts()
        return {"samples in the store": f"{counts.samples:,}", "batches": f"{counts.batches:,}"}


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
    InputError
        If it is a folder that holds no Parquet files.
    FormatError
        From readers of samples, if a file is damaged.
    """
    if isinstance(where, Path) and where.is_dir():
        yield DataSetHistory(where)
        return
    with open_store(where, mode="read") as store:
        yield StoredHistory(store)
