"""Analyses of series: true values, patterns told apart, and few false alarms on noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import isclose
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from probes.analysis.evidence import figure_in
from probes.analysis.falls import drop_cause
from probes.analysis.fleet_caps import (
    BEGIN_S,
    END_S,
    IRELAND_MEDIUM,
    SAO_PAULO_MEDIUM,
    WORTH,
    PeerTest,
    Reference,
    advise,
    together_mbps,
)
from probes.analysis.ramp import fit_ramp, next_connections
from probes.analysis.steady_state import Interval, Pattern, SteadyState, steady_state
from probes.analysis.stopping import may_stop, median_interval
from tests.probes.analysis.test_report_analyses import resembling

Series = Callable[[np.random.Generator], np.ndarray]
REPEATS = 60


def noise(
    generator: np.random.Generator, count: int, variation: float, likeness: float = 0.3
) -> np.ndarray:
    """Rates round 1000 Mbit/s whose neighbours resemble each other, as TCP's do."""
    return 1000 * np.maximum(0.02, 1 + variation * resembling(generator, count, likeness))


def judged(rates: np.ndarray, warmed_up: bool = True) -> SteadyState | None:
    return steady_state([Interval(1.0, float(rate)) for rate in rates], warmed_up=warmed_up)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [5, 20, 120])
@pytest.mark.parametrize("variation", [0.02, 0.2])
@pytest.mark.parametrize("likeness", [0.0, 0.5])
def test_noise_raises_few_alarms(count: int, variation: float, likeness: float) -> None:
    generator = np.random.default_rng(count)
    alarms = 0
    for _ in range(400):
        state = judged(noise(generator, count, variation, likeness))
        alarms += state is None or bool(state.findings)
    assert alarms <= 0.05 * 400


def _then(at: int, ratio: float, count: int, variation: float) -> Series:
    def series(generator: np.random.Generator) -> np.ndarray:
        rates = noise(generator, count, variation)
        rates[at:] *= ratio
        return rates

    return series


def _slowly(generator: np.random.Generator) -> np.ndarray:
    rates = noise(generator, 30, 0.1)
    rates[:4] *= [0.05, 0.2, 0.5, 0.7]
    return rates


@pytest.mark.parametrize(
    ("series", "pattern", "steady_mbps", "at_s"),
    [
        (_then(100, 0.55, 160, 0.1), "drop", 550, 100),  # Azure, US to EU
        (_then(40, 0.7, 80, 0.1), "drop", 700, 40),
        (_then(8, 0.5, 60, 0.1), "burst", 500, 8),  # EC2
        (_then(1, 0.4, 20, 0.1), "burst", 400, 1),
        (_then(5, 0.4, 20, 0.05), "burst", 400, 5),
        (_then(40, 1.5, 80, 0.1), "rise", 1500, 40),
        (_slowly, "slow-start", 1000, 4),
    ],
)
def test_patterns_are_found_and_left_out(
    series: Series, pattern: Pattern, steady_mbps: float, at_s: float
) -> None:
    generator = np.random.default_rng(1)
    found = 0
    errors, places = [], []
    for _ in range(REPEATS):
        state = judged(series(generator))
        assert state is not None
        errors.append(abs(state.mbps / steady_mbps - 1))
        of_kind = [finding for finding in state.findings if finding.pattern == pattern]
        found += bool(of_kind)
        places += [abs(finding.at_s - at_s) for finding in of_kind[:1]]
        assert state.low_mbps <= state.mbps <= state.high_mbps
    assert found >= 0.9 * REPEATS
    assert median(errors) < 0.03
    assert sorted(places)[int(0.8 * len(places))] <= 3


def test_a_path_with_two_levels() -> None:
    generator = np.random.default_rng(2)
    found = 0
    for _ in range(REPEATS):
        rates = noise(generator, 160, 0.06)
        for start in range(40, 160, 80):
            rates[start : start + 40] *= 0.4  # EU to US, 280 or 110 Mbit/s
        state = judged(rates)
        assert state is not None
        if [finding.pattern for finding in state.findings] == ["two-level"]:
            found += 1
            assert 350 < state.low_mbps < 450
            assert 900 < state.high_mbps < 1100
    assert found >= 0.9 * REPEATS


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 1.1]), min_size=10, max_size=60), st.floats(1, 1e4))
def test_seconds_without_data_count_in_the_rate_and_are_a_finding(
    shape: list[float], usual: float
) -> None:
    shape = [1.0, *shape]  # seconds without data before it would be of the transient
    rates = np.array([1.0, *shape]) * usual
    state = judged(rates, warmed_up=False)
    if sum(rate > 0 for rate in rates) < 4:
        assert state is None
        return
    assert state is not None
    assert state.mbps == pytest.approx(rates[1:].mean(), rel=0.05)
    assert ("stall" in {finding.pattern for finding in state.findings}) == (0.0 in shape)
    if abs(rates[1:].mean() / np.median(rates[1:][rates[1:] > 0]) - 1) > 0.06:
        assert state.is_mean


def test_a_path_that_carries_nothing_from_some_second_on_has_no_rate_of_its_best() -> None:
    state = judged(np.array([940.0] * 6 + [0.0] * 5), warmed_up=False)
    assert state is not None
    assert state.mbps == pytest.approx(940 * 5 / 10)
    assert [(finding.pattern, finding.at_s) for finding in state.findings] == [("stall", 6.0)]


RATES = st.lists(st.floats(0, 1e5), min_size=1, max_size=60)


@given(RATES, st.booleans(), st.floats(0.01, 100))
def test_a_steady_state_is_in_what_was_seen_and_scales(
    rates: list[float], warmed_up: bool, factor: float
) -> None:
    state = judged(np.array(rates), warmed_up)
    if state is None:
        return
    assert min(rates) <= state.low_mbps <= state.mbps <= state.high_mbps <= max(rates)
    assert 0 < state.duration_s <= len(rates)
    assert all(0 < finding.at_s < len(rates) for finding in state.findings)
    assert [f.at_s for f in state.findings] == sorted(f.at_s for f in state.findings)


@pytest.mark.parametrize("cause", ["time", "volume"])
def test_what_makes_a_rate_drop(cause: str) -> None:
    generator = random.Random(3)
    right = 0
    for _ in range(REPEATS):
        drops = []
        for _ in range(5):
            gbps = generator.uniform(0.5, 0.9)
            if cause == "time":
                at_s = generator.gauss(100, 3)
            else:
                at_s = generator.gauss(9, 0.3) * 8 / gbps
            drops.append((at_s, at_s * gbps / 8))
        right += drop_cause(drops) == cause
        assert drop_cause(drops[:2]) == "undecided"
    assert right >= 0.8 * REPEATS


# ---- stopping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 6, 9, 20, 61])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_bounds_hold_the_median_as_often_as_they_say(count: int, confidence: float) -> None:
    generator = random.Random(count)
    held = known = 0
    for _ in range(2000):
        bounds = median_interval([generator.expovariate(1) for _ in range(count)], confidence)
        if bounds:
            known += 1
            held += bounds[0] <= np.log(2) <= bounds[1]
    assert known in (0, 2000)
    assert known == 2000 or count == 5
    assert held >= (confidence - 0.02) * known


@pytest.mark.parametrize("variation", [0.005, 0.02, 0.05, 0.1])
def test_stopping_early_is_seldom_wrong(variation: float) -> None:
    generator = random.Random(5)
    wrong = stopped = 0
    for _ in range(500):
        values = [generator.gauss(100, 100 * variation) for _ in range(40)]
        for count in range(1, 41):
            if may_stop(values[:count]):
                stopped += 1
                wrong += abs(median(values[:count]) - 100) > 3
                break
    assert wrong <= 0.1 * 500
    if variation <= 0.005:
        assert stopped == 500
    assert not may_stop([100, 150, 80, 120, 60, 100, 140, 90])


# ---- ramp ---------------------------------------------------------------------------------------


@given(st.floats(1, 5000), st.floats(1, 200), st.integers(2, 128), st.integers(0, 1000))
def test_a_ramp_finds_flow_and_aggregate(
    flow_mbps: float, knee: float, most: int, seed: int
) -> None:
    generator = random.Random(seed)
    saturated_mbps = flow_mbps * knee
    measured: dict[int, float] = {}
    while (count := next_connections(measured, most=most)) is not None:
        assert count not in measured
        assert 1 <= count <= most
        measured[count] = min(count * flow_mbps, saturated_mbps) * generator.uniform(0.99, 1.01)
    ramp = fit_ramp(measured)
    assert isclose(ramp.per_flow_mbps, min(flow_mbps, saturated_mbps), rel_tol=0.03)
    reached = max(measured) * flow_mbps
    if reached > 1.5 * saturated_mbps and max(measured) > 1.5 * knee:
        assert ramp.saturated or knee <= 1.15
        assert isclose(ramp.saturated_mbps, saturated_mbps, rel_tol=0.03)
    if reached < saturated_mbps:
        assert not ramp.saturated
        assert isclose(ramp.saturated_mbps, max(measured.values()), rel_tol=0.03)
    for nothing in ({}, {1: 0.0}):
        with pytest.raises(InputError, match="above 0"):
            fit_ramp(nothing)
    # No more doublings than needed: one past the knee.
    assert max(measured) <= max(2, 4 * knee)


# ---- caps ---------------------------------------------------------------------------------------


@given(
    st.floats(100, 10_000),
    st.integers(2, 6),
    st.lists(st.floats(0, 1.5), min_size=6, max_size=6),
    st.lists(st.floats(0, 1.5), min_size=6, max_size=6),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_peers_that_take_turns_and_neither_begin_nor_end_together_show_the_cap(
    cap_mbps: float,
    peers: int,
    begins: list[float],
    ends: list[float],
    turns: bool,
    generator: random.Random,
) -> None:
    # Peers at work share the cap, in parts that stay or turn; a report takes 0.25 s.
    step_s, length_s = 0.01, 7.5
    work = [(begins[peer], length_s - ends[peer]) for peer in range(peers)]
    moved: list[list[float]] = [[] for _ in work]  # per step, from the peer's own beginning
    parts = [generator.uniform(0.1, 1) for _ in work]
    for step in range(round(length_s / step_s)):
        if turns and step % 30 == 0:
            parts = [generator.uniform(0.1, 1) for _ in work]
        now_s = (step + 0.5) * step_s
        busy = [peer for peer, (begin_s, end_s) in enumerate(work) if begin_s <= now_s < end_s]
        for peer in busy:
            moved[peer].append(cap_mbps * parts[peer] / sum(parts[each] for each in busy))
    tests = {}
    for peer, rates in enumerate(moved):
        reports = [rates[at : at + 25] for at in range(0, len(rates), 25)]
        intervals = [Interval(len(r) * step_s, sum(r) / len(r)) for r in reports]
        tests[f"p{peer}"] = PeerTest(1000.0 + work[peer][1], intervals)
    together = together_mbps(tests)
    # What is cut at the edges of the window may be off by half a report each, if peers turn just
    # then; a step of the simulation at each edge comes on top.
    window_s = min(end for _, end in work) - max(begin for begin, _ in work) - BEGIN_S - END_S
    off = (0.25 + 2 * step_s) / window_s if turns else 0.005
    assert isclose(sum(together.values()), cap_mbps, rel_tol=off)


def test_peers_that_were_hardly_at_work_together_show_no_cap() -> None:
    intervals = [Interval(1.0, 100.0)] * 4
    with pytest.raises(InputError, match=r"0\.8 s only"):
        together_mbps({"a": PeerTest(10.0, intervals), "b": PeerTest(12.0, intervals)})


# ---- relocation ---------------------------------------------------------------------------------


def test_azures_medium_vms_of_2015() -> None:
    slow = advise(200, IRELAND_MEDIUM)
    assert slow["recreate"]
    assert isclose(slow["odds"], 0.3)
    assert "3.3 tries in the mean" in slow["text"]
    assert slow["tries_to_be_sure"] == 7
    assert isclose(slow["expected_mbps"], (450 * 0.1 + 650 * 0.2) / 0.3)
    fast = advise(660, IRELAND_MEDIUM)
    assert (fast["recreate"], fast["odds"], fast["tries_to_be_sure"]) == (False, 0.0, 0)
    assert not advise(200, SAO_PAULO_MEDIUM)["recreate"]


@given(st.lists(st.floats(10, 1000), min_size=5, max_size=40), st.floats(10, 1000))
def test_odds_are_those_of_drawing_again(caps_mbps: list[float], measured_mbps: float) -> None:
    odds = np.full(len(caps_mbps), 1 / len(caps_mbps))
    advice = advise(measured_mbps, Reference("any", np.sort(caps_mbps), odds, "test"))
    better = [cap for cap in caps_mbps if cap >= measured_mbps * WORTH]
    assert isclose(advice["odds"], len(better) / len(caps_mbps), abs_tol=1e-9)
    if better:
        assert isclose(advice["expected_mbps"], sum(better) / len(better), rel_tol=1e-6)
        failed = (1 - advice["odds"]) ** advice["tries_to_be_sure"]
        assert failed <= 0.1 + 1e-9
        assert advice["tries_to_be_sure"] == 1 or failed / (1 - advice["odds"]) > 0.1 - 1e-9
    assert advice["text"]


def test_figures_of_details_are_numbers_that_fit() -> None:
    told = {"a": 5, "b": 2.5, "c": "7", "d": None, "e": 10**400}
    assert [figure_in(told, name) for name in "abcdef"] == [5.0, 2.5, None, None, None, None]
