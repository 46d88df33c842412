"""Reads links of a snapshot from the database: blocks of columns, :mod:`planner.model.columns`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.model.columns.block import SIDE, Block
from planner.model.columns.links import LinkColumns
from planner.model.estimate import Origin
from relayd.store.checksums import check_row
from relayd.store.database import Database

_BLOCKS = (
    "SELECT src_block, dst_block, links, content, checksum FROM link_blocks "
    "WHERE snapshot_key = ? AND in_use = ?"
)
_BETWEEN = " AND (src_block = ? OR dst_block = ?)"


def read_links(
    database: Database,
    key: int,
    origins: Callable[[], Mapping[int, Origin]],
    *,
    in_use: bool,
    between: tuple[str, str] | None = None,
) -> LinkColumns:
    """Return links of a snapshot.

    Parameters
    ----------
    key : int
        Of the snapshot.
    origins : callable
        Reads the snapshot's origins, by number; called if there are links.
    in_use : bool
        False for links over the kind of address that is not in use.
    between : (src, dst), optional
        Read only the blocks with links out of the source and into the destination. A region that
        the database does not know has none.

    Raises
    ------
    StoreError
        If a block, or an origin, is not what was stored.
    """
    names = dict(database.rows("SELECT id, name FROM regions"))
    sql, values = _BLOCKS, [key, int(in_use)]
    if between is not None:
        ids = {name: number for number, name in names.items()}
        sql += _BETWEEN
        # No block has a negative number.
        values += [ids.get(name, -SIDE) // SIDE for name in between]
    blocks = {}
    for src_block, dst_block, links, content, checksum in database.rows(sql, values):
        row = (key, int(in_use), src_block, dst_block, links, content)
        check_row(database, row, checksum, "a block of links of a snapshot")
        blocks[src_block, dst_block] = Block(content)
    return LinkColumns(names, blocks, origins() if blocks else {})
