"""Networks are derived without losing anything, and their document is the whole of them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from math import inf
from random import Random
from typing import get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.changed_hosts import with_vm_types
from planner.model.baseline.modelled_links import with_regions
from planner.model.catalogue import Catalogue
from planner.model.document import document_of, network_of
from planner.model.estimate import AddressKind, Estimate, Figures, Kind, Origin
from planner.model.link_states import Condition, LinkState
from planner.model.network import Network, Snapshot
from planner.model.verification import Verified, VerifiedPath
from relayd.catalogue.loading import load_catalogue
from tests.planner.transfer.strategies import REGIONS, networks, patient, seeds

CATALOGUE: Catalogue = load_catalogue()
NOW_S = 1.8e9
DAY_S = 86400.0
KINDS: tuple[Kind, ...] = ("measured", "inferred")
ADDRESSES: tuple[AddressKind | None, ...] = (None, "public", "private")


def _pairs(random: Random, most: int) -> list[tuple[str, str]]:
    return random.sample([*permutations(REGIONS, 2)], random.randint(0, most))


def _time_s(random: Random) -> float:
    return random.uniform(NOW_S - 40 * DAY_S, NOW_S)


def _gbps(random: Random) -> float:
    return float(0.001 * 1e5 ** random.random())


def _state(random: Random, src: str, dst: str) -> LinkState:
    return LinkState(
        src,
        dst,
        random.choice(get_args(Condition)),
        "2027-01-15T08:00:00Z",
        "no reply",
        random.choice([None, random.uniform(1, 1000)]),
        random.random(),
        random.random(),
        random.choice([None, _time_s(random)]),
    )


def _verified(random: Random, src: str, dst: str) -> Verified:
    paths = tuple(
        VerifiedPath(
            tuple(random.sample(REGIONS, 3)), random.randint(1, 128), _gbps(random), _time_s(random)
        )
        for _ in range(random.randint(0, 2))
    )
    verdict = random.choice(["direct", "relay", "split"])
    low, expected, high, achieved = (_gbps(random) for _ in range(4))
    at_s = _time_s(random)
    return Verified(src, dst, verdict, "x", low, expected, high, achieved, at_s, paths)


def _measured(random: Random, estimate: Estimate) -> Estimate:
    """Return an estimate as it may be measured: with an origin of any kind."""
    origin = Origin(
        random.choice(KINDS),
        "median-of-samples",
        random.randint(1, 9),
        1,
        _time_s(random),
        NOW_S - 50 * DAY_S,
        random.choice(ADDRESSES),
        Figures(connections=64, between=("a", "b")),
    )
    return replace(estimate, origin=origin)


def _capped(random: Random, estimate: Estimate) -> Estimate:
    """Return an estimate of a rate, which may have no known limit."""
    if random.random() < 0.1:
        return Estimate(inf, inf, inf, Origin("baseline", "vm-type-unknown"))
    return _measured(random, estimate)


@st.composite
def known_networks(draw: st.DrawFn) -> Network:
    """Return a network with whatever a network may hold."""
    network, random = draw(networks()), Random(draw(seeds))
    links = [
        replace(
            link,
            rtt_ms=_measured(random, link.rtt_ms),
            aggregate_gbps=_capped(random, link.aggregate_gbps),
            loss_pct=random.choice([None, random.uniform(0, 100)]),
        )
        for link in network
    ]
    return network.with_(
        links=network.usual.with_links(links),
        snapshot=Snapshot("s", "2027-01-15T08:00:00Z", "store"),
        link_states={pair: _state(random, *pair) for pair in _pairs(random, 4)},
        verified={pair: _verified(random, *pair) for pair in _pairs(random, 3)},
    )


@patient
@given(known_networks(), st.booleans())
def test_a_document_holds_all_that_a_network_does(network: Network, aged: bool) -> None:
    if aged:
        network = network.with_(aged_to_s=NOW_S)
    text = json.dumps(document_of(network), allow_nan=False)
    again = network_of(json.loads(text))
    assert again == network
    assert again.aged_to_s == network.aged_to_s
    assert again.links == network.links
    assert list(again.sites) == list(network.sites)
    if not aged:  # the document of an older version lacks only what that did not have
        new = {"verifications", "aged_to_s"}
        older = {name: part for name, part in document_of(network).items() if name not in new}
        assert network_of(older) == network.with_(verified={})


@patient
@given(known_networks())
def test_derived_networks_keep_states_and_verifications(network: Network) -> None:
    part = network.with_(restricted_to=REGIONS[:3])
    assert list(part.sites) == list(REGIONS[:3])
    for derived in (
        part,
        network.with_(aged_to_s=NOW_S),
        network.with_(snapshot=Snapshot("t", "", "")),
        with_regions(network, CATALOGUE, ["aws:us-east-1"]),
        with_vm_types(network, CATALOGUE, {"aws:us-east-1": "aws:t2.micro"}),
    ):
        assert derived.link_states == network.link_states
        assert derived.verified == network.verified


@patient
@given(known_networks(), st.floats(0, 400 * DAY_S), st.floats(0, 400 * DAY_S))
def test_ageing_twice_is_ageing_once(network: Network, first_s: float, then_s: float) -> None:
    """To whole days: what was aged is not aged again for the same days."""
    once = network.with_(aged_to_s=NOW_S + first_s + then_s)
    twice = network.with_(aged_to_s=NOW_S + first_s).with_(aged_to_s=NOW_S + first_s + then_s)
    assert twice.with_(aged_to_s=NOW_S + first_s) == twice
    for link in once.usual.all_links():
        other = twice.usual.link(link.src, link.dst)
        for name in ("rtt_ms", "aggregate_gbps"):
            wide, also = getattr(link, name), getattr(other, name)
            if wide.expected < inf:
                assert abs(wide.low - also.low) <= 1e-9 * wide.expected
                assert abs(wide.high - also.high) <= 1e-9 * wide.high


def test_other_vms_forget_what_runs_with_the_first_have_shown() -> None:
    path = VerifiedPath(("aws:us-east-1", "azure:eastus", "aws:sa-east-1"), 64, 3.0, NOW_S)
    pair = ("aws:us-east-1", "aws:sa-east-1")
    known = {pair: Verified(*pair, "relay", "x", 4.5, 5.0, 5.5, 3.0, NOW_S, (path,))}
    network = with_regions(
        Network({}, {}, verified=known), CATALOGUE, [*path.regions, "gcp:us-east1"]
    )
    others = {
        region: next(
            vm.id
            for vm in CATALOGUE.vm_types.values()
            if vm.provider == region.partition(":")[0] and vm.id != network.sites[region].vm_type
        )
        for region in network.sites
    }

    def shown(region: str) -> dict[tuple[str, str], Verified]:
        return dict(with_vm_types(network, CATALOGUE, {region: others[region]}).verified)

    assert shown("gcp:us-east1") == known
    assert shown("azure:eastus")[pair].paths == ()
    assert shown("aws:us-east-1") == {}


def test_matrices_need_no_figures_where_there_is_no_link() -> None:
    rates = np.array([[0.0, 5.0], [0.0, 0.0]])
    known, unknown = (np.array([[0.0, 10.0], [other, 0.0]]) for other in (0.0, np.nan))
    bare, gaps = (Network.from_matrices(["a", "b"], rates, rtt_ms=ms) for ms in (known, unknown))
    assert document_of(gaps) == document_of(bare)
    assert gaps.links.whole["rtt_ms"]["expected"].tolist() == known.tolist()
