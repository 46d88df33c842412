"""The columns of up to 32 x 32 links as one piece of memory, as it is stored and shared.

Layout, little-endian: a bitmap of 1,024 bits, one for each pair, row by row (bit ``32 i + j`` for
the i-th source and j-th destination), that says which links there are; a byte for each column that
says how it is written; a byte of padding; then the columns, each with a value for every link.
Numbers of 8 bytes come first, so all are aligned. A column whose values are all the same has one
value, and one that equals the column before has none.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any, Literal, TypeAlias

SIDE = 32
"""Sources and destinations of a block."""
Buffer: TypeAlias = "bytes | memoryview"
Column: TypeAlias = "tuple[Sequence[Any], int]"
"""Values, and what an index is masked with: -1, or 0 where one value stands for all."""

FIGURE_NUMBERS = 5
"""low, expected, high, newest_s and oldest_s of each figure, figure by figure."""
EXPECTED, NEWEST_S = 1, 3
"""Of the numbers of a figure."""
LOSS, PRIOR = 15, 16
"""Loss in percent, and the four numbers of the aggregate's prior."""
PRIOR_EXPECTED, PRIOR_MEMORY_YEARS = PRIOR + 1, PRIOR + 3
COUNTS, FIGURE_COUNTS = 20, 3
"""Number of the origin, samples and links of each figure, figure by figure."""
AGGREGATE_ORIGIN = COUNTS + 2 * FIGURE_COUNTS
LIMIT, ADDRESS = 29, 30
"""Positions in LIMITED_BY and ADDRESS_KINDS."""
_Format: TypeAlias = 'Literal["d", "I", "B"]'
_WIDTHS: dict[_Format, int] = {"d": 8, "I": 4, "B": 1}
_DOUBLE: _Format = "d"
_COUNT: _Format = "I"
_KIND: _Format = "B"
FORMATS = [*[_DOUBLE] * COUNTS, *[_COUNT] * (LIMIT - COUNTS), _KIND, _KIND]
_BITMAP = SIDE * SIDE // 8
_HEAD = _BITMAP + len(FORMATS) + 1
_EACH, _ONE, _AS_BEFORE = range(3)
_IS_LITTLE = pack("=H", 1) == pack("<H", 1)
_ROW = (1 << SIDE) - 1
_ALL = (1 << SIDE * SIDE) - 1


class Block:
    """Read access to the columns of a block.

    Parameters
    ----------
    data : bytes or memoryview
        What :func:`assembled` made; it is used in place.
    """

    __slots__ = ("_columns", "_is_full", "_present", "data")

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self._present = int.from_bytes(data[:_BITMAP], "little")
        self._is_full = self._present == _ALL
        self._columns: list[Column] | None = None

    def __reduce__(self) -> tuple[type[Block], tuple[bytes]]:
        """Take a copy of memory that is another's."""
        return Block, (bytes(self.data),)

    def __len__(self) -> int:
        """Return how many links there are."""
        return self._present.bit_count()

    def is_whole(self) -> bool:
        """Whether its memory is as long as its head says."""
        if len(self.data) < _HEAD:
            return False
        ways, count = bytes(self.data[_BITMAP : _HEAD - 1]), len(self)
        if ways[0] == _AS_BEFORE or max(ways) > _AS_BEFORE:
            return False
        values = {_EACH: count, _ONE: 1, _AS_BEFORE: 0}
        sizes = (_WIDTHS[name] * values[way] for name, way in zip(FORMATS, ways, strict=True))
        return len(self.data) == _HEAD + sum(sizes)

    @property
    def columns(self) -> list[Column]:
        """The columns in their order; where a link is in them, :meth:`at` and :meth:`row` tell."""
        if self._columns is None:
            self._columns = _columns(memoryview(self.data), len(self))
        return self._columns

    def values(self, column: int, ats: Sequence[int]) -> list[Any]:
        """Return the values of a column for some links."""
        values, mask = self.columns[column]
        return [values[at] for at in ats] if mask else [values[0]] * len(ats)

    def at(self, source: int, destination: int) -> int | None:
        """Return where a link is in the columns; None where there is none."""
        slot = source * SIDE + destination
        if self._is_full:
            return slot
        if not self._present >> slot & 1:
            return None
        return (self._present & ((1 << slot) - 1)).bit_count()

    def row(self, source: int) -> tuple[int, list[int]]:
        """Return where the links of a source begin in the columns, and their destinations."""
        before = source * SIDE
        bits = self._present >> before & _ROW
        start = (self._present & ((1 << before) - 1)).bit_count()
        return start, [j for j in range(SIDE) if bits >> j & 1]

    @property
    def bitmap(self) -> Buffer:
        """Which links there are: 1,024 bits, the lowest of a byte first."""
        return self.data[:_BITMAP]

    def has_private(self) -> bool:
        """Whether any of the links is over private addresses."""
        return any(self.columns[ADDRESS][0])


def packed(slots: Sequence[int], columns: Sequence[Sequence[Any]]) -> bytes:
    """Return the memory of a block.

    Parameters
    ----------
    slots : sequence of int
        Positions of its links in the bitmap, ascending.
    columns : sequence of sequences
        A value for each link, in the order of the layout; NaN where there is none.
    """
    present = sum(1 << slot for slot in slots).to_bytes(_BITMAP, "little")
    pieces = (
        _little(array(name, values)).tobytes()
        for name, values in zip(FORMATS, columns, strict=True)
    )
    return assembled(present, len(slots), pieces)


def assembled(present: bytes, count: int, columns: Iterable[bytes]) -> bytes:
    """Return the memory of a block.

    Parameters
    ----------
    present : bytes
        As :attr:`Block.bitmap`.
    count : int
        Of links.
    columns : iterable of bytes
        Each a value for each link, in the order and the formats of the layout, little-endian.
    """
    ways, parts, before = bytearray(), [], b""
    for name, raw in zip(FORMATS, columns, strict=True):
        size = _WIDTHS[name]
        if raw == raw[:size] * count:
            ways.append(_ONE)
            parts.append(raw[:size])
        elif raw == before:
            ways.append(_AS_BEFORE)
        else:
            ways.append(_EACH)
            parts.append(raw)
        before = raw
    return b"".join([present, ways, b"\0", *parts])


def _little(values: array[Any]) -> array[Any]:
    if not _IS_LITTLE:
        values.byteswap()
    return values


def _columns(data: memoryview, count: int) -> list[Column]:
    found: list[Column] = []
    place = _HEAD
    for name, way in zip(FORMATS, data[_BITMAP : _HEAD - 1], strict=True):
        size = _WIDTHS[name]
        if way == _AS_BEFORE:
            found.append(found[-1])
            continue
        end = place + (size if way == _ONE else size * count)
        values: Sequence[Any] = data[place:end].cast(name)
        if not _IS_LITTLE:
            values = _little(array(name, values))
        found.append((values, 0 if way == _ONE else -1))
        place = end
    return found
