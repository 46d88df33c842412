"""The graph before anything is measured."""

from __future__ import annotations

import pytest

from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.baseline.modelled_links import baseline_network
from planner.model.errors import DataError
from planner.model.link import Link
from planner.model.network import Network
from relayd.catalogue.loading import load_catalogue

CATALOGUE = load_catalogue()


@pytest.fixture(scope="module")
def network() -> Network:
    return baseline_network(CATALOGUE)


def test_covers_all_pairs_of_forty_regions_and_says_baseline(network: Network) -> None:
    assert len(network.sites) == 40
    links = list(network)
    assert len(links) == 40 * 39
    for link in links:
        for estimate in (link.rtt_ms, link.per_flow_mbps, link.aggregate_gbps):
            assert estimate.source == "baseline"
            assert 0 < estimate.low <= estimate.expected <= estimate.high
            assert estimate.measured_at_s is None
    assert network.snapshot.source == "baseline"


def test_aggregates_stay_under_the_caps_of_both_vms(network: Network) -> None:
    for link in network:
        cap = min(
            network.sites[link.src].egress_gbps.expected,
            network.sites[link.dst].ingress_gbps.expected,
        )
        assert link.aggregate_gbps.expected <= cap


def test_the_paper_in_one_graph(network: Network) -> None:
    """One flow from AWS differs by distance; many flows do not where windows allow (HotCloud 2018).

    On hosts as they come, 64 of them end at 64 windows over the round-trip time.
    """

    def between_aws(network: Network) -> list[Link]:
        return [link for link in network if {link.src[:4], link.dst[:4]} == {"aws:"}]

    flows = [link.per_flow_mbps.expected for link in between_aws(network)]
    assert max(flows) > 10 * min(flows)
    tuned = with_tuned_hosts(network, CATALOGUE)
    aggregates = [link.aggregate_gbps.expected for link in between_aws(tuned)]
    assert max(aggregates) < 1.05 * min(aggregates)
    for link in between_aws(network):
        windows_gbps = 64 * 8 * 1.6 / link.rtt_ms.expected
        tuned_gbps = tuned.link(link.src, link.dst).aggregate_gbps.expected
        assert link.aggregate_gbps.expected == pytest.approx(min(tuned_gbps, windows_gbps))


def test_smaller_vms_lower_the_caps_and_leave_round_trip_times(network: Network) -> None:
    small = with_vm_types(network, CATALOGUE, {"aws": "aws:t2.micro"})
    src, dst = "aws:us-east-1", "aws:sa-east-1"
    assert small.link(src, dst).aggregate_gbps.expected == pytest.approx(0.064)
    assert small.link(src, dst).rtt_ms == network.link(src, dst).rtt_ms
    untouched = ("gcp:us-east1", "azure:eastus")
    assert small.link(*untouched) == network.link(*untouched)


def test_an_unknown_region_says_what_is_missing() -> None:
    with pytest.raises(DataError, match="Nothing is known of"):
        baseline_network(CATALOGUE, further=["own:cellar"]).link("aws:us-east-1", "own:cellar")
