"""Links as an array are the same links, also as bytes, and derived as each would be."""

from __future__ import annotations

import pickle
from dataclasses import replace
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.document import network_columns, network_of_columns
from planner.model.errors import FormatError, InputError
from planner.model.estimate import ADDRESS_KINDS, Estimate, Prior
from planner.model.link import LIMITED_BY, Link
from planner.model.link_array import LINK, LinkArray
from planner.model.network import Network
from tests.planner.model.test_estimate import ESTIMATES
from tests.planner.model.test_network import NOW_S, known_networks
from tests.planner.transfer.strategies import REGIONS, patient

_MANY = [f"own:r{number}" for number in range(9)]
_priors = st.builds(Prior, *[st.floats(0, 1e9)] * 4)
_aggregates = st.builds(
    lambda estimate, prior: replace(estimate, prior=prior), ESTIMATES, st.none() | _priors
)
_pairs = st.tuples(st.sampled_from(_MANY), st.sampled_from(_MANY))
_links = st.dictionaries(
    _pairs,
    st.tuples(
        ESTIMATES,
        ESTIMATES,
        _aggregates,
        st.none() | st.floats(0, 100),
        st.sampled_from(LIMITED_BY),
        st.sampled_from(ADDRESS_KINDS),
    ),
    max_size=20,
).map(lambda found: {pair: Link(*pair, *figures) for pair, figures in found.items()})


def test_a_link_takes_about_a_hundred_bytes() -> None:
    assert LINK.itemsize <= 112


@patient
@given(_links, _links, st.permutations(_MANY))
def test_links_come_back_as_they_were(
    links: dict[tuple[str, str], Link], others: dict[tuple[str, str], Link], order: list[str]
) -> None:
    found = LinkArray.of(links.values(), _MANY)
    again: LinkArray = pickle.loads(pickle.dumps(found))
    assert again == found
    assert {(one.src, one.dst): one for one in again.all_links()} == links
    assert found.count == len(links)
    assert found.has_private == any(link.address == "private" for link in links.values())
    changed = found.with_links(others.values())
    for derived, expected in (
        (changed, links | others),
        (changed.with_cells(changed.whole), links | others),
        (found.over(LinkArray.of(others.values())), others | links),
        (found.among(order[:4]), {p: one for p, one in links.items() if {*p} <= {*order[:4]}}),
        (changed.among(order), links | others),
        (found.where(np.eye(9, dtype=bool)), {p: one for p, one in links.items() if p[0] == p[1]}),
    ):
        for src in _MANY:
            assert dict(derived.get(src)) == {
                dst: link for (a, dst), link in expected.items() if a == src
            }
            assert all(derived.link(src, dst) == expected.get((src, dst)) for dst in _MANY)


@patient
@given(known_networks(), st.booleans(), st.data())
def test_a_network_sent_as_bytes_comes_back_the_same(
    network: Network, aged: bool, data: st.DataObject
) -> None:
    if aged:
        network = network.with_(aged_to_s=NOW_S)
    network = network.with_(others={src: network.usual[src] for src in list(network.sites)[:2]})
    content = b"".join(network_columns(network))
    again = network_of_columns(content)
    assert again == network
    assert again.aged_to_s == network.aged_to_s
    assert list(again.sites) == list(network.sites)
    assert b"".join(network_columns(again)) == content
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(FormatError, match="same version"):
        network_of_columns(content[:cut])


@pytest.mark.parametrize(
    "wrong", [Estimate(3.0, 2.0, 4.0), Estimate(1.0, nan, 2.0), Estimate(1.0, 2.0, nan)]
)
def test_what_is_no_range_is_refused_by_name(wrong: Estimate) -> None:
    right = Estimate(1.0, 2.0, 3.0)
    link = Link(_MANY[0], _MANY[1], right, right, right)
    with pytest.raises(InputError, match=r"own:r0 -> own:r1.*bounds of per_flow_mbps"):
        LinkArray.of([replace(link, per_flow_mbps=wrong)], _MANY).check()
    with pytest.raises(InputError, match="comes twice"):
        LinkArray.of([link, link], _MANY)


def test_a_network_is_laid_out_in_the_order_of_its_sites() -> None:
    rates_gbps = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], float)
    network = Network.from_matrices(REGIONS[:3], rates_gbps)
    sites = dict(reversed(list(network.sites.items())))
    turned = network.with_(sites=sites)
    assert turned.usual.regions == tuple(sites)
    assert {(one.src, one.dst): one for one in turned} == {(a.src, a.dst): a for a in network}
    assert turned.held_out_of(REGIONS[0])[0].tolist() == [128.0, 64.0, 0.0]
