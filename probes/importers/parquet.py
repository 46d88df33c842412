"""Samples as Parquet: a row each, with columns as :class:`~probes.samples.Sample` names its fields.

`relayd data export samples` writes such files; engines for data frames read and write them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.fields.json_text import read_json
from planner.model.errors import FormatError, not_installed
from probes.importers import limits
from probes.importers.options import BAD_REGION, SAME_REGION, ImportedRow, ImportOptions, split
from probes.samples import (
    ADDRESSES,
    MAX_CONNECTIONS,
    MAX_DURATION_S,
    MAX_INTERVALS,
    MAX_TIME_S,
    METRICS,
    MIN_TIME_S,
    ROW,
    Samples,
    Skipped,
)

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 2048
"""Rows in memory at a time: each may have a long detail."""
NEEDED = ("src", "dst", "metric", "value", "measured_at_s")
TYPES = {
    **dict.fromkeys(("src", "dst", "metric"), "string"),
    **dict.fromkeys(("value", "measured_at_s"), "float64"),
    "tool": "string",
    "connections": "int64",
    "duration_s": "float64",
    "warmed_up": "bool",
    **dict.fromkeys(("src_zone", "dst_zone", "src_vm", "dst_vm"), "string"),
    **dict.fromkeys(("detail", "address"), "string"),
    "new_level": "bool",
    "intervals": "int64",
}
"""The type of each column, in the order of a sample's fields."""

MOST_NAME, MOST_DETAIL = 100, 100_000

NOT_SAME_REGION = "src and dst of a VM's cap are not one region"
BAD_METRIC = "metric is none that relayd knows"
BAD_TIME = "measured_at_s is not a time in seconds since 1970"
BAD_CONNECTIONS = "connections is not a count"
BAD_DURATION = "duration_s is not a duration"
BAD_INTERVALS = "intervals is not a count"
BAD_ADDRESS = "address is neither public nor private"
LONG_NAME = "a zone, VM type or tool has over 100 characters"
LONG_DETAIL = "detail has over 100,000 characters"
NO_OBJECT = "detail is no JSON object"
NUL = "a text holds the character U+0000"

_ADDRESSES = [address or "" for address in ADDRESSES]


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
        yield Skipped(numbers[place], faults[place]) if place in faults else sample


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
        names = [column for column in _columns(schema.names, name) if column in columns]
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


def _columns(found: Sequence[str], name: str) -> list[str]:
    missing = [column for column in NEEDED if column not in found]
    if missing:
        problem = f"lacks the column {', '.join(missing)}"
        remedy = (
            f"A row is a sample, with the columns {', '.join(NEEDED)}, such as `relayd "
            "export samples` writes."
        )
        raise FormatError(name, problem, value=", ".join(found)[:60], remedy=remedy)
    twice = [column for column in TYPES if found.count(column) > 1]
    if twice:
        raise FormatError(name, "has a column twice", value=twice[0], remedy="Rename one.")
    return [column for column in TYPES if column in found]


class _Batch(NamedTuple):
    """Columns of a batch, each of its type."""

    rows: pyarrow.RecordBatch
    file: str

    def texts(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the texts of a column, and each row's place among them; ``""`` for none."""
        values = self._of_type(column, "string").dictionary_encode()
        names = [*values.dictionary.to_pylist(), ""]
        codes = values.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
        return [name or "" for name in names], codes.astype(np.int64)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where there is none."""
        values = self._of_type(column, TYPES[column]).cast("float64")
        return np.array(values.to_numpy(zero_copy_only=False))

    def are_missing(self, column: str) -> NDArray[np.bool_]:
        """Mark the rows in which a column has no value."""
        values = self._of_type(column, TYPES[column])
        return np.array(values.is_null().to_numpy(zero_copy_only=False))

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


class _Faults(dict[int, str]):
    """Faults of rows that are no samples, by their places; the first one counts."""

    def add(self, wrong: NDArray[np.bool_], reason: str) -> None:
        for place in np.flatnonzero(wrong).tolist():
            self.setdefault(place, reason)


def samples_of(
    rows: pyarrow.RecordBatch, options: ImportOptions, tables: Samples | None = None
) -> tuple[Samples, dict[int, str]]:
    """Return the rows of a batch, and the faults of those that are no samples, by their places.

    Options name VM types for rows that name none; rows share names and details with the tables.
    Raises :class:`FormatError` if a column is of another type.
    """
    tables = Samples() if tables is None else tables
    found = Samples(np.zeros(len(rows), ROW), tables.names, tables.details)
    batch, faults = _Batch(rows, options.name), _Faults()
    _take_ends(batch, found, faults)
    _take_numbers(batch, found.rows, faults)
    addresses, place = batch.texts("address")
    found.rows["address"] = _coded(addresses, place, _ADDRESSES)
    faults.add(found.rows["address"] < 0, BAD_ADDRESS)
    _take_texts(batch, found, faults, options)
    values, missing = found.rows["value"], batch.are_missing("value")
    for number, metric in enumerate(METRICS):
        chosen = np.flatnonzero(found.rows["metric"] == number)
        for at in chosen[~limits.are_possible(metric, values[chosen])].tolist():
            value = None if missing[at] else float(values[at])
            faults.setdefault(at, limits.fault(metric, value, "value"))
    return found, faults


def _coded(
    texts: Sequence[str], place: NDArray[np.int64], known: Sequence[str]
) -> NDArray[np.int8]:
    """Return the position of each row's text among the known ones; -1 for none."""
    codes = {text: code for code, text in enumerate(known)}
    return np.array([codes.get(text, -1) for text in texts], np.int8)[place]


def _take_ends(batch: _Batch, found: Samples, faults: _Faults) -> None:
    """Read regions, zones that their names end in, and the metric."""
    rows = found.rows
    for end in ("src", "dst"):
        names, place = batch.texts(end)
        ends = [split(name) for name in names]
        faults.add(np.array([one is None for one in ends])[place], BAD_REGION)
        for part, field in enumerate((end, f"{end}_zone")):
            rows[field] = found.names.numbers(one[part] if one else "" for one in ends)[place]
    metrics, place = batch.texts("metric")
    rows["metric"] = _coded(metrics, place, METRICS)
    faults.add(rows["metric"] < 0, BAD_METRIC)
    of_one_vm = np.isin(rows["metric"], [METRICS.index(metric) for metric in limits.OF_ONE_VM])
    one_region = rows["src"] == rows["dst"]
    faults.add(one_region & ~of_one_vm, SAME_REGION)
    faults.add(~one_region & of_one_vm, NOT_SAME_REGION)


def _take_numbers(batch: _Batch, rows: NDArray[np.void], faults: _Faults) -> None:
    at_s = batch.numbers("measured_at_s")
    faults.add(~((at_s >= MIN_TIME_S) & (at_s <= MAX_TIME_S)), BAD_TIME)
    rows["measured_at_s"], rows["value"] = at_s, batch.numbers("value")
    for field, least, most, reason in (
        ("connections", 1, MAX_CONNECTIONS, BAD_CONNECTIONS),
        ("duration_s", np.nextafter(0, 1), MAX_DURATION_S, BAD_DURATION),
        ("intervals", 1, MAX_INTERVALS, BAD_INTERVALS),
    ):
        values = batch.numbers(field)
        right = (values >= least) & (values <= most)
        rows[field] = np.where(right, values, 0)
        faults.add(~right & ~batch.are_missing(field), reason)
    for flag in ("warmed_up", "new_level"):
        rows[flag] = batch.numbers(flag) == 1


def _take_texts(batch: _Batch, found: Samples, faults: _Faults, options: ImportOptions) -> None:
    rows, nul = found.rows, np.zeros(len(found), np.bool_)
    usual = {"tool": "parquet", "src_vm": options.src_vm, "dst_vm": options.dst_vm}
    for field in ("tool", "src_zone", "dst_zone", "src_vm", "dst_vm"):
        texts, place = batch.texts(field)
        faults.add(np.array([len(text) > MOST_NAME for text in texts])[place], LONG_NAME)
        nul |= np.array(["\0" in text for text in texts])[place]
        numbers = found.names.numbers(text or usual.get(field, "") for text in texts)[place]
        rows[field] = np.where(numbers, numbers, rows[field])
    details, place = batch.texts("detail")
    faults.add(np.array([len(text) > MOST_DETAIL for text in details])[place], LONG_DETAIL)
    faults.add(nul | np.array(["\0" in text for text in details])[place], NUL)
    faults.add(np.array([not _is_detail(text) for text in details])[place], NO_OBJECT)
    rows["detail"] = found.details.numbers(details)[place]


@lru_cache(maxsize=256)  # many samples say the same
def _is_detail(text: str) -> bool:
    try:
        return not text or isinstance(read_json(text), dict)
    except ValueError:
        return False
