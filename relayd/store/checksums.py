"""Checksums of rows, stored with them: what is read is what was written.

A column ``checksum`` covers the columns before it in its table; it is NULL in rows from before
version 12. It is a CRC-32, which finds every flip of up to 32 bits in a row and misses one in
4 * 10^9 other changes. It is against failing disks and memory, not against people: whoever can
change a row can change its checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import Any
from zlib import crc32

from relayd.store.database import Database
from relayd.store.failures import altered

_EXACT = 2**53
_COLUMNS = {
    "sqlite": "SELECT name FROM pragma_table_info(?) ORDER BY cid",
    "postgresql": "SELECT CAST(attname AS text) FROM pg_attribute "
    "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
}


def row_checksum(row: Sequence[Any]) -> int:
    """Return the checksum of a row's values: 32 bits, as a signed integer.

    Numbers count by their value: an integer is equal to the float that an engine makes of it.
    Bytes are the last value of a row.
    """
    if row and row[-1].__class__ is bytes:
        return _signed(crc32(row[-1], row_checksum(row[:-1]) % 2**32))
    # A sum is a float, and 0.0 where one engine keeps -0.0 and the other does not.
    numbers = [v + 0.0 for v in row if v is not None and v.__class__ is not str]
    return numbers_checksum(numbers, texts_checksum(row))


def texts_checksum(row: Sequence[Any]) -> int:
    """Return the CRC-32 of a row's texts, absent values and large whole numbers.

    The first half of :func:`row_checksum`; rows that differ in other values alone share it.
    """
    texts = ["\1" if v is None else v for v in row if v is None or v.__class__ is str]
    # As floats, whole numbers lose digits here.
    texts += [str(v) for v in row if v.__class__ is int and not -_EXACT < v < _EXACT]
    return crc32("\0".join(texts).encode())


def numbers_checksum(numbers: Sequence[float], texts: int) -> int:
    """Return the checksum of a row from its numbers and from what :func:`texts_checksum` says.

    The second half of :func:`row_checksum`. No number is -0.0.
    """
    return _signed(crc32(_packed(len(numbers))(*numbers), texts))


@cache
def _packed(count: int) -> Callable[..., bytes]:
    return Struct(f"<{count}d").pack


def _signed(checksum: int) -> int:
    return checksum - 2**32 if checksum >= 2**31 else checksum


def with_checksum(row: Sequence[Any]) -> tuple[object, ...]:
    """Return a row with its checksum at the end."""
    return (*row, row_checksum(row))


def check_row(database: Database, row: Sequence[Any], checksum: int | None, what: str) -> None:
    """Raise StoreError if a row has a checksum and is not what was stored.

    Parameters
    ----------
    what : str
        The row, for the error.
    """
    if checksum is not None and row_checksum(row) != checksum:
        raise altered(database.location, what)


def covered_columns(database: Database, table: str) -> list[str]:
    """Return the columns of a table that its checksums cover, in order."""
    columns = [name for (name,) in database.rows(_COLUMNS[database.engine], (table,))]
    return columns[: columns.index("checksum")]


def stamp(database: Database, table: str, number: int) -> None:
    """Store the checksum of the row with an id; inside the transaction that wrote it."""
    columns = ", ".join(covered_columns(database, table))
    row = database.row(f"SELECT {columns} FROM {table} WHERE id = ?", (number,))  # noqa: S608
    database.change(
        f"UPDATE {table} SET checksum = ? WHERE id = ?",  # noqa: S608
        (row_checksum(row), number),
    )
