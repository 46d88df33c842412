"""The graph before anything is measured."""

from __future__ import annotations

import pytest

from planner.baseline import baseline_network, with_vm_types
from planner.errors import DataError
from planner.network import Network
from relayd.catalogue import load_catalogue

CATALOGUE = load_catalogue()


@pytest.fixture(scope="module")
def network() -> Network:
    return baseline_network(CATALOGUE)


def test_covers_all_pairs_of_forty_regions_and_says_baseline(network: Network) -> None:
    assert len(network.sites) == 40
    legs = list(network)
    assert len(legs) == 40 * 39
    for leg in legs:
        for estimate in (leg.rtt_ms, leg.per_flow_mbps, leg.aggregate_gbps):
            assert estimate.source == "baseline"
            assert 0 < estimate.low <= estimate.expected <= estimate.high
            assert estimate.measured_at_s is None
    assert network.snapshot.source == "baseline"


def test_aggregates_stay_under_the_caps_of_both_vms(network: Network) -> None:
    for leg in network:
        cap = min(
            network.sites[leg.src].egress_gbps.expected,
            network.sites[leg.dst].ingress_gbps.expected,
        )
        assert leg.aggregate_gbps.expected <= cap


def test_the_paper_in_one_graph(network: Network) -> None:
    """One flow from AWS differs by distance, many flows do not (HotCloud 2018)."""
    aws = [leg for leg in network if leg.src.startswith("aws:") and leg.dst.startswith("aws:")]
    flows = [leg.per_flow_mbps.expected for leg in aws]
    aggregates = [leg.aggregate_gbps.expected for leg in aws]
    assert max(flows) > 10 * min(flows)
    assert max(aggregates) < 1.05 * min(aggregates)


def test_a_part_is_the_same_as_the_whole(network: Network) -> None:
    src, dst = "aws:us-east-1", "gcp:asia-east1"
    part = baseline_network(CATALOGUE, ends=(src, dst))
    expected = [leg for leg in network if leg.src == src or leg.dst == dst]
    assert sorted(map(repr, part)) == sorted(map(repr, expected))


def test_smaller_vms_lower_the_caps_and_leave_round_trip_times(network: Network) -> None:
    small = with_vm_types(network, CATALOGUE, {"aws": "aws:t2.micro"})
    src, dst = "aws:us-east-1", "aws:sa-east-1"
    assert small.leg(src, dst).aggregate_gbps.expected == pytest.approx(0.43)
    assert small.leg(src, dst).rtt_ms == network.leg(src, dst).rtt_ms
    untouched = ("gcp:us-east1", "azure:eastus")
    assert small.leg(*untouched) is network.leg(*untouched)


def test_an_unknown_region_says_what_is_missing() -> None:
    with pytest.raises(DataError, match="coordinates"):
        baseline_network(CATALOGUE, ends=("aws:us-east-1", "own:cellar"))
