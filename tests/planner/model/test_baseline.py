"""The graph before anything is measured, its round-trip times held against pings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.backbone import FIBRE_MS_PER_KM, P90_ERROR, distance_km, rtt_ms
from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.baseline.modelled_links import baseline_network
from planner.model.catalogue import Region
from planner.model.errors import DataError
from planner.model.link import Link
from planner.model.network import Network
from relayd.catalogue.loading import load_catalogue
from scripts.fit_backbone import SURVEYS, Backbone, Ping, by_continent, left_out_errors, pings_of
from tests.shared_data import shared

CATALOGUE = load_catalogue()


@pytest.fixture(scope="module")
def network() -> Network:
    return baseline_network(CATALOGUE)


def test_covers_all_pairs_of_forty_regions_within_the_caps_of_vms(network: Network) -> None:
    assert (len(network.sites), len(list(network))) == (40, 40 * 39)
    for link in network:
        for estimate in (link.rtt_ms, link.per_flow_mbps, link.aggregate_gbps):
            assert estimate.source == "baseline"
            assert 0 < estimate.low <= estimate.expected <= estimate.high
            assert estimate.measured_at_s is None
        ends = network.sites[link.src].egress_gbps, network.sites[link.dst].ingress_gbps
        assert link.aggregate_gbps.expected <= min(cap.expected for cap in ends)
    assert network.snapshot.source == "baseline"


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


# ---- round-trip times from coordinates -----------------------------------------------------------


REGIONS = [r for r in load_catalogue().regions.values() if r.latitude_deg is not None]
ANY_REGION = st.sampled_from(REGIONS)


@cache
def pings() -> list[Ping]:
    regions = {region.id: region for region in REGIONS}
    return pings_of(shared("rtt_2022-04.csv").parent, regions)


@pytest.mark.slow
def test_half_of_all_pings_are_as_near_as_stated_and_nine_of_ten() -> None:
    regions = {region.id: region for region in REGIONS}
    modelled = [rtt_ms(regions[ping.a], regions[ping.b]) or 0.0 for ping in pings()]
    errors = [abs(found / ping.rtt_ms - 1) for found, ping in zip(modelled, pings(), strict=True)]
    assert np.median(errors) <= 0.06
    assert np.quantile(errors, 0.9) <= P90_ERROR


@pytest.mark.thorough
def test_error_on_regions_that_the_fit_does_not_know_is_as_stated() -> None:
    """By survey and continent, regions left out in turn."""
    regions = {region.id: region for region in REGIONS}
    found = by_continent(pings(), left_out_errors(pings(), regions), regions)
    assert {survey for survey, _ in found} == set(SURVEYS)
    for (_, continent), (_, median, p90) in found.items():
        assert p90 <= (P90_ERROR if continent == "all" else 0.25)
        assert continent != "all" or median <= 0.06


@pytest.mark.thorough
def test_the_figures_are_those_of_the_fit() -> None:
    """A path of the fit and a path of the model take as long, to what figures are rounded to."""
    regions = {region.id: region for region in REGIONS}
    model = Backbone(pings(), regions)
    figures = model.fitted(np.ones(len(pings())))
    fitted = model.paths(figures) @ figures
    for ping, expected in zip(pings(), fitted, strict=True):
        assert rtt_ms(regions[ping.a], regions[ping.b]) == pytest.approx(expected, rel=0.02, abs=1)


def test_the_order_in_which_pairs_are_asked_changes_nothing() -> None:
    """Paths are found from whichever end was met before: a plan's figures may not tell."""
    some = REGIONS[::7]
    asked = {(a.id, b.id): rtt_ms(a, b) for a in some for b in some}
    assert {(a.id, b.id): rtt_ms(a, b) for b in reversed(some) for a in some} == asked


@given(ANY_REGION, ANY_REGION)
def test_symmetric_positive_and_not_faster_than_light(a: Region, b: Region) -> None:
    found: Any = rtt_ms(a, b), rtt_ms(b, a), distance_km(a, b)
    there, back, distance = found
    assert abs(there - back) < 1e-9
    assert there > FIBRE_MS_PER_KM * distance
    assert rtt_ms(Region("x:y"), a) is None  # it has no coordinates


def test_regions_of_one_country_of_east_asia_reach_each_other_overland() -> None:
    """Nine pings of April 2022 between Tokyo and Osaka took 8.2 to 10.7 ms."""
    regions = load_catalogue().regions
    found: Any = rtt_ms(regions["aws:ap-northeast-1"], regions["gcp:asia-northeast2"])
    assert 8.2 <= found <= 10.7
