"""Links as columns are the same links, and a network of them is the same network."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.columns.block import SIDE
from planner.model.columns.links import LinkColumns
from planner.model.columns.rows import LinkRow
from planner.model.columns.table import LinkArrays
from planner.model.document import document_of
from planner.model.errors import InputError
from planner.model.estimate import ADDRESS_KINDS, Estimate, Figures, Origin, Prior
from planner.model.link import LIMITED_BY, Link
from planner.model.network import Network
from tests.planner.model.test_network import NOW_S, known_networks
from tests.planner.transfer.strategies import REGIONS, patient

_MANY = [f"own:r{number}" for number in range(3 * SIDE)]
_times = st.none() | st.floats(0, NOW_S)
_origins = st.builds(
    Origin,
    st.sampled_from(["measured", "inferred", "baseline"]),
    st.sampled_from(["median-of-samples", "provider-pair-law"]),
    st.integers(0, 2**32 - 1),
    st.integers(0, 9),
    _times,
    _times,
    st.sampled_from([None, "public", "private", "both"]),
    st.none() | st.builds(Figures, connections=st.integers(1, 3), note=st.text(max_size=3)),
)
_bounds = st.lists(st.floats(0, inf) | st.just(-0.0), min_size=3, max_size=3).map(sorted)
_estimates = st.builds(
    lambda bounds, origin: Estimate(bounds[0], bounds[1], bounds[2], origin), _bounds, _origins
)
_priors = st.builds(Prior, *[st.floats(0, 1e9)] * 4)
_aggregates = st.builds(
    lambda estimate, prior: replace(estimate, prior=prior), _estimates, st.none() | _priors
)
_pairs = st.tuples(st.sampled_from(_MANY), st.sampled_from(_MANY))
_figures = st.tuples(
    _estimates,
    _estimates,
    _aggregates,
    st.none() | st.floats(0, 100),
    st.sampled_from(LIMITED_BY),
    st.sampled_from(ADDRESS_KINDS),
)


def _columns(links: Iterable[Link], names: Sequence[str]) -> LinkColumns:
    return LinkArrays.of(links, names).as_columns()


def as_columns(network: Network) -> Network:
    usual = [link for row in network.usual.values() for link in row.values()]
    columns = _columns(usual, list(network.sites))
    return network.with_(links={src: columns.row(src) for src in network.sites})


@patient
@given(st.dictionaries(_pairs, _figures, max_size=20), _pairs)
def test_links_come_back_from_columns_as_they_were(
    figures: dict[tuple[str, str], tuple[object, ...]], ends: tuple[str, str]
) -> None:
    links = {pair: Link(*pair, *found) for pair, found in figures.items()}  # type: ignore[arg-type]
    columns = _columns(links.values(), _MANY)
    order = sorted(links, key=lambda pair: (_MANY.index(pair[0]), _MANY.index(pair[1])))
    again: LinkColumns = pickle.loads(pickle.dumps(columns, 5))
    assert repr(list(columns)) == repr(list(again)) == repr([links[pair] for pair in order])
    assert list(columns) == [links[pair] for pair in order]
    assert len(columns) == len(links)
    assert columns.sources() == list(dict.fromkeys(src for src, _ in order))
    assert columns.link(*ends) == links.get(ends)
    src, dst = ends
    between = [links[pair] for pair in order if pair[0] == src]
    between += [links[pair] for pair in order if pair[0] != src and pair[1] == dst]
    assert list(columns.between(src, dst)) == between
    assert columns.row(src).has_private() == any(
        link.address == "private" for link in links.values() if link.src == src
    )
    assert columns.link(src, "own:nowhere") is columns.link("own:nowhere", dst) is None


@patient
@given(known_networks(), st.booleans(), st.integers(1, len(REGIONS)), st.permutations(REGIONS))
def test_a_network_of_columns_is_the_same_network(
    network: Network, aged: bool, kept: int, order: list[str]
) -> None:
    view = as_columns(network)
    if kept < len(REGIONS):
        network, view = (one.with_(restricted_to=order[:kept]) for one in (network, view))
    if aged:
        network, view = (one.with_(aged_to_s=NOW_S) for one in (network, view))
    for src, row in network.links.items():
        for dst in order[len(order) // 2 :]:  # some, in any order, before all are made
            assert view.links[src].get(dst) == row.get(dst)
            assert (dst in view.links[src]) == (dst in row)
    assert view.has_private_links == network.has_private_links
    assert document_of(pickle.loads(pickle.dumps(view, 5))) == document_of(view)
    assert document_of(view) == document_of(network)
    assert list(view) == list(network)
    assert view == network


def test_a_row_is_a_dict_that_makes_a_link_once() -> None:
    names = _MANY[:3]
    figure = Estimate(1.0, 2.0, 3.0)
    row_of = {dst: Link(names[0], dst, figure, figure, figure) for dst in names[1:]}
    links = _columns(row_of.values(), names)
    asked = links.row(names[0])
    assert asked[names[2]] is asked[names[2]] is asked.get(names[2])
    assert [link is asked[link.dst] for link in asked.passing()] == [False, True]
    with pytest.raises(KeyError):
        asked[names[0]]
    assert asked.get(names[0], "no link") == "no link"
    assert bool(links.row(names[0]))
    assert not links.row(names[1])
    other = {names[1]: "another"}
    for view in (asked, links.row(names[0]), pickle.loads(pickle.dumps(asked))):
        assert isinstance(view, LinkRow)
        assert dict(view) == {**view} == view.copy() == view == row_of
        assert row_of == view
        assert view != other
        assert list(view) == view.keys() == names[1:] == list(reversed(list(reversed(view))))
        assert view.values() == list(row_of.values())
        assert view.items() == list(row_of.items())
        assert (view | other) == (row_of | other)
        assert (other | view) == row_of
        assert repr(view) == repr(row_of)
        assert len(view) == 2


@pytest.mark.parametrize(
    "wrong", [Estimate(3.0, 2.0, 4.0), Estimate(1.0, nan, 2.0), Estimate(1.0, 2.0, nan)]
)
def test_what_is_no_range_is_refused_by_name(wrong: Estimate) -> None:
    right = Estimate(1.0, 2.0, 3.0)
    link = Link(_MANY[0], _MANY[1], right, right, right)
    with pytest.raises(InputError, match=r"own:r0 -> own:r1.*bounds of per_flow_mbps"):
        _columns([replace(link, per_flow_mbps=wrong)], _MANY)
    with pytest.raises(InputError, match="comes twice"):
        _columns([link, link], _MANY)


def test_a_link_takes_about_a_hundred_bytes() -> None:
    """Three figures of three numbers with their origins and a prior: all but counts differ."""
    links = []
    for i, src in enumerate(_MANY):
        for j, dst in enumerate(_MANY):
            if src != dst:
                low = 1.0 + i / 100 + j / 10_000
                figure = Estimate(low, low + 0.1, low + 0.2, Origin("measured", samples=3))
                prior = Prior(low, low + 0.3, low + 0.5, 1.5)
                links.append(Link(src, dst, figure, figure, replace(figure, prior=prior)))
    columns = _columns(links, _MANY)
    stored = sum(len(block.data) for block in columns.blocks.values())
    assert 90 < stored / len(links) < 130
