"""A network as bytes, as a service sends it to those who keep a copy: its arrays as they are.

Layout: the length of a JSON object (8 bytes, little-endian) and the object, with all but the links;
then, for the links in use and the others, the evidence and the records of the whole table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from planner.model.document import members_of, network_with, no_network, origin_as_json, origin_of
from planner.model.link_array import EVIDENCE, LINK, LinkArray
from planner.model.network import Network

NETWORK_COLUMNS = "application/vnd.relayd.network-columns.v2"
"""The media type; another layout will have another."""
_LENGTH = 8
_LISTS = {"links": "usual", "other_links": "others"}

Buffer: TypeAlias = "bytes | memoryview"


def network_columns(network: Network) -> Iterator[Buffer]:
    """Yield a network as bytes, piece by piece; :func:`network_of_columns` reads them again."""
    arrays: dict[str, LinkArray] = {
        name: getattr(network, attribute) for name, attribute in _LISTS.items()
    }
    head: dict[str, Any] = dict(members_of(network))
    for name, links in arrays.items():
        head[name] = {
            "regions": len(links.regions),
            "evidence": len(links.evidence),
            "origins": list(map(origin_as_json, links.origins)),
        }
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    yield len(text).to_bytes(_LENGTH, "little") + text
    for links in arrays.values():
        yield links.evidence.tobytes()
        for position in range(len(links.regions)):
            yield links.row(position).tobytes()


def network_of_columns(content: bytes) -> Network:
    """Return the network that :func:`network_columns` wrote; its links stay in these bytes.

    Raises
    ------
    FormatError
        If these are no such bytes, or not all of them.
    """
    try:
        at = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
        head = json.loads(content[_LENGTH:at])
        regions = [row["region"] for row in head["sites"]]
        arrays = []
        for name in _LISTS:
            size, count = head[name]["regions"], head[name]["evidence"]
            evidence = np.frombuffer(content, EVIDENCE, count, at)
            at += evidence.nbytes
            table = np.frombuffer(content, LINK, size * size, at).reshape(size, size)
            at += table.nbytes
            origins = tuple(map(origin_of, head[name]["origins"]))
            arrays.append(LinkArray(tuple(regions[:size]), table, evidence, origins))
        return network_with(head, *arrays)
    except (LookupError, TypeError, ValueError) as error:
        raise no_network(error) from None
