"""Round-trip times from coordinates, held against pings between real regions."""

from __future__ import annotations

import csv

from hypothesis import given
from hypothesis import strategies as st

from planner.model.backbone import FIBRE_MS_PER_KM, HUBS, HUBS_OF_AREA, distance_km, rtt_ms
from planner.model.catalogue import Region
from relayd.catalogue.loading import load_catalogue
from tests.shared_data import shared

REGIONS = [r for r in load_catalogue().regions.values() if r.latitude_deg is not None]
ANY_REGION = st.sampled_from(REGIONS)


def errors_on_pings(*, baseline_only: bool) -> list[float]:
    """Relative errors of the model on the clean pings of April 2022, ascending."""
    known = {r.id: r for r in REGIONS if r.baseline or not baseline_only}
    errors = []
    with shared("rtt_2022-04.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["src"] in known and row["dst"] in known and row["rtt_clean_ms"]:
                measured = float(row["rtt_clean_ms"])
                modelled = rtt_ms(known[row["src"]], known[row["dst"]])
                assert modelled is not None
                errors.append(abs(modelled - measured) / measured)
    return sorted(errors)


def test_error_on_real_pings_is_as_stated() -> None:
    for baseline_only, least_pairs in ((True, 900), (False, 3000)):
        errors = errors_on_pings(baseline_only=baseline_only)
        assert len(errors) > least_pairs
        assert errors[len(errors) // 2] <= 0.08
        assert errors[int(0.9 * len(errors))] <= 0.25


@given(ANY_REGION, ANY_REGION)
def test_symmetric_positive_and_not_faster_than_light(a: Region, b: Region) -> None:
    there, back, distance = rtt_ms(a, b), rtt_ms(b, a), distance_km(a, b)
    assert there is not None
    assert back is not None
    assert distance is not None
    assert abs(there - back) < 1e-9
    assert there > FIBRE_MS_PER_KM * distance


def test_a_region_without_coordinates_has_no_round_trip_time() -> None:
    assert rtt_ms(Region("x:y"), REGIONS[0]) is None


def test_every_area_names_hubs_that_exist() -> None:
    assert {r.area for r in REGIONS} <= set(HUBS_OF_AREA)
    assert {hub for hubs in HUBS_OF_AREA.values() for hub in hubs} <= set(HUBS)
