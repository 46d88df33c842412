"""Links of stored snapshots, from rows to blocks of columns and back: versions 18 and 19.

Nothing is decoded but the order of figures, so that all figures stay as they are. A row that is not
what was stored stays found: the block that it goes into, and the rows of a block that is not what
was stored, get a checksum that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import nan
from typing import Any

from planner.model.columns.block import ADDRESS, COUNTS, LIMIT, SIDE, Block, packed
from planner.model.estimate import ADDRESS_KINDS
from planner.model.link import LIMITED_BY, LINK_FIGURES
from relayd.store.checksums import row_checksum
from relayd.store.database import Database
from relayd.store.failures import altered

_TABLES = (("links", 1), ("other_links", 0))
_ENDS, _OF_FIGURE = 3, 8  # key, source and destination; columns of a figure
_AFTER_FIGURES = _ENDS + _OF_FIGURE * len(LINK_FIGURES)
_FIGURES = range(_ENDS, _AFTER_FIGURES, _OF_FIGURE)
# What reading or packing raises where values are not of their kind.
_UNUSABLE = (IndexError, OverflowError, TypeError, ValueError)
# Where a row has what each column of a block holds.
_PLACES = (
    *(first + part for first in _FIGURES for part in (0, 1, 2, 6, 7)),
    _AFTER_FIGURES,
    *range(_AFTER_FIGURES + 2, _AFTER_FIGURES + 6),
    *(first + part for first in _FIGURES for part in (3, 4, 5)),
    _AFTER_FIGURES + 1,
    _AFTER_FIGURES + 6,
)


def convert(database: Database, *, back: bool) -> None:
    """Convert all snapshots, inside the transaction that changes the schema.

    Parameters
    ----------
    back : bool
        From blocks to rows.
    """
    for (key,) in database.rows("SELECT key FROM snapshots ORDER BY key"):
        for table, in_use in _TABLES:
            if back:
                _to_rows(database, key, table, in_use)
            else:
                _to_blocks(database, key, table, in_use)


def _to_blocks(database: Database, key: int, table: str, in_use: int) -> None:
    sources = f"SELECT DISTINCT src_id / {SIDE} FROM {table} WHERE snapshot_key = ?"  # noqa: S608
    for (src_block,) in database.rows(sources, (key,)):
        first = src_block * SIDE
        rows = database.rows(
            f"SELECT * FROM {table} WHERE snapshot_key = ? AND src_id >= ? AND src_id < ?",  # noqa: S608
            (key, first, first + SIDE),
        )
        rows.sort(key=lambda row: (row[2] // SIDE, row[1], row[2]))
        for dst_block, group in groupby(rows, key=lambda row: row[2] // SIDE):
            found = [(link, _is_sound(link[:-1], link[-1])) for link in group]
            sound = min((state for _, state in found), key=(False, None, True).index)
            try:
                content = _content([link for link, _ in found])
            except _UNUSABLE:
                # A damaged row has what no column can hold. The block would not be read anyway.
                content, sound = b"", False
            row = (key, in_use, src_block, dst_block, len(found), content)
            database.insert("link_blocks", [_stamped(row, sound)])


def _content(rows: Sequence[tuple[Any, ...]]) -> bytes:
    columns = list(zip(*rows, strict=True))
    slots = [src % SIDE * SIDE + dst % SIDE for src, dst in zip(*columns[1:3], strict=True)]
    found: list[Sequence[Any]] = [columns[place] for place in _PLACES]
    found[:COUNTS] = [[nan if v is None else v for v in values] for values in found[:COUNTS]]
    found[LIMIT] = [LIMITED_BY.index(name) for name in found[LIMIT]]
    found[ADDRESS] = [ADDRESS_KINDS.index(name) for name in found[ADDRESS]]
    return packed(slots, found)


def _to_rows(database: Database, key: int, table: str, in_use: int) -> None:
    blocks = database.rows(
        "SELECT src_block, dst_block FROM link_blocks WHERE snapshot_key = ? AND in_use = ?",
        (key, in_use),
    )
    for src_block, dst_block in blocks:
        *row, checksum = database.row(
            "SELECT * FROM link_blocks WHERE snapshot_key = ? AND in_use = ? AND src_block = ? "
            "AND dst_block = ?",
            (key, in_use, src_block, dst_block),
        )
        sound = _is_sound(row, checksum)
        try:
            links = _rows_of(key, (src_block, dst_block), Block(row[-1]))
        except _UNUSABLE:
            links = []
        if len(links) != row[-2]:
            raise altered(database.location, "a block of links of a snapshot")
        database.insert(table, [_stamped(link, sound) for link in links])


def _rows_of(key: int, place: tuple[int, int], block: Block) -> list[tuple[Any, ...]]:
    src_block, dst_block = place
    found = []
    for i in range(SIDE):
        start, destinations = block.row(i)
        for at, j in enumerate(destinations, start):
            row: list[Any] = [None] * (_AFTER_FIGURES + 7)
            row[:_ENDS] = key, src_block * SIDE + i, dst_block * SIDE + j
            for part, (values, mask) in zip(_PLACES, block.columns, strict=True):
                value = values[at & mask]
                row[part] = None if value != value else value
            row[_PLACES[LIMIT]] = LIMITED_BY[row[_PLACES[LIMIT]]]
            row[_PLACES[ADDRESS]] = ADDRESS_KINDS[row[_PLACES[ADDRESS]]]
            found.append(tuple(row))
    return found


def _is_sound(row: Sequence[Any], checksum: int | None) -> bool | None:
    """Whether a row is what was stored; None where nothing tells."""
    return None if checksum is None else row_checksum(row) == checksum


def _stamped(row: Sequence[Any], sound: bool | None) -> tuple[Any, ...]:
    """Return a row with its checksum; a wrong one if what it was made of was not sound."""
    if sound is None:
        return (*row, None)
    return (*row, row_checksum(row) ^ (not sound))
