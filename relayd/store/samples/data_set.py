"""The samples of a store as a data set of Parquet files, which engines for data frames read.

A folder for each month of measurement, named as Hive names partitions (``month=2026-01``); a row a
sample, with columns as :class:`~probes.samples.Sample` names its fields, and who reported it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from planner.model.errors import InputError, not_installed
from probes.importers.parquet import TYPES
from probes.samples import Samples
from relayd.store.samples.reading import StoredSamples

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 8192
_GROUP_ROWS = 2**17
_MOST_MONTHS = 10_000


def write_data_set(samples: StoredSamples, folder: Path, *, since_s: float | None = None) -> int:
    """Write the samples that count into a new or empty folder, and return their number.

    The folder is there when it is whole: what is written is in another one until then. Retracted
    samples are left out, and those that were summarised or measured before `since_s` (seconds
    since 1970). Raises InputError without pyarrow, or for a folder that can't be used.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise not_installed("pyarrow", "parquet", "write Parquet") from None
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.is_symlink() or (folder.exists() and not is_empty):
        remedy = "Name a new folder, or remove this one."
        raise InputError("--output", "is there already", value=str(folder), remedy=remedy)
    found = samples.read(since_s=-inf if since_s is None else since_s)
    try:
        parent, prefix = folder.absolute().parent, f".{folder.name}."
        with TemporaryDirectory(dir=parent, prefix=prefix) as name:
            whole = Path(name) / "whole"
            whole.mkdir()
            _write(found, whole)
            if folder.exists():
                folder.rmdir()
            whole.rename(folder)
    except OSError as error:
        problem = f"can't be written ({error.strerror or error})"
        remedy = "Name a folder where you may write, on a disk with room."
        raise InputError("--output", problem, value=str(folder), remedy=remedy) from None
    return len(found)


def _write(samples: Samples, folder: Path) -> None:
    import pyarrow
    from pyarrow import dataset

    types = {name: pyarrow.type_for_alias(alias) for name, alias in TYPES.items()}
    texts = (("source", pyarrow.string()), ("month", pyarrow.string()))
    schema = pyarrow.schema([*types.items(), *texts])
    parquet = dataset.ParquetFileFormat()

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for first in range(0, len(samples), BATCH_ROWS):
            part = samples[first : first + BATCH_ROWS]
            months = part.rows["measured_at_s"].astype("M8[s]").astype("M8[M]").astype(str)
            columns = [part.column(name) for name in schema.names[:-1]]
            yield pyarrow.record_batch([*columns, months], schema)

    dataset.write_dataset(
        batches(),
        folder,
        schema=schema,
        format=parquet,
        partitioning=["month"],
        partitioning_flavor="hive",
        file_options=parquet.make_write_options(compression="zstd", write_page_checksum=True),
        use_threads=False,  # in the order that they have
        max_partitions=_MOST_MONTHS,
        min_rows_per_group=_GROUP_ROWS,  # of a month, which wait in memory until then
    )


def files_of(folder: Path) -> list[Path]:
    """Return the files of a data set, by name; raise InputError if there are none, or odd names."""
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
