"""Estimates and links: what they say in words, JSON and bytes, how they age, and as an array."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import product
from math import inf, nan
from random import Random
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.document import as_json, link_of, network_columns, network_of_columns
from planner.model.errors import FormatError, InputError
from planner.model.estimate import (
    ADDRESS_KINDS,
    METHODS,
    SECONDS_PER_DAY,
    Achieved,
    Addresses,
    Estimate,
    Figures,
    HeldTo,
    Kind,
    Method,
    Origin,
    Prior,
    RateCut,
    exactly,
)
from planner.model.link import LIMITED_BY, Link
from planner.model.link_array import LINK, LinkArray
from planner.model.network import Network
from tests.planner.model.test_network import NOW_S, known_networks
from tests.planner.transfer.strategies import REGIONS, patient, seeds

FULL = Figures(
    connections=64,
    peers=3,
    window_kind="inferred",
    rtt_kind="measured",
    held_to="vm-caps",
    error=0.06,
    between=("aws", "gcp"),
    vm_type="aws:m5.8xlarge",
    note="a list",
)
_names = st.sampled_from(["", "aws", "Zürich"])
_kinds = st.sampled_from(get_args(Kind))
_figures = st.builds(
    Figures,
    connections=st.none() | st.integers(1, 256),
    peers=st.none() | st.integers(1, 40),
    window_kind=st.none() | _kinds,
    rtt_kind=st.none() | _kinds,
    held_to=st.none() | st.sampled_from(get_args(HeldTo)),
    error=st.none() | st.floats(0, 9),
    between=st.none() | st.tuples(_names, _names),
    vm_type=st.none() | _names,
    rate_cut=st.none() | st.builds(RateCut, *[st.floats(0.1, 99)] * 4, st.just("time"), st.none()),
    note=st.none() | _names,
    transfers=st.none()
    | st.builds(Achieved, *[st.integers(0, 99)] * 2, st.floats(0, 1e6), st.booleans()),
)
_times = st.none() | st.sampled_from([0.0, 1.6e9])
# A method with figures that its sentence is not made of would be a fault of who made the origin.
ORIGINS = st.builds(
    Origin,
    kind=_kinds,
    method=st.sampled_from(["opposite-direction", "shifted-law", "fleet-file"]),
    samples=st.integers(0, 9),
    links=st.integers(0, 9),
    newest_s=_times,
    oldest_s=_times,
    address=st.none() | st.sampled_from(get_args(Addresses)),
    figures=st.none() | _figures,
)
ESTIMATES = st.builds(
    Estimate,
    low=st.floats(0, 1),
    expected=st.floats(1, 2),
    high=st.sampled_from([2.0, inf]),
    origin=ORIGINS,
)


def test_every_method_has_a_sentence() -> None:
    assert set(get_args(Method)) == METHODS
    for method in get_args(Method):
        said = Origin("inferred", method, figures=FULL).basis
        assert "None" not in said
        assert bool(said) or method == "stated"
        assert "{" not in Origin("inferred", method).basis


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("median-of-samples", "64 connections"),
        ("window-over-rtt", "receiver's window (inferred) / RTT (measured)"),
        ("provider-pair-law", "aws to gcp law, error up to 6%"),
        ("caps-of-vm-type", "caps of other aws:m5.8xlarge"),
        ("unknown", "a list"),
    ],
)
def test_a_sentence_has_the_figures_of_its_method(method: Method, said: str) -> None:
    assert Origin("inferred", method, figures=FULL).basis == said


@given(rtt=ESTIMATES, flow=ESTIMATES)
def test_an_estimate_is_the_same_after_json(rtt: Estimate, flow: Estimate) -> None:
    aggregate = replace(exactly(3.0), prior=Prior(1.0, 2.0, 4.0, 0.5))
    link = Link("a", "b", rtt, flow, aggregate, limited_by="path")
    text = json.dumps(as_json(link), allow_nan=False)
    assert link_of(json.loads(text)) == link


def test_what_another_version_says_of_an_origin_is_kept_as_a_sentence() -> None:
    measured = Origin("measured", "median-of-samples", 3, 1, 1.6e9, 1.5e9)
    link = Link("a", "b", exactly(1.0), exactly(2.0), Estimate(1.0, 2.0, 3.0, measured))
    row = as_json(link)
    row["aggregate_gbps"]["basis"] = "a new way"
    for origin in (None, {**row["aggregate_gbps"]["origin"], "method": "of-tomorrow"}):
        row["aggregate_gbps"]["origin"] = origin
        found = link_of(row).aggregate_gbps
        assert (found.origin.method, found.basis) == ("unknown", "a new way")
        assert (found.source, found.samples, found.measured_at_s) == ("measured", 3, 1.6e9)
    row["aggregate_gbps"]["origin"] = {"kind": "measured", "method": "stated", "of_tomorrow": 1}
    for limit in (row.pop("limited_by"), "of-tomorrow", None):
        row["limited_by"] = limit
        assert link_of(row).limited_by == "unknown"
    assert link_of(row).aggregate_gbps.origin == Origin("measured", "stated")


def test_samples_age_but_not_a_spread_over_links() -> None:
    measured = Origin("measured", "median-of-samples", 3, 1, 0.0)
    one = Estimate(0.9, 1.0, 1.1, measured, Prior(0.5, 1.0, 2.0, 3.0))
    many = replace(one, origin=Origin("inferred", "shifted-law", 30, 9, 0.0))
    assert one.aged(SECONDS_PER_DAY - 1) == one
    old = one.aged(400 * SECONDS_PER_DAY)
    assert old.low < one.low < one.expected == old.expected < one.high < old.high
    assert old.origin == one.origin
    assert many.aged(400 * SECONDS_PER_DAY) == many
    assert (many.measured_at_s, many.origin.newest_s) == (None, 0.0)
    assert (one.samples, many.samples) == (3, 0)


# ---- links as an array ---------------------------------------------------------------------------


_MANY = [f"own:r{number}" for number in range(9)]
_priors = st.builds(Prior, *[st.floats(0, 1e9)] * 4)
_aggregates = st.builds(
    lambda estimate, prior: replace(estimate, prior=prior), ESTIMATES, st.none() | _priors
)


@st.composite
def _links(draw: st.DrawFn) -> dict[tuple[str, str], Link]:
    """Return up to a dozen links of few estimates: many rest on the same."""
    pool: list[Estimate] = draw(st.lists(_aggregates, min_size=1, max_size=5))
    random = Random(draw(seeds))

    def estimate() -> Estimate:
        return replace(random.choice(pool), prior=None)

    return {
        pair: Link(
            *pair,
            estimate(),
            estimate(),
            random.choice(pool),
            random.choice([None, random.uniform(0, 100)]),
            random.choice(LIMITED_BY),
            random.choice(ADDRESS_KINDS),
        )
        for pair in random.sample([*product(_MANY, _MANY)], random.randint(0, 12))
    }


def test_a_link_takes_about_a_hundred_bytes() -> None:
    assert LINK.itemsize <= 112


@patient
@given(_links(), _links(), st.permutations(_MANY))
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
