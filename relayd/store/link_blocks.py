"""The links of a snapshot in the database: its array in tiles of up to 32 x 32 links.

A plan reads the tiles of one row and one column. A tile has what its links rest on as well, and is
compressed: most records of a tile are much alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from planner.model.errors import StoreError
from planner.model.estimate import Origin
from planner.model.link import LINK_FIGURES
from planner.model.link_array import EVIDENCE, LINK, LinkArray, Origins, Records
from relayd.store.database import Database

SIDE = 32
"""Regions of a tile, each way."""
_COUNT_BYTES = 4
_TILES = (
    "SELECT src_block, dst_block, content FROM link_blocks WHERE snapshot_key = ? AND in_use = ?"
)
_BETWEEN = " AND (src_block = ? OR dst_block = ?)"


def save_links(
    database: Database, key: int, links: LinkArray, origins: Origins, *, in_use: bool
) -> None:
    """Save links of a snapshot.

    Parameters
    ----------
    database : Database
    key : int
        Of the snapshot.
    links : LinkArray
        Between its sites, in their order.
    origins : Origins
        Under whose numbers the snapshot keeps origins; new ones are added.
    in_use : bool
        False for links over the kind of address that is not in use.
    """
    evidence = links.evidence.copy()
    for number in np.unique(links.evidence["origin"]).tolist():
        now = origins.number_of(links.origins[number])
        evidence["origin"][links.evidence["origin"] == number] = now
    rows = []
    for i in range(0, len(links.regions), SIDE):
        for j in range(0, len(links.regions), SIDE):
            present = links.present[i : i + SIDE, j : j + SIDE]
            if count := int(np.count_nonzero(present)):
                content = _packed(links.whole[i : i + SIDE, j : j + SIDE], evidence)
                rows.append((key, int(in_use), i // SIDE, j // SIDE, count, content))
    database.insert("link_blocks", rows)


def read_links(
    database: Database,
    key: int,
    regions: Sequence[str],
    origins: Mapping[int, Origin],
    *,
    in_use: bool,
    between: tuple[str, str] | None = None,
) -> LinkArray:
    """Return links of a snapshot.

    Parameters
    ----------
    database : Database
    key : int
        Of the snapshot.
    regions : sequence of str
        Of its sites, in their order.
    origins : mapping
        The snapshot's origins, by number.
    in_use : bool
        False for links over the kind of address that is not in use.
    between : (src, dst), optional
        Read only the links out of the source and into the destination. A region that the snapshot
        does not know has none.

    Raises
    ------
    StoreError
        If they are not what was stored.
    """
    sql, values = _TILES, [key, int(in_use)]
    at = [regions.index(end) if end in regions else -SIDE for end in between or ()]
    if between is not None:
        sql += _BETWEEN
        values += [position // SIDE for position in at]
    table = np.zeros((len(regions), len(regions)), LINK)
    parts, before = [np.zeros(0, EVIDENCE)], 0
    for i, j, content in database.rows(sql, values):
        place = table[i * SIDE : (i + 1) * SIDE, j * SIDE : (j + 1) * SIDE]
        tile, evidence = _unpacked(content, place.shape)
        for name in LINK_FIGURES:
            tile[name]["evidence"] += np.uint32(before)
        if between is None:
            place[...] = tile
        else:
            out = np.arange(tile.shape[0]) + i * SIDE == at[0]
            into = np.arange(tile.shape[1]) + j * SIDE == at[1]
            wanted = out[:, None] | into
            place[wanted] = tile[wanted]
        parts.append(evidence)
        before += len(evidence)
    numbers = sorted(origins)
    found = np.concatenate(parts)
    found["origin"] = np.searchsorted(numbers, found["origin"]) if numbers else 0
    return LinkArray(tuple(regions), table, found, tuple(origins[number] for number in numbers))


def _packed(tile: Records, evidence: Records) -> bytes:
    """Return a tile as bytes: how many rows of evidence, these, and records that number them."""
    cells = tile.copy()
    numbers = np.stack([cells[name]["evidence"] for name in LINK_FIGURES])
    used, place = np.unique(numbers, return_inverse=True)
    for name, places in zip(LINK_FIGURES, place.reshape(numbers.shape), strict=True):
        cells[name]["evidence"] = places
    content = evidence[used].tobytes() + cells.tobytes()
    return len(used).to_bytes(_COUNT_BYTES, "little") + zlib.compress(content, 1)


def _unpacked(content: bytes, shape: tuple[int, ...]) -> tuple[Records, Records]:
    try:
        count = int.from_bytes(content[:_COUNT_BYTES], "little")
        raw = zlib.decompress(content[_COUNT_BYTES:])
        evidence = np.frombuffer(raw, EVIDENCE, count)
        return np.frombuffer(raw, LINK, offset=evidence.nbytes).reshape(shape).copy(), evidence
    except (ValueError, zlib.error) as error:
        raise StoreError("snapshot", f"has a damaged block of links ({error})") from error
