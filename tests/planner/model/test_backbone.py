"""Round-trip times from coordinates, held against pings between real regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.backbone import FIBRE_MS_PER_KM, P90_ERROR, distance_km, rtt_ms
from planner.model.catalogue import Region
from relayd.catalogue.loading import load_catalogue
from scripts.fit_backbone import SURVEYS, Backbone, by_continent, left_out_errors, pings_of
from tests.shared_data import shared

REGIONS = [r for r in load_catalogue().regions.values() if r.latitude_deg is not None]
ANY_REGION = st.sampled_from(REGIONS)


@pytest.mark.thorough
def test_error_on_regions_that_the_fit_does_not_know_is_as_stated() -> None:
    """By survey and continent, regions left out in turn."""
    regions = {region.id: region for region in REGIONS}
    pings = pings_of(shared("rtt_2022-04.csv").parent, regions)
    found = by_continent(pings, left_out_errors(pings, regions), regions)
    assert {survey for survey, _ in found} == set(SURVEYS)
    for (_, continent), (_, median, p90) in found.items():
        assert p90 <= (P90_ERROR if continent == "all" else 0.25)
        assert continent != "all" or median <= 0.06


def test_the_figures_are_those_of_the_fit() -> None:
    """A path of the fit and a path of the model take as long, to what figures are rounded to."""
    regions = {region.id: region for region in REGIONS}
    pings = pings_of(shared("rtt_2022-04.csv").parent, regions)
    model = Backbone(pings, regions)
    figures = model.fitted(np.ones(len(pings)))
    fitted = model.paths(figures) @ figures
    for ping, expected in zip(pings, fitted, strict=True):
        assert rtt_ms(regions[ping.a], regions[ping.b]) == pytest.approx(expected, rel=0.02, abs=1)


def test_the_order_in_which_pairs_are_asked_changes_nothing() -> None:
    """Paths are found from whichever end was met before: a plan's figures may not tell."""
    some = REGIONS[::7]
    asked = {(a.id, b.id): rtt_ms(a, b) for a in some for b in some}
    assert {(a.id, b.id): rtt_ms(a, b) for b in reversed(some) for a in some} == asked


@given(ANY_REGION, ANY_REGION)
def test_symmetric_positive_and_not_faster_than_light(a: Region, b: Region) -> None:
    there, back, distance = rtt_ms(a, b), rtt_ms(b, a), distance_km(a, b)
    assert there is not None
    assert back is not None
    assert distance is not None
    assert abs(there - back) < 1e-9
    assert there > FIBRE_MS_PER_KM * distance
    assert rtt_ms(Region("x:y"), a) is None  # it has no coordinates


def test_regions_of_one_country_of_east_asia_reach_each_other_overland() -> None:
    """Nine pings of April 2022 between Tokyo and Osaka took 8.2 to 10.7 ms."""
    regions = load_catalogue().regions
    found = rtt_ms(regions["aws:ap-northeast-1"], regions["gcp:asia-northeast2"])
    assert found
    assert 8.2 <= found <= 10.7
