"""The samples of a store as a data set of Parquet files, which engines for data frames read.

A folder for each month of measurement, named as Hive names partitions (``month=2026-01``); a row a
sample, with columns as :class:`~probes.samples.Sample` names its fields, and who reported it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from planner.model.errors import InputError
from probes.importers.parquet import TYPES
from probes.samples import Reported
from relayd.store.samples.reading import StoredSamples

if TYPE_CHECKING:
    import pyarrow.parquet

BATCH_ROWS = 65_536
# What waits of a month is written when it has so many rows.
LEAST_ROWS_OF_GROUP = 32_768


def write_data_set(samples: StoredSamples, folder: Path, *, since_s: float | None = None) -> int:
    """Write the samples that count into a new folder, and return their number.

    The folder is there when it is whole: what is written is beside it until then. Retracted
    samples are left out, and those that were summarised.

    Parameters
    ----------
    samples : StoredSamples
    folder : Path
        That does not exist, or is empty.
    since_s : float, optional
        Only what was measured at or after this time, seconds since 1970.

    Raises
    ------
    InputError
        If pyarrow is not installed, the folder has something in it, or can't be written.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        remedy = "Install it: pip install 'relayd[parquet]'."
        raise InputError("--format parquet", "needs pyarrow", remedy=remedy) from None
    beside = folder.absolute().with_name(f".{folder.absolute().name}.partial")
    written = 0
    rows = (
        row for row in samples.reported() if since_s is None or row.sample.measured_at_s >= since_s
    )
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                "--output",
                "is there already",
                value=str(folder),
                remedy="Name a new folder, or remove this one.",
            )
        shutil.rmtree(beside, ignore_errors=True)  # of an export that was interrupted
        beside.mkdir()
        with ExitStack() as open_files:
            months = _Months(beside, open_files)
            while chunk := list(islice(rows, BATCH_ROWS)):
                months.add(_table(chunk))
                written += len(chunk)
            months.end()
        if folder.exists():
            folder.rmdir()
        beside.rename(folder)
    except OSError as error:
        raise InputError(
            "--output",
            f"can't be written ({error.strerror or error})",
            value=str(folder),
            remedy="Name a folder where you may write, on a disk with room.",
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written


class _Months:
    """Files of months, each written in groups of many rows."""

    def __init__(self, folder: Path, open_files: ExitStack) -> None:
        self._folder, self._open_files = folder, open_files
        self._writers: dict[str, pyarrow.parquet.ParquetWriter] = {}
        self._waiting: dict[str, list[pyarrow.Table]] = {}

    def add(self, table: pyarrow.Table) -> None:
        """Take rows in; those of a month are written when they are many."""
        times_s = table.column("measured_at_s").to_numpy()
        months = times_s.astype("M8[s]").astype("M8[M]")
        for month in np.unique(months):
            waiting = self._waiting.setdefault(str(month), [])
            waiting.append(table.filter(months == month))
            if sum(map(len, waiting)) >= LEAST_ROWS_OF_GROUP:
                self._write(str(month))

    def end(self) -> None:
        """Write what waits."""
        for month in self._waiting:
            self._write(month)

    def _write(self, month: str) -> None:
        import pyarrow
        import pyarrow.parquet

        waiting = self._waiting[month]
        if not waiting:
            return
        if month not in self._writers:
            path = self._folder / f"month={month}"
            path.mkdir()
            self._writers[month] = self._open_files.enter_context(
                pyarrow.parquet.ParquetWriter(
                    path / "part-0.parquet",
                    waiting[0].schema,
                    compression="zstd",
                    write_page_checksum=True,
                )
            )
        self._writers[month].write_table(pyarrow.concat_tables(waiting))
        waiting.clear()


def _table(rows: Sequence[Reported]) -> pyarrow.Table:
    import pyarrow

    types = {name: pyarrow.type_for_alias(alias) for name, alias in TYPES.items()}
    columns = dict(zip(TYPES, zip(*(row.sample for row in rows), strict=True), strict=True))
    return pyarrow.table(
        [*columns.values(), [row.source for row in rows]],
        pyarrow.schema([*types.items(), ("source", pyarrow.string())]),
    )
