"""Tests weighed against the laws of their links."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.modelled_links import baseline_network
from planner.model.estimate import Estimate, EstimateDrift, Origin, Prior
from planner.model.network import Network, Snapshot
from planner.model.throughput import LawSpread
from probes.analysis.evidence import Coverage
from probes.estimation import Estimator
from probes.estimation.laws import class_law
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue

CATALOGUE = load_catalogue()
WHEN_S = 1.65e9
DAY_S = 86400.0
YEAR_S = 365.25 * DAY_S
SRC, DST = "aws:us-east-1", "gcp:us-west1"
AWS = [region.id for region in CATALOGUE.regions.values() if region.id.startswith("aws:")]
GCP = [region.id for region in CATALOGUE.regions.values() if region.id.startswith("gcp:")]


def cold(gbps: float, src: str = SRC, dst: str = DST, at_s: float = WHEN_S) -> Sample:
    """Return a test of 5 s; over 1 ms there is hardly a slow start to correct."""
    return Sample(src, dst, "aggregate_mbps", 1000 * gbps, at_s, "iperf3", 64, 5.0)


def estimated(*samples: Sample) -> Network:
    pairs = {sample[:2] for sample in samples}
    pings = (Sample(*pair, "rtt_ms", 1.0, WHEN_S, "ping") for pair in pairs)
    estimator = Estimator(Samples.of([*pings, *samples]), CATALOGUE)
    return estimator.network(Snapshot("t", "", ""))


def aggregate(*samples: Sample) -> Estimate:
    return estimated(*samples).link(SRC, DST).aggregate_gbps


def test_one_odd_short_test_moves_a_link_little_and_ten_good_ones_wholly() -> None:
    usual = aggregate(cold(5.0))
    odd = aggregate(cold(0.22))
    assert odd.expected == pytest.approx(usual.expected, rel=0.05)
    assert odd.low < 0.22 < odd.expected  # it is kept: the bounds know of it
    assert odd.high == pytest.approx(usual.high, rel=0.05)
    assert odd.origin.method == "contradicted-sample"
    assert "repeat" in odd.basis
    ten = aggregate(*(cold(0.22 + 0.001 * n, at_s=WHEN_S + n) for n in range(10)))
    assert ten.expected == pytest.approx(0.2245, rel=0.01)
    assert ten.high < 0.3
    again = aggregate(cold(0.22), cold(0.23, at_s=WHEN_S + 60))
    assert again.expected == pytest.approx(0.225, rel=0.01)


def test_a_steady_test_is_believed_alone_and_good_ones_outvote_an_odd_one() -> None:
    assert aggregate(cold(1.0)._replace(warmed_up=True)).expected == 1.0
    good = [cold(5.0 + 0.01 * n, at_s=WHEN_S + n) for n in range(4)]
    found = aggregate(*good, cold(0.22, at_s=WHEN_S + 9))
    assert found.expected == pytest.approx(5.0, rel=0.02)


def test_one_freak_link_does_not_move_its_providers() -> None:
    links = [(src, dst) for src, dst in zip(AWS, GCP, strict=False) if (src, dst) != (SRC, DST)][:9]
    good = [cold(5.0, *pair) for pair in links]
    freak = [cold(0.2, *links[0], at_s=WHEN_S + n) for n in range(9)]
    without = estimated(*good[1:]).link(SRC, DST).aggregate_gbps
    with_freak = estimated(*freak, *good[1:]).link(SRC, DST).aggregate_gbps
    alone = estimated(*freak).link(SRC, DST).aggregate_gbps
    baseline = estimated().link(SRC, DST).aggregate_gbps
    assert with_freak.expected == pytest.approx(without.expected, rel=0.01)
    assert alone.expected == pytest.approx(baseline.expected, rel=0.01)
    assert with_freak.low > 0.8 * with_freak.expected


def test_a_class_that_has_changed_is_learned() -> None:
    """As when Google Cloud's links went over private addresses: four times the law."""
    draw = random.Random(4)
    ratios = [math.log(4) + draw.gauss(0, 0.1) for _ in range(40)]
    shift, spread = class_law(np.array(ratios), np.zeros(0), LawSpread(0.17, 0.07))
    assert shift == pytest.approx(math.log(4), abs=0.05)
    assert 0.1 < spread.above < 0.2


def test_links_across_partitions_and_of_china_have_the_bounds_of_the_internet() -> None:
    china, government = (
        ("aws:cn-north-1", "aws:cn-northwest-1"),
        ("aws:us-gov-west-1", "aws:us-gov-east-1"),
    )
    inside = [china, (government[0], "aws:us-east-1")]
    for network in (
        baseline_network(CATALOGUE, (*china, *government)),
        estimated(
            *(cold(4.8, *pair) for pair in pairwise(AWS[:20])),
            cold(4.8, *government[::-1]),
            cold(4.8, *china[::-1]),
        ),
    ):
        for pair in inside:
            link = network.link(*pair).aggregate_gbps
            assert link.source != "measured"
            assert link.low < 0.2 * link.expected, pair
        assert china[0] not in network.links[AWS[0]]
        assert (
            "aws china to aws china law"
            in baseline_network(CATALOGUE, china).link(*china).aggregate_gbps.basis
        )
        link = network.link(*government).aggregate_gbps
        assert link.low > 0.85 * link.expected


def test_what_went_over_private_addresses_tells_nothing_of_links_to_other_clouds() -> None:
    """Tests that do not say their kind of address count as over public ones."""
    within = [cold(28.0, *pair) for pair in pairwise(GCP[:12])]
    usual, found = estimated(), estimated(*within)
    for src, dst in ((GCP[0], "aws:us-east-1"), (GCP[1], "azure:westeurope")):
        was, now = (one.link(src, dst).aggregate_gbps for one in (usual, found))
        assert now.expected == pytest.approx(was.expected, rel=0.01)
        assert now.high < 1.3 * was.high


def test_links_of_few_regions_do_not_narrow_their_class_as_those_of_many_do() -> None:
    exact, ours = np.zeros(40), LawSpread(0.2, 0.1)
    (_, many), (_, few) = (class_law(exact, np.zeros(0), ours, regions) for regions in (40, 4))
    assert many.below < 0.5 * ours.below
    assert 0.8 * ours.below < few.below < ours.below
    wide = np.linspace(-1.0, 0.3, 40)  # that a class is wider shows in any region
    assert class_law(wide, np.zeros(0), ours, 4) == class_law(wide, np.zeros(0), ours, 40)


def test_rates_are_bounded_by_the_high_bound_of_a_cap() -> None:
    link = estimated().link("gcp:us-east1", "gcp:us-west1").aggregate_gbps
    cap = estimated().sites["gcp:us-east1"].egress_gbps
    assert cap.expected < link.high <= cap.high


# ---- age ---------------------------------------------------------------------------------------

_PRIOR = Prior(2.0, 4.0, 5.0, 2.0)
_MEASURED = Origin("measured", "median-of-samples", 3, 1, WHEN_S)


@given(st.floats(0.5, 9.0), st.floats(0.01, 1.0), st.floats(0, 9))
def test_what_was_measured_fades_to_the_law(middle: float, error: float, years: float) -> None:
    new = Estimate(middle / (1 + error), middle, middle * (1 + error), _MEASURED, _PRIOR)
    aged = new.aged(WHEN_S + years * YEAR_S)
    low, high = sorted((middle, _PRIOR.expected))
    assert low - 1e-9 <= aged.expected <= high + 1e-9
    assert aged.low <= aged.expected <= aged.high
    ancient = new.aged(WHEN_S + 60 * YEAR_S)
    assert (ancient.low, ancient.expected, ancient.high) == pytest.approx(_PRIOR[:3], rel=1e-6)


def test_ageing_agrees_with_a_simulated_process() -> None:
    """A stationary Gaussian process about the law, conditioned on what was measured."""
    spread, memory, years = 0.3, 2.0, 1.5
    law, start = math.log(4.0), math.log(5.0)
    prior = Prior(4 * math.exp(-1.645 * spread), 4.0, 4 * math.exp(1.645 * spread), memory)
    draw = random.Random(7)
    step = years / 50
    kept = math.exp(-step / memory)
    ends = []
    for _ in range(4000):
        level = start
        for _ in range(50):
            level = law + kept * (level - law)
            level += draw.gauss(0, spread * math.sqrt(1 - kept**2))
        ends.append(math.exp(level))
    aged = Estimate(5.0, 5.0, 5.0, _MEASURED, prior).aged(WHEN_S + years * YEAR_S)
    ends.sort()
    assert aged.expected == pytest.approx(ends[2000], rel=0.03)
    assert aged.low == pytest.approx(ends[200], rel=0.03)
    assert aged.high == pytest.approx(ends[3800], rel=0.03)


def test_without_a_law_bounds_widen_to_what_a_quantity_wanders() -> None:
    new = replace(Estimate(99.0, 100.0, 101.0, _MEASURED))
    assert new.aged(WHEN_S + YEAR_S) == new
    aged = new.aged(WHEN_S + 99 * YEAR_S, otherwise=EstimateDrift(0.2, 10.0))
    assert aged.expected == pytest.approx(100.0)
    assert aged.high == pytest.approx(100 * math.exp(0.2), rel=1e-3)


def test_an_interval_of_a_share_is_wilsons() -> None:
    found = Coverage.of(90, 100)  # statsmodels: proportion_confint(90, 100, method="wilson")
    assert (found.low, found.high) == pytest.approx((0.82563, 0.94478), abs=1e-4)
    assert Coverage.of(0, 0).share is None
    assert Coverage.of(5, 5).high == pytest.approx(1.0)
