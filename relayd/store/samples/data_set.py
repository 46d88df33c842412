"""The samples of a store as a data set of Parquet files, which engines for data frames read.

A folder for each month of measurement, named as Hive names partitions (``month=2026-01``); a row a
sample, with columns as :class:`~probes.samples.Sample` names its fields, and who reported it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from planner.model.errors import InputError, not_installed
from probes.importers.parquet import TYPES
from probes.samples import Samples
from relayd.store.samples.reading import StoredSamples

if TYPE_CHECKING:
    import pyarrow.parquet

BATCH_ROWS = 8192
MOST_BYTES = 64_000_000
"""Of rows that wait to be written."""


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
        raise not_installed("pyarrow", "parquet", "write Parquet") from None
    if folder.is_symlink() or (folder.exists() and not _is_empty(folder)):
        raise InputError(
            "--output",
            "is there already",
            value=str(folder),
            remedy="Name a new folder, or remove this one.",
        )
    found = samples.read(since_s=-inf if since_s is None else since_s)
    try:
        beside = TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.")
        with beside as name:
            whole = Path(name) / "whole"
            whole.mkdir()
            months = _Months(whole)
            for first in range(0, len(found), BATCH_ROWS):
                months.add(_table(found[first : first + BATCH_ROWS]))
            months.end()
            if folder.exists():
                folder.rmdir()
            whole.rename(folder)
    except OSError as error:
        raise InputError(
            "--output",
            f"can't be written ({error.strerror or error})",
            value=str(folder),
            remedy="Name a folder where you may write, on a disk with room.",
        ) from None
    return len(found)


def files_of(folder: Path) -> list[Path]:
    """Return the files of a data set, by name.

    Raises
    ------
    InputError
        If there are none, or one has a name that can't be shown.
    """
    found = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    inside = [file.relative_to(folder) for file in found]
    # As data sets have them: what begins so is no part of one.
    of = [file for file in inside if not any(part[0] in "._" for part in file.parts)]
    if not of:
        raise InputError(str(folder), "holds no file *.parquet", remedy="Name another folder.")
    for file in of:
        if not str(file).isprintable():
            raise InputError(ascii(str(file)), "is no name to be shown", remedy="Rename the file.")
    return [folder / file for file in of]


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


class _Months:
    """Files of months: what waits of a month becomes one when it is much."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[str, list[pyarrow.Table]] = {}
        self._files = count()

    def add(self, table: pyarrow.Table) -> None:
        """Take rows in; the month that has most of them is written when all take much memory."""
        times_s = table.column("measured_at_s").to_numpy()
        months = times_s.astype("M8[s]").astype("M8[M]")
        for month in np.unique(months):
            self._waiting.setdefault(str(month), []).append(table.filter(months == month))
        sizes = {month: _bytes(of) for month, of in self._waiting.items()}
        if sum(sizes.values()) > MOST_BYTES:
            self._write(max(sizes, key=sizes.__getitem__))

    def end(self) -> None:
        """Write what waits."""
        for month in list(self._waiting):
            self._write(month)

    def _write(self, month: str) -> None:
        import pyarrow
        import pyarrow.parquet

        path = self._folder / f"month={month}"
        path.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(
            pyarrow.concat_tables(self._waiting.pop(month)),
            path / f"part-{next(self._files)}.parquet",
            compression="zstd",
            write_page_checksum=True,
        )


def _bytes(tables: Sequence[pyarrow.Table]) -> int:
    return sum(table.nbytes for table in tables)


def _table(samples: Samples) -> pyarrow.Table:
    import pyarrow

    types = {name: pyarrow.type_for_alias(alias) for name, alias in TYPES.items()}
    schema = pyarrow.schema([*types.items(), ("source", pyarrow.string())])
    return pyarrow.table([samples.column(name) for name in schema.names], schema)
