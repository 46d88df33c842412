"""Networks are derived without losing anything, and their document is the whole of them."""

from __future__ import annotations

import json
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.changed_hosts import with_vm_types
from planner.model.baseline.modelled_links import with_regions
from planner.model.catalogue import Catalogue
from planner.model.document import document_of, network_of
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link_states import LinkState
from planner.model.network import Network, Snapshot
from planner.model.verification import Verified, VerifiedPath
from relayd.catalogue.loading import load_catalogue
from tests.planner.transfer.strategies import REGIONS, networks, patient

CATALOGUE: Catalogue = load_catalogue()
NOW_S = 1.8e9
DAY_S = 86400.0

_pairs = st.tuples(st.sampled_from(REGIONS), st.sampled_from(REGIONS)).filter(
    lambda pair: pair[0] != pair[1]
)
_gbps = st.floats(0.001, 100)
_times = st.floats(NOW_S - 40 * DAY_S, NOW_S)
_paths = st.builds(
    VerifiedPath,
    st.permutations(REGIONS).map(lambda regions: tuple(regions[:3])),
    st.integers(1, 128),
    _gbps,
    _times,
)


@st.composite
def _states(draw: st.DrawFn) -> dict[tuple[str, str], LinkState]:
    return {
        (src, dst): LinkState(
            src,
            dst,
            draw(st.sampled_from(["down", "degraded", "up"])),
            "2027-01-15T08:00:00Z",
            "no reply",
            draw(st.none() | st.floats(1, 1000)),
            draw(st.floats(0, 1)),
            draw(st.floats(0, 1)),
            draw(st.none() | _times),
        )
        for src, dst in draw(st.sets(_pairs, max_size=4))
    }


@st.composite
def _verified(draw: st.DrawFn) -> dict[tuple[str, str], Verified]:
    return {
        (src, dst): Verified(
            src,
            dst,
            draw(st.sampled_from(["direct", "relay", "split"])),
            "x",
            draw(_gbps),
            draw(_gbps),
            draw(_gbps),
            draw(_gbps),
            draw(_times),
            tuple(draw(st.lists(_paths, max_size=2))),
        )
        for src, dst in draw(st.sets(_pairs, max_size=3))
    }


@st.composite
def _measured(draw: st.DrawFn, estimate: Estimate) -> Estimate:
    """Return an estimate as it may be measured: with an origin of any kind."""
    origin = Origin(
        draw(st.sampled_from(["measured", "inferred"])),
        "median-of-samples",
        draw(st.integers(1, 9)),
        1,
        draw(_times),
        NOW_S - 50 * DAY_S,
        draw(st.sampled_from([None, "public", "private"])),
        Figures(connections=64, between=("a", "b")),
    )
    return Estimate(estimate.low, estimate.expected, estimate.high, origin)


@st.composite
def _capped(draw: st.DrawFn, estimate: Estimate) -> Estimate:
    """Return an estimate of a rate, which may have no known limit."""
    if draw(st.integers(0, 9)) == 0:
        return Estimate(inf, inf, inf, Origin("baseline", "vm-type-unknown"))
    return draw(_measured(estimate))


@st.composite
def known_networks(draw: st.DrawFn) -> Network:
    """Return a network with whatever a network may hold."""
    network = draw(networks())
    links = {
        src: {
            dst: type(link)(
                src,
                dst,
                draw(_measured(link.rtt_ms)),
                link.per_flow_mbps,
                draw(_capped(link.aggregate_gbps)),
                draw(st.none() | st.floats(0, 100)),
            )
            for dst, link in row.items()
        }
        for src, row in network.usual.items()
    }
    return network.with_(
        links=links,
        snapshot=Snapshot("s", "2027-01-15T08:00:00Z", "store"),
        link_states=draw(_states()),
        verified=draw(_verified()),
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


@patient
@given(known_networks())
def test_a_document_of_an_older_version_lacks_only_what_it_did_not_have(network: Network) -> None:
    document = document_of(network)
    for name in ("verifications", "aged_to_s"):
        del document[name]
    assert network_of(document) == network.with_(verified={})


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
    for src, row in once.usual.items():
        for dst, link in row.items():
            other = twice.usual[src][dst]
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
