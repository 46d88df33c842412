"""Samples as the columns of their table: whole chunks at once, with the checksum of each row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import AddressKind
from probes.sample_columns import Coded, SampleColumns, first_places
from relayd.store.checksums import texts_checksum
from relayd.store.database import Column, Same

_DOUBLE = Struct("<d").pack


class Encoded(NamedTuple):
    """Samples as the table has them, in about the order of its key.

    Neighbours land on the same page then: a third faster.

    Attributes
    ----------
    key : list of arrays
        The columns of the key, in its order.
    batch_ids, numbers, new_levels, checksums : array
    detail, address, intervals : Coded
    """

    key: list[NDArray[Any]]
    detail: Coded
    batch_ids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    address: Coded
    new_levels: NDArray[np.int64]
    intervals: Coded
    checksums: NDArray[np.int64]

    def columns(self) -> list[Column]:
        """Return the columns of the table, in its order."""
        found: list[Coded | NDArray[Any]] = [
            *self.key,
            self.detail,
            self.batch_ids,
            self.numbers,
            self.address,
            self.new_levels,
            self.intervals,
            self.checksums,
        ]
        return [_column(one) for one in found]


def encoded(
    samples: SampleColumns, ids: Sequence[NDArray[np.int64]], batch_id: int, numbers: range
) -> Encoded:
    """Return samples as the table has them.

    Parameters
    ----------
    samples : SampleColumns
    ids : (sources, destinations, metrics, setups)
    batch_id : int
    numbers : range
        Ids of the samples.
    """
    texts = combined(samples.detail, samples.address, samples.new_level, samples.intervals)
    digests, checksums = zip(*(of_texts(*text) for text in texts.values), strict=True)
    count = len(samples)
    numeric: list[NDArray[Any]] = [
        *ids[:3],
        samples.measured_at_s + 0.0,  # no -0.0
        samples.value + 0.0,
        samples.connections.mapped(_or_zero).array(np.int64),
        samples.duration_s.mapped(_or_zero).array(np.float64) + 0.0,
        samples.warmed_up.array(np.int64),
        ids[3],
        np.array(digests, np.int64)[texts.codes],
        np.full(count, batch_id),
        np.arange(numbers.start, numbers.stop),
        samples.new_level.array(np.int64),
        np.array(checksums, np.int64)[texts.codes],
    ]
    others = [samples.detail, samples.address, samples.intervals]
    order = np.lexsort(numeric[4::-1])
    if not (order[1:] > order[:-1]).all():
        numeric = [column[order] for column in numeric]
        others = [column.take(order) for column in others]
    *key, batch_ids, sample_ids, new_levels, of_texts_too = numeric
    # What the checksums cover, in the order of the table; texts are covered already.
    rows = np.empty((count, len(numeric) - 1), "<f8")
    for at, column in enumerate(numeric[:-1]):
        rows[:, at] = column
    detail, address, intervals = others
    found = _checksums(rows, intervals, of_texts_too.tolist())
    return Encoded(key, detail, batch_ids, sample_ids, address, new_levels, intervals, found)


def combined(*columns: Coded) -> Coded:
    """Return columns as one of tuples, each once, those that occur first being first."""
    keys, size = np.zeros(len(columns[0].codes), np.int64), 1
    for column in columns:
        size *= len(column.values)
        if len(column.values) > 1:
            keys = keys * len(column.values) + column.codes
    first, number = first_places(keys, size)
    order = np.argsort(first)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    found = [column.take(first[order]).each() for column in columns]
    return Coded(list(zip(*found, strict=True)), place[number])


def _or_zero(value: float | None) -> float:
    return value or 0


def _column(column: Coded | NDArray[Any]) -> Column:
    if isinstance(column, Coded):
        codes = column.codes
        return Same(column.values[codes[0]]) if (codes == codes[0]).all() else column.each()
    if (column == column[0]).all():
        return Same(column[0].item())
    return list(column.tolist())


def _checksums(rows: NDArray[np.float64], last: Coded, texts: Sequence[int]) -> NDArray[np.int64]:
    """Return what ``numbers_checksum`` does, of many rows.

    Parameters
    ----------
    rows : array (n, k)
        Of little-endian doubles, row by row.
    last : Coded
        One more number of each row; None where it has none.
    texts : sequence of n int
    """
    of_rows = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    found = list(map(crc32, of_rows, texts))
    if any(number is not None for number in last.values):
        for at, number in enumerate(last.each()):
            if number is not None:
                found[at] = crc32(_DOUBLE(number), found[at])
    return np.array(found, "u4").view("i4").astype(np.int64)


@lru_cache(maxsize=4096)  # many samples of a file say the same
def of_texts(
    detail: str, address: AddressKind | None, new_level: bool, intervals: int | None
) -> tuple[int, int]:
    """Return the detail's digest, and the checksum of the row's texts.

    The digest is a number that differs where samples differ in these values alone; 0 without any.
    """
    refuse_nul(detail)
    stated = detail
    if address or new_level or intervals:
        stated += f"\n{address} {new_level} {intervals}"
    digest = 0
    if stated:
        digest_bytes = blake2b(stated.encode(), digest_size=8).digest()
        digest = int.from_bytes(digest_bytes, "big", signed=True)
    return digest, texts_checksum((digest, detail, address, intervals))


def refuse_nul(*texts: str) -> None:
    """Raise for U+0000, which PostgreSQL cannot store: a store may move between engines."""
    if any("\0" in text for text in texts):
        raise UnicodeError("a text holds the character U+0000")
