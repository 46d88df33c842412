"""A network as bytes: its columns as they are stored, some 100 bytes a link.

A service sends it to who keeps a copy. Writing it holds few blocks at a time, and makes no object
of a link that is in columns already. Layout: parts, each of which is the length of a JSON object
(8 bytes, little-endian), the object, and the blocks that it lists as ``{"layer": 0, "blocks":
[[row, column, bytes], ...]}``; objects and blocks are filled up to multiples of 8 bytes. A layer is
a set of columns: those of a store as they are, or those made of all other links, such as links from
models. The last part has the names and origins of each layer, and of which layers rows are made.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from planner.model.columns.block import SIDE, Block, Buffer
from planner.model.columns.links import ColumnsRow, LinkColumns, Origins
from planner.model.columns.rows import Joined, LinkRow, Maker, maker_of
from planner.model.columns.table import LinkArrays  # of NumPy, which readers need not have
from planner.model.document import members_of, network_with, no_network, origin_as_json, origin_of
from planner.model.estimate import Origin
from planner.model.link import Link
from planner.model.network import Links, Network

NETWORK_COLUMNS = "application/vnd.relayd.network-columns.v1"
"""The media type; another layout will have another."""
_ALIGNED = 8
_LISTS = {"links": "usual", "other_links": "others"}

Blocks: TypeAlias = Mapping[tuple[int, int], Buffer]


class _Layer(NamedTuple):
    """What the blocks of a layer refer to."""

    names: Mapping[int, str]
    origins: Mapping[int, Origin]


# ---- writing -------------------------------------------------------------------------------------


def network_columns(network: Network) -> Iterator[Buffer]:
    """Yield a network as bytes, piece by piece; :func:`network_of_columns` reads them again."""
    yield _object({name: value for name, value in members_of(network) if name not in _LISTS})
    layers: list[_Layer] = []
    rows: dict[str, dict[str, list[int]]] = {}
    for name, attribute in _LISTS.items():
        links: Links = getattr(network, attribute)
        stored = _stored(links)
        of_row: dict[str, list[int]] = {}
        for src, row in links.items():
            is_stored = stored is not None and _columns_of(row) is stored
            of_row[src] = [len(layers)] if is_stored else []
        if stored is not None:
            yield from _part(len(layers), {at: block.data for at, block in stored.blocks.items()})
            layers.append(_Layer(stored.names, stored.origins))
        layers.append((yield from _made(len(layers), links, of_row)))
        rows[name] = of_row
    yield _object({"rows": rows, "layers": list(map(_described, layers))})


def _stored(links: Links) -> LinkColumns | None:
    """Return the columns of which most rows are, but for what is joined to them; or None."""
    found = map(_columns_of, links.values())
    return next((columns for columns in found if columns is not None), None)


def _columns_of(row: Mapping[str, Link]) -> LinkColumns | None:
    """Return the columns that hold the first links of a row; None where none do."""
    maker = maker_of(row)
    own = maker.links if type(maker) is Joined else maker
    return own.columns if isinstance(own, ColumnsRow) else None


def _made(
    layer: int, links: Links, of_row: Mapping[str, list[int]]
) -> Generator[Buffer, None, _Layer]:
    """Yield the blocks of links that are not stored, and note their rows; return their layer."""
    numbers = {src: number for number, src in enumerate(links)}
    origins = Origins()
    sources = list(links)
    for first in range(0, len(sources), SIDE):
        wanted: dict[int, list[tuple[Maker, str]]] = {}
        for src in sources[first : first + SIDE]:
            maker = maker_of(links[src])
            for dst in _beside(maker) if of_row[src] else maker.names():
                column = numbers.setdefault(dst, len(numbers)) // SIDE
                wanted.setdefault(column, []).append((maker, dst))
        made_of: set[str] = set()
        for _, pairs in sorted(wanted.items()):
            found = [link for maker, dst in pairs if (link := maker.make(dst)) is not None]
            made_of.update(link.src for link in found)
            table = LinkArrays.of(found)
            blocks = table.blocks([numbers[name] for name in table.names], origins.number_of)
            yield from _part(layer, {at: data for at, _, data in blocks})
        for src in made_of:
            of_row[src].append(layer)
    names = {number: name for name, number in numbers.items()}
    return _Layer(names, dict(enumerate(origins.all)))


def _beside(maker: Maker) -> Iterable[str]:
    """Return where links lead that are joined to stored ones."""
    if type(maker) is not Joined:
        return ()
    stored = set(maker.links.names())
    return [dst for dst in maker.further.names() if dst not in stored]


def _part(layer: int, blocks: Blocks) -> Iterator[Buffer]:
    if not blocks:
        return
    places = [[*at, len(data)] for at, data in blocks.items()]
    yield _object({"layer": layer, "blocks": places})
    for data in blocks.values():
        yield data
        if more := -len(data) % _ALIGNED:
            yield bytes(more)


def _object(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return len(text).to_bytes(_ALIGNED, "little") + text


def _described(layer: _Layer) -> dict[str, Any]:
    return {
        "names": list(layer.names.items()),
        "origins": [(number, origin_as_json(found)) for number, found in layer.origins.items()],
    }


# ---- reading -------------------------------------------------------------------------------------


def network_of_columns(content: bytes) -> Network:
    """Return the network that :func:`network_columns` wrote; its links stay in these bytes.

    Raises
    ------
    FormatError
        If these are no such bytes, or not all of them.
    """
    try:
        first, last, blocks = _read(memoryview(content))
        layers = [
            LinkColumns(
                dict(layer["names"]),
                blocks.get(number, {}),
                {key: origin_of(found) for key, found in layer["origins"]},
            )
            for number, layer in enumerate(last["layers"])
        ]
        links, others = (
            {src: _row(src, [layers[number] for number in made]) for src, made in rows.items()}
            for rows in (last["rows"][name] for name in _LISTS)
        )
        return network_with(first, links, others)
    except (LookupError, TypeError, ValueError) as error:
        raise no_network(error) from None


def _read(
    view: memoryview,
) -> tuple[dict[str, Any], dict[str, Any], dict[int, dict[tuple[int, int], Block]]]:
    """Return the first and the last object, and the blocks by layer."""
    found: list[dict[str, Any]] = []
    blocks: dict[int, dict[tuple[int, int], Block]] = {}
    at = 0
    while at < len(view):
        end = at + _ALIGNED + int.from_bytes(view[at : at + _ALIGNED], "little")
        if end > len(view):
            raise ValueError("the end is missing")
        found.append(json.loads(bytes(view[at + _ALIGNED : end])))
        at = end
        for row, column, size in found[-1].get("blocks", ()):
            block = Block(view[at : at + size])
            if not block.is_whole():
                raise ValueError("a block of links is not whole")
            blocks.setdefault(found[-1]["layer"], {})[row, column] = block
            at += size + -size % _ALIGNED
    return found[0], found[-1], blocks


def _row(src: str, layers: list[LinkColumns]) -> Mapping[str, Link]:
    makers: list[Maker] = [ColumnsRow(columns, src) for columns in layers]
    return LinkRow(reduce(Joined, makers)) if makers else {}
