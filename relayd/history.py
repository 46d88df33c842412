"""Source of replays and reports: all samples that count, of a store or of a Parquet data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TypeAlias

import numpy as np

from planner.model.errors import not_installed
from probes.estimation.current_samples import MOST_JUDGED, series_codes, series_order
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.parquet import TYPES, imported, read_batches, samples_of
from probes.samples import Samples
from relayd.store import Store, open_store
from relayd.store.location import Location
from relayd.store.samples.data_set import files_of


def _in_order(samples: Samples) -> Samples:
    rows = samples.rows
    keys = rows["measured_at_s"], rows["metric"], rows["dst"], rows["src"]
    return samples.in_order(np.lexsort(keys))


class DataSetHistory:
    """The samples of a data set in a folder.

    Raises :class:`InputError` if pyarrow is not installed, or the folder holds no Parquet files;
    readers of samples raise :class:`FormatError` if a file is damaged, or lacks a column.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise not_installed("pyarrow", "parquet", "read Parquet") from None
        self._folder = folder
        self._files = files_of(folder)
        self._tables = Samples()

    def read(self, since_s: float = -inf) -> Samples:
        """Return samples since a time (s since 1970) by source, destination, metric and time."""
        return _in_order(Samples.concat(self._parts(since_s, details=True)))

    def _parts(self, since_s: float = -inf, *, details: bool = False) -> Iterator[Samples]:
        """Yield samples in parts that fit into memory, and share their names."""
        first = 1
        for path in self._files:
            if not _lasts(path, since_s):
                continue
            for samples, faults in self._rows_of(path, details=details):
                samples.rows["id"] = np.arange(first, first + len(samples))
                first += len(samples)
                kept = samples.rows["measured_at_s"] >= since_s
                kept[list(faults)] = False
                yield samples[kept]

    def about(self) -> dict[str, str]:
        """Return the size of the data set by name."""
        rows = faulty = 0
        for path in self._files:
            for samples, faults in self._rows_of(path):
                rows, faulty = rows + len(samples), faulty + len(faults)
        sizes = {"samples in the data set": f"{rows - faulty:,}", "files": f"{len(self._files):,}"}
        return sizes | ({"rows that are no samples": f"{faulty:,}"} if faulty else {})

    def newest_rows(self, path: Path, options: ImportOptions) -> Iterator[ImportedRow]:
        """Yield the rows of a file as its import does, but only the newest of each series.

        Kinds of address are series of their own. Rows that are no samples are among them, so that
        the import reports them.
        """
        codes, since_s = self._newest_since
        first = 1
        with path.open("rb") as stream:
            for batch in read_batches(stream, options.name, TYPES):
                samples, faults = samples_of(batch, options, self._tables)
                places = np.searchsorted(codes, series_codes(samples)).clip(0, len(codes) - 1)
                kept = samples.rows["measured_at_s"] >= since_s[places]
                kept[list(faults)] = True
                at = np.flatnonzero(kept)
                wrong = {n: faults[place] for n, place in enumerate(at.tolist()) if place in faults}
                yield from imported((at + first).tolist(), samples[at], wrong)
                first += len(batch)

    @cached_property
    def _newest_since(self) -> tuple[np.ndarray, np.ndarray]:
        """Series and kinds of address, and the time of each one's first newest sample."""
        newest = Samples()
        for part in self._parts():
            both = Samples.concat([newest, part]) if len(newest) else part
            order, parts = series_order(both)
            newest = both[order[parts.newest(MOST_JUDGED)]]
        codes, first = np.unique(series_codes(newest), return_index=True)
        return codes, newest.rows["measured_at_s"][first]

    def _rows_of(
        self, path: Path, *, details: bool = False
    ) -> Iterator[tuple[Samples, dict[int, str]]]:
        options = ImportOptions(name=str(path.relative_to(self._folder)))
        columns = [name for name in TYPES if details or name != "detail"]
        with path.open("rb") as stream:
            for batch in read_batches(stream, options.name, columns):
                yield samples_of(batch, options, self._tables)


def _lasts(path: Path, since_s: float) -> bool:
    """Tell whether a file may have samples since a time."""
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(path)
        column = metadata.schema.names.index("measured_at_s")
        groups = (metadata.row_group(n).column(column) for n in range(metadata.num_row_groups))
        return any(one.statistics.max >= since_s for one in groups)
    except (AttributeError, TypeError, ValueError, OSError, pyarrow.ArrowException):
        return True  # its times are not known, or it is damaged: reading it tells


class StoredHistory:
    """The samples of a store that count."""

    def __init__(self, store: Store) -> None:
        self._samples = store.samples

    def read(self, since_s: float = -inf) -> Samples:
        """Return samples since a time (s since 1970) by source, destination, metric and time."""
        return _in_order(self._samples.read(since_s=since_s))

    def about(self) -> dict[str, str]:
        """Return the size of the store by name."""
        counts = self._samples.counts()
        return {"samples in the store": f"{counts.samples:,}", "batches": f"{counts.batches:,}"}


SampleHistory: TypeAlias = StoredHistory | DataSetHistory


@contextmanager
def open_history(where: Location) -> Iterator[SampleHistory]:
    """Open a store, or a data set as ``relayd data export samples`` writes it: a folder.

    Raises StoreError if it is a store that can't be read; InputError if it is a folder that holds
    no Parquet files.
    """
    if isinstance(where, Path) and where.is_dir():
        yield DataSetHistory(where)
        return
    with open_store(where, mode="read") as store:
        yield StoredHistory(store)
