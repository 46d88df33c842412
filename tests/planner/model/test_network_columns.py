"""A network that is sent as columns is the same network, whatever its links are made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.columns.block import Buffer
from planner.model.columns.links import ColumnsRow
from planner.model.columns.network import network_columns, network_of_columns
from planner.model.columns.rows import Given, Joined, LinkRow
from planner.model.document import document_of
from planner.model.errors import FormatError
from planner.model.network import Network
from tests.planner.model.test_columns import as_columns
from tests.planner.model.test_network import NOW_S, known_networks
from tests.planner.transfer.strategies import REGIONS, patient


def _partly_stored(network: Network, stored: set[str], to: set[str]) -> Network:
    """Return a network with some rows in columns as far as they lead to some regions."""
    columns = as_columns(network.with_(restricted_to=stored | to))
    rows = {}
    for src, row in network.usual.items():
        rest = {dst: link for dst, link in row.items() if dst not in to or src not in stored}
        maker = columns.usual[src].maker if src in stored else None  # type: ignore[attr-defined]
        if isinstance(maker, ColumnsRow):
            in_columns = LinkRow(maker)
            rest = {dst: link for dst, link in row.items() if dst not in in_columns}
            rows[src] = LinkRow(Joined(maker, Given(rest)))
        else:
            rows[src] = LinkRow(Given(rest))
    return network.with_(links=rows)


def _sent(network: Network) -> bytes:
    return b"".join(network_columns(network))


@patient
@given(known_networks(), st.booleans(), st.sets(st.sampled_from(REGIONS)), st.booleans())
def test_a_network_sent_as_columns_comes_back_the_same(
    network: Network, aged: bool, stored: set[str], whole: bool
) -> None:
    if aged:
        network = network.with_(aged_to_s=NOW_S)
    network = network.with_(others={src: network.usual[src] for src in list(network.sites)[:2]})
    view = as_columns(network) if whole else network
    if stored and not whole:
        view = _partly_stored(network, stored, set(REGIONS[:3]))
    again = network_of_columns(_sent(view))
    assert again == network
    assert again.aged_to_s == network.aged_to_s
    assert list(again.sites) == list(network.sites)
    assert list(again.usual) == list(network.usual)
    assert {(one.src, one.dst) for one in again} == {(one.src, one.dst) for one in network}
    assert document_of(again.with_(aged_to_s=NOW_S)).keys() == document_of(network).keys()
    assert pickle.loads(pickle.dumps(again)) == network
    assert _sent(view) == _sent(view)


@patient
@given(known_networks(), st.data())
def test_part_of_a_network_is_refused(network: Network, data: st.DataObject) -> None:
    content = _sent(as_columns(network))
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(FormatError, match="same version"):
        network_of_columns(content[:cut])


def test_stored_blocks_are_sent_as_they_are() -> None:
    rates_gbps = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], float)
    network = as_columns(Network.from_matrices(REGIONS[:3], rates_gbps))
    (block,) = network.usual[REGIONS[0]].maker.columns.blocks.values()  # type: ignore[attr-defined]
    parts: list[Buffer] = list(network_columns(network))
    assert any(part is block.data for part in parts)
