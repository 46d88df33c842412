"""Samples as Parquet: a row each, with columns as :class:`~probes.samples.Sample` names its fields.

`relayd data export samples` writes such files; engines for data frames read and write them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.fields.json_text import read_json
from planner.model.errors import FormatError, not_installed
from probes.importers import limits
from probes.importers.importer import importer_of
from probes.importers.options import BAD_REGION, SAME_REGION, ImportedRow, ImportOptions, split
from probes.metrics import CAPS, MAX_DURATION_S, NAMES, number_of
from probes.samples import (
    ADDRESSES,
    MAX_CONNECTIONS,
    MAX_INTERVALS,
    MAX_TIME_S,
    MIN_TIME_S,
    ROW,
    TEXTS,
    Sample,
    Samples,
    SkippedRow,
)

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 2048
"""Rows in memory at a time: each may have a long detail."""
_OF_TEXT = (*TEXTS, "metric", "detail", "address")
NEEDED = ("src", "dst", "metric", "value", "measured_at_s")
_ALIASES = {"f": "float64", "i": "int64", "b": "bool"}
TYPES = {
    name: "string" if name in _OF_TEXT else _ALIASES[ROW[name].kind] for name in Sample._fields
}
"""The type of each column, in the order of a sample's fields."""

MOST_NAME, MOST_DETAIL = 100, 100_000

_CAPS = [*map(number_of, CAPS)]
_NUMBERS = {
    "measured_at_s": (MIN_TIME_S, MAX_TIME_S, "a time in seconds since 1970"),
    "connections": (1, MAX_CONNECTIONS, "a count"),
    "duration_s": (np.nextafter(0, 1), MAX_DURATION_S, "a duration"),
    "intervals": (1, MAX_INTERVALS, "a count"),
}
"""The least and the most of each number, and what it is then."""


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample a row of a stream that can be sought in.

    Raises
    ------
    FormatError
        While iterating, if the file is no Parquet file, is damaged, or lacks a column.
    InputError
        If pyarrow is not installed.
    """
    first = 1
    for batch in read_batches(stream, options.name, TYPES):
        samples, faults = samples_of(batch, options)
        yield from imported(range(first, first + len(batch)), samples, faults)
        first += len(batch)


def imported(
    numbers: Sequence[int], samples: Samples, faults: dict[int, str]
) -> Iterator[ImportedRow]:
    """Yield samples, and rows that are none with their numbers."""
    for place, sample in enumerate(samples):
        yield SkippedRow(numbers[place], faults[place]) if place in faults else sample


def read_batches(
    stream: BinaryIO, name: str, columns: Collection[str]
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a file, many at once; texts as codes, each once in memory.

    Columns are of :data:`TYPES`; those that the file lacks are left out. The name is the file's in
    messages. Raises what :func:`read` does.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise not_installed("pyarrow", "parquet", "read Parquet") from None
    try:
        schema = pyarrow.parquet.read_schema(stream)
        if missing := [column for column in NEEDED if column not in schema.names]:
            problem = f"lacks the column {', '.join(missing)}"
            remedy = (
                f"A row is a sample, with the columns {', '.join(NEEDED)}, such as `relayd "
                "export samples` writes."
            )
            found = ", ".join(schema.names)[:60]
            raise FormatError(name, problem, value=found, remedy=remedy)
        if twice := [column for column in TYPES if schema.names.count(column) > 1]:
            raise FormatError(name, "has a column twice", value=twice[0], remedy="Rename one.")
        names = [column for column in TYPES if column in columns and column in schema.names]
        texts = [column for column in names if pyarrow.types.is_string(schema.field(column).type)]
        file = pyarrow.parquet.ParquetFile(
            stream, read_dictionary=texts, page_checksum_verification=True
        )
        for batch in file.iter_batches(BATCH_ROWS, columns=names):
            batch.validate(full=True)  # damage may be in codes, or in texts
            yield batch
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        said = str(error).partition("\n")[0][:200]
        problem = f"can't be read as Parquet: {said}"
        remedy = "Nothing of it was stored. Write it again, and import it then."
        raise FormatError(name, problem, remedy=remedy) from error


class _Batch(NamedTuple):
    """Columns of a batch, each of its type, and the first fault of each place that is no sample."""

    rows: pyarrow.RecordBatch
    file: str
    faults: dict[int, str]
    texts: dict[str, tuple[list[str], NDArray[Any]]]
    """Distinct texts of columns, and the code of each row's; made when they are first read."""

    def mapped(self, column: str, function: Callable[[str], Any]) -> NDArray[Any]:
        """Apply a function to each row's text, ``""`` for none; it is called once for each text."""
        if column not in self.texts:
            values = self._of_type(column, "string").dictionary_encode()
            names = [name or "" for name in (*values.dictionary.to_pylist(), "")]
            codes = values.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
            self.texts[column] = names, codes
        names, codes = self.texts[column]
        of_rows: NDArray[Any] = np.array([function(name) for name in names])[codes]
        return of_rows

    def numbers(self, column: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a column of numbers, NaN where there is none, and mark where there is none."""
        values = self._of_type(column, TYPES[column])
        parts = (values.cast("float64"), values.is_null())
        numbers, are_missing = (np.array(part.to_numpy(zero_copy_only=False)) for part in parts)
        return numbers, are_missing

    def blame(self, wrong: NDArray[np.bool_], reason: str) -> None:
        """Tell of the places that are wrong why they are no samples."""
        for place in np.flatnonzero(wrong).tolist():
            self.faults.setdefault(place, reason)

    def _of_type(self, column: str, alias: str) -> pyarrow.Array:
        import pyarrow

        wanted = pyarrow.type_for_alias(alias)
        if column not in self.rows.schema.names:
            return pyarrow.nulls(len(self.rows), wanted)
        values = self.rows.column(column)
        try:
            if isinstance(values, pyarrow.DictionaryArray) and alias == "string":
                return values
            return values.cast(wanted)
        except pyarrow.ArrowException:
            problem = f"has a column {column} that is not of {alias}"
            remedy = "Convert it, and write the file again."
            raise FormatError(self.file, problem, value=str(values.type), remedy=remedy) from None


def samples_of(
    rows: pyarrow.RecordBatch, options: ImportOptions, tables: Samples | None = None
) -> tuple[Samples, dict[int, str]]:
    """Return the rows of a batch, and the faults of those that are no samples, by their places.

    Options name VM types for rows that name none; rows share the names and details of `tables`.
    Raises :class:`FormatError` if a column is of another type.
    """
    tables = Samples() if tables is None else tables
    found = Samples(np.zeros(len(rows), ROW), tables.names, tables.details)
    cells, batch = found.rows, _Batch(rows, options.name, {}, {})

    def end_of(name: str, part: int) -> int:
        return found.names[(split(name) or ("", ""))[part]]

    for end in ("src", "dst"):
        batch.blame(batch.mapped(end, lambda name: split(name) is None), BAD_REGION)
        cells[end] = batch.mapped(end, partial(end_of, part=0))
        cells[f"{end}_zone"] = batch.mapped(end, partial(end_of, part=1))
    cells["metric"] = batch.mapped("metric", partial(_place_in, NAMES))
    batch.blame(cells["metric"] < 0, "metric is none that relayd knows")
    of_one_vm, one_region = np.isin(cells["metric"], _CAPS), cells["src"] == cells["dst"]
    batch.blame(one_region & ~of_one_vm, SAME_REGION)
    batch.blame(~one_region & of_one_vm, "src and dst of a VM's cap are not one region")
    for field, (least, most, what) in _NUMBERS.items():
        values, missing = batch.numbers(field)
        right = (values >= least) & (values <= most)
        cells[field] = np.where(right, values, 0)
        batch.blame(~right & (~missing | (field in NEEDED)), f"{field} is not {what}")
    for flag in ("warmed_up", "new_level"):
        cells[flag] = batch.numbers(flag)[0] == 1
    cells["address"] = batch.mapped("address", lambda text: _place_in(ADDRESSES, text or None))
    batch.blame(cells["address"] < 0, "address is neither public nor private")
    usual = {"tool": "parquet", "src_vm": options.src_vm, "dst_vm": options.dst_vm}
    for field in ("tool", "src_zone", "dst_zone", "src_vm", "dst_vm"):
        too_long = batch.mapped(field, lambda text: len(text) > MOST_NAME)
        batch.blame(too_long, "a zone, VM type or tool has over 100 characters")
        batch.blame(batch.mapped(field, _has_nul), _NUL)
        default = found.names[usual.get(field, "")]
        numbers = batch.mapped(field, found.names.__getitem__)
        cells[field] = np.where(numbers, numbers, default or cells[field])
    too_long = batch.mapped("detail", lambda text: len(text) > MOST_DETAIL)
    batch.blame(too_long, "detail has over 100,000 characters")
    batch.blame(batch.mapped("detail", _has_nul), _NUL)
    batch.blame(
        batch.mapped("detail", lambda text: not _is_detail(text)), "detail is no JSON object"
    )
    cells["detail"] = batch.mapped("detail", found.details.__getitem__)
    cells["value"], missing = batch.numbers("value")
    for number, metric in enumerate(NAMES):
        chosen = np.flatnonzero(cells["metric"] == number)
        for at in chosen[~limits.are_possible(metric, cells["value"][chosen])].tolist():
            value = None if missing[at] else float(cells["value"][at])
            batch.faults.setdefault(at, limits.fault(metric, value, "value"))
    return found, batch.faults


_NUL = "a text holds the character U+0000"


def _has_nul(text: str) -> bool:
    return "\0" in text


def _place_in(known: Sequence[str | None], text: str | None) -> int:
    return known.index(text) if text in known else -1


@lru_cache(maxsize=256)  # many samples say the same
def _is_detail(text: str) -> bool:
    try:
        return not text or isinstance(read_json(text), dict)
    except ValueError:
        return False


IMPORTER = importer_of("parquet", {"": read})
