"""The samples of a folder of Parquet files, for replays and reports: no store is needed.

Rows that are no samples (see ``relayd import parquet``) are left out and counted. Files are read
when they are asked for, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np

from planner.model.errors import not_installed
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.parquet import TYPES, imported, read_batches, samples_of
from probes.samples import METRICS, Metric, Samples
from relayd.history.source import SampleHistory, newest_of, series_codes
from relayd.store.samples.data_set import files_of


class DataSetHistory(SampleHistory):
    """The samples of a data set.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    InputError
        If pyarrow is not installed, or the folder holds no Parquet files.
    FormatError
        From readers of samples, if a file is damaged, or lacks a column.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise not_installed("pyarrow", "parquet", "read Parquet") from None
        self._folder = folder
        self._files = files_of(folder)
        self._tables = Samples()
        self._since: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def parts(
        self,
        metric: Metric | None = None,
        begin_s: float = -inf,
        end_s: float = inf,
        *,
        details: bool = False,
    ) -> Iterator[Samples]:
        """Yield samples in parts that fit into memory, and share their names."""
        first = 1
        for path in self._files:
            if not _overlaps(path, begin_s, end_s):
                continue
            for samples, faults in self._rows_of(path, details=details):
                samples.rows["id"] = np.arange(first, first + len(samples))
                first += len(samples)
                at_s = samples.rows["measured_at_s"]
                kept = (at_s >= begin_s) & (at_s < end_s)
                kept[list(faults)] = False
                if metric is not None:
                    kept &= samples.rows["metric"] == METRICS.index(metric)
                yield samples[kept]

    def about(self) -> dict[str, str]:
        """Return the size of the data set by name."""
        samples, left_out = self._counts
        sizes = {"samples in the data set": f"{samples:,}", "files": f"{len(self._files):,}"}
        if left_out:
            sizes["rows that are no samples"] = f"{left_out:,}"
        return sizes

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """Number of samples, and of rows that are none."""
        rows = faulty = 0
        for path in self._files:
            for samples, faults in self._rows_of(path):
                rows, faulty = rows + len(samples), faulty + len(faults)
        return rows - faulty, faulty

    def newest_rows(self, path: Path, most: int, options: ImportOptions) -> Iterator[ImportedRow]:
        """Yield the rows of a file as its import does, but only the newest of each series.

        Rows that are no samples are among them, so that the import reports them.

        Parameters
        ----------
        path : Path
            Of the data set.
        most : int
            Of each series and kind of address.
        options : ImportOptions
        """
        codes, since_s = self._newest_since(most)
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

    def _newest_since(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return series and kinds of address, and the time of each one's first newest sample."""
        if most not in self._since:
            newest = Samples()
            for part in self.parts():
                newest = newest_of(Samples.concat([newest, part]) if len(newest) else part, most)
            codes, first = np.unique(series_codes(newest), return_index=True)
            self._since[most] = codes, newest.rows["measured_at_s"][first]
        return self._since[most]

    def _rows_of(
        self, path: Path, *, details: bool = False
    ) -> Iterator[tuple[Samples, dict[int, str]]]:
        options = ImportOptions(name=str(path.relative_to(self._folder)))
        columns = [name for name in TYPES if details or name != "detail"]
        with path.open("rb") as stream:
            for batch in read_batches(stream, options.name, columns):
                yield samples_of(batch, options, self._tables)


def _overlaps(path: Path, begin_s: float, end_s: float) -> bool:
    """Tell whether a file may have samples from one time until before another."""
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(path)
        column = metadata.schema.names.index("measured_at_s")
        groups = [
            metadata.row_group(n).column(column).statistics for n in range(metadata.num_row_groups)
        ]
        return any(one.max >= begin_s and one.min < end_s for one in groups)
    except (AttributeError, TypeError, ValueError, OSError, pyarrow.ArrowException):
        return True  # its times are not known, or it is damaged: reading it tells
