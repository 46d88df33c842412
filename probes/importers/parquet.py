"""Samples as Parquet: a row each, with columns as :class:`~probes.samples.Sample` names its fields.

`relayd export samples` writes such files; engines for data frames read and write them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from planner.model.errors import FormatError, not_installed
from planner.model.estimate import AddressKind
from probes.importers import limits
from probes.importers.endpoints import split
from probes.importers.options import ImportedRow, ImportOptions
from probes.samples import Metric, Sample, Skipped

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
NO_TOOL = "parquet"

BAD_REGION = "src or dst is not provider:region"
SAME_REGION = "src and dst are the same region"
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

_METRICS = frozenset(get_args(Metric))
_ADDRESSES = frozenset({None, *get_args(AddressKind)})


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample a row.

    Parameters
    ----------
    stream : BinaryIO
        That can be sought in.
    options : ImportOptions

    Raises
    ------
    FormatError
        While iterating, if the file is no Parquet file, is damaged, or lacks a column.
    InputError
        If pyarrow is not installed.
    """
    return samples_of(read_batches(stream, options.name, TYPES), options)


def samples_of(
    batches: Iterable[tuple[Sequence[int], pyarrow.RecordBatch]], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield a sample a row of batches, which come with the numbers of their rows."""
    for numbers, batch in batches:
        rows = zip(*_lists(batch, options.name), strict=True)
        for number, row in zip(numbers, rows, strict=True):
            yield _sample(number, row, options)


def read_batches(
    stream: BinaryIO, name: str, columns: Collection[str]
) -> Iterator[tuple[Sequence[int], pyarrow.RecordBatch]]:
    """Yield numbers and rows of a file, many at once; texts as codes, each once in memory.

    Parameters
    ----------
    stream : BinaryIO
        That can be sought in.
    name : str
        What messages call the file.
    columns : collection of str
        Of :data:`TYPES`; those that the file lacks are left out.

    Raises
    ------
    FormatError, InputError
        See :func:`read`.
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
        number = 1
        for batch in file.iter_batches(BATCH_ROWS, columns=names):
            batch.validate(full=True)  # damage may be in codes, or in texts
            yield range(number, number + len(batch)), batch
            number += len(batch)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        said = str(error).partition("\n")[0][:200]
        raise FormatError(
            name,
            f"can't be read as Parquet: {said}",
            remedy="Nothing of it was stored. Write it again, and import it then.",
        ) from error


def _columns(found: Sequence[str], name: str) -> list[str]:
    missing = [column for column in NEEDED if column not in found]
    if missing:
        raise FormatError(
            name,
            f"lacks the column {', '.join(missing)}",
            value=", ".join(found)[:60],
            remedy=f"A row is a sample, with the columns {', '.join(NEEDED)}, such as `relayd "
            "export samples` writes.",
        )
    twice = [column for column in TYPES if found.count(column) > 1]
    if twice:
        raise FormatError(name, "has a column twice", value=twice[0], remedy="Rename one.")
    return [column for column in TYPES if column in found]


def _lists(batch: pyarrow.RecordBatch, name: str) -> list[list[Any]]:
    """Return the columns of a batch as lists in the order of :data:`TYPES`, each of its type."""
    import pyarrow

    found = []
    for column, alias in TYPES.items():
        if column not in batch.schema.names:
            found.append([None] * len(batch))
            continue
        values = batch.column(column)
        try:
            if isinstance(values, pyarrow.DictionaryArray) and alias == "string":
                once = values.dictionary.cast(pyarrow.string()).to_pylist()
                codes = values.indices.to_pylist()
                found.append([None if code is None else once[code] for code in codes])
            else:
                found.append(values.cast(pyarrow.type_for_alias(alias)).to_pylist())
        except pyarrow.ArrowException:
            raise FormatError(
                name,
                f"has a column {column} that is not of {alias}",
                value=str(values.type),
                remedy="Convert it, and write the file again.",
            ) from None
    return found


def _sample(number: int, row: tuple[Any, ...], options: ImportOptions) -> ImportedRow:
    (
        src_name,
        dst_name,
        metric,
        value,
        at_s,
        tool,
        connections,
        duration_s,
        warmed_up,
        src_zone,
        dst_zone,
        src_vm,
        dst_vm,
        detail,
        address,
        new_level,
        intervals,
    ) = row
    src, dst = split(src_name or ""), split(dst_name or "")
    if src is None or dst is None:
        return Skipped(number, BAD_REGION)
    sample = Sample(
        src[0],
        dst[0],
        metric,
        value,
        at_s,
        tool or NO_TOOL,
        connections,
        duration_s,
        warmed_up or False,
        src_zone or src[1],
        dst_zone or dst[1],
        src_vm or options.src_vm,
        dst_vm or options.dst_vm,
        detail or "",
        address,
        new_level or False,
        intervals,
    )
    problem = _fault(sample)
    return Skipped(number, problem) if problem else sample


def _fault(sample: Sample) -> str:
    """Why a row is no sample; ``""`` if it is one."""
    metric, at_s = sample.metric, sample.measured_at_s
    if metric not in _METRICS:
        return BAD_METRIC
    one_region = sample.src == sample.dst
    if one_region is not (metric in limits.OF_ONE_VM):
        return SAME_REGION if one_region else NOT_SAME_REGION
    if not at_s or not limits.MIN_TIME_S <= at_s <= limits.MAX_TIME_S:
        return BAD_TIME
    if sample.connections is not None and not 1 <= sample.connections <= limits.MAX_CONNECTIONS:
        return BAD_CONNECTIONS
    if sample.duration_s is not None and not 0 < sample.duration_s <= limits.MAX_DURATION_S:
        return BAD_DURATION
    if sample.intervals is not None and not 1 <= sample.intervals <= limits.MAX_INTERVALS:
        return BAD_INTERVALS
    if sample.address not in _ADDRESSES:
        return BAD_ADDRESS
    names = (sample.tool, sample.src_zone, sample.dst_zone, sample.src_vm, sample.dst_vm)
    if max(map(len, names)) > MOST_NAME:
        return LONG_NAME
    if len(sample.detail) > MOST_DETAIL:
        return LONG_DETAIL
    return _fault_of_texts(names, sample.detail) or limits.fault(metric, sample.value, "value")


@lru_cache(maxsize=256)  # many samples say the same
def _fault_of_texts(names: tuple[str, ...], detail: str) -> str:
    if any("\0" in text for text in (*names, detail)):
        return NUL
    try:
        is_object = not detail or isinstance(json.loads(detail), dict)
    except (ValueError, RecursionError):
        is_object = False
    return "" if is_object else NO_OBJECT
