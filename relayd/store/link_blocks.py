"""Reads links of a snapshot from the database: blocks of columns, :mod:`planner.model.columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from planner.model.columns.block import SIDE, Block
from planner.model.columns.links import ColumnsRow, LinkColumns
from planner.model.columns.rows import Among, LinkRow
from planner.model.estimate import Origin
from planner.model.network import Links
from relayd.store.database import Database

_BLOCKS = (
    "SELECT src_block, dst_block, content FROM link_blocks WHERE snapshot_key = ? AND in_use = ?"
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
    for src_block, dst_block, content in database.rows(sql, values):
        blocks[src_block, dst_block] = Block(content)
    return LinkColumns(names, blocks, origins() if blocks else {})


def as_rows(links: LinkColumns, regions: Iterable[str], between: tuple[str, str] | None) -> Links:
    """Return links by source and destination: all, or those out of one region and into another.

    Links are made when they are asked for: of many a plan reads no more than what is expected.

    Parameters
    ----------
    regions : iterable of str
        Sources that come first, with or without links.
    between : (src, dst), optional
        Which region and which other one; without it, all links are returned.
    """
    if between is None:
        return {region: links.row(region) for region in dict.fromkeys((*regions, *links.sources()))}
    src, dst = between
    into = {dst: None}
    rows = {region: LinkRow(Among(ColumnsRow(links, region), into)) for region in regions}
    further = [region for region in links.numbers if region not in rows]
    rows |= {
        region: LinkRow(Among(ColumnsRow(links, region), into))
        for region in further
        if region != src and links.link(region, dst) is not None
    }
    if src in rows or links.destinations(src):
        rows[src] = links.row(src)
    return rows
