"""Series in time: planted periods, memories, levels and losses are found, and noise is silent."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest

from probes.analysis.evidence import TooFewError, discoveries
from probes.analysis.falls import BurstTest, token_bucket
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import fewer_runs_by_chance, level_shifts, levels_between_tests
from probes.analysis.patterns import (
    DAY_S,
    HALF_HOUR_S,
    autocorrelation,
    occurrences,
    on_grid,
    periodicity,
    without_pattern,
)
from probes.analysis.steady_state import Interval, steady_state
from tests.probes.analysis.test_report_analyses import resembling

SERIES = 60
# Of 60 series at 5 %, more than eight alarms come by chance in under 1 % of runs.
MOST_ALARMS = 8
FORTNIGHT = np.arange(0, 14 * DAY_S, 1800.0)


@pytest.mark.parametrize("count", [10, pytest.param(20, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("minutes", "likeness"), [(10, 0.7), (15, 0.0), (60, 0.7)])
def test_half_hours_are_judged_by_samples_that_are_minutes_apart(
    minutes: int, likeness: float, count: int
) -> None:
    """Three samples a half hour, two, or one an hour at any minute: 720 half hours in all."""
    generator = np.random.default_rng(1)
    alarms = found = 0
    for _ in range(count):
        times = np.arange(0, 15 * DAY_S, minutes * 60.0)
        if minutes == 60:
            times = times + generator.uniform(0, 3600, times.size)
        values = 500 * (1 + 0.05 * resembling(generator, times.size, likeness))
        alarms += periodicity(times, values, HALF_HOUR_S)["present"]
        dips = values * np.where(times % HALF_HOUR_S < 600, 0.93, 1.0)
        found += periodicity(times, dips, HALF_HOUR_S)["present"]
    assert alarms <= count // 5  # of 20 at 5 %, more come by chance in 0.3 % of runs
    assert found >= count - 1


def test_a_short_dip_is_found_at_its_phase_of_the_period() -> None:
    """Five minutes of each half hour, two hours of each day, and a rise of one hour in seven."""
    generator = np.random.default_rng(13)
    times = np.arange(0, 14 * DAY_S, 300.0)
    for period_s, lasts_s in ((HALF_HOUR_S, 300), (DAY_S, 7200), (7 * 3600.0, 3600)):
        for sign, phase, size in ((-0.2, "lowest", "depth"), (0.2, "highest", "height")):
            values = 500 * (1 + 0.05 * generator.normal(size=times.size))
            values *= 1 + sign * (times % period_s < lasts_s)
            found = periodicity(times, values, period_s)
            assert found["present"]
            assert found[f"{phase}_phase_s"] < lasts_s
            assert found[size] == pytest.approx(0.2, rel=0.2)


def test_a_daily_pattern_can_be_taken_out_and_leaves_other_changes() -> None:
    generator = np.random.default_rng(14)
    daily = 1 + 0.1 * np.sin(2 * np.pi * FORTNIGHT / DAY_S)
    values = 20 * daily * (1 + 0.02 * generator.normal(size=FORTNIGHT.size))
    assert len(level_shifts(values.tolist())) > 5
    assert not level_shifts(without_pattern(FORTNIGHT, values, DAY_S).tolist())
    values[FORTNIGHT >= 7 * DAY_S] *= 1.5
    (shift,) = level_shifts(without_pattern(FORTNIGHT, values, DAY_S).tolist())
    assert FORTNIGHT[shift.position] == pytest.approx(7 * DAY_S, abs=4 * 3600)


@pytest.mark.parametrize("likeness", [0.0, 0.5, 0.9])
def test_memory_is_that_of_the_series(likeness: float) -> None:
    generator = np.random.default_rng(3)
    found = [
        autocorrelation(np.arange(4000) * 600.0, resembling(generator, 4000, likeness))
        for _ in range(20)
    ]
    assert np.median([f["next"] for f in found]) == pytest.approx(likeness, abs=0.03)
    # Of a first-order autoregression: (1 + r) / (1 - r) steps.
    steps = (1 + likeness) / (1 - likeness)
    median_s = float(np.median([f["correlation_time_s"] for f in found]))
    assert median_s == pytest.approx(600 * steps, rel=0.15)
    remember = sum(f["remembers"] for f in found)
    assert remember == 20 if likeness else remember <= 3


def test_a_daily_pattern_is_foretold_and_nothing_else() -> None:
    generator = np.random.default_rng(4)
    silent = skilled = 0
    for k in range(SERIES):
        likeness = (0.0, 0.7, 0.95)[k % 3]
        values = 500 * np.exp(0.1 * resembling(generator, FORTNIGHT.size, likeness))
        silent += not forecast(FORTNIGHT, values, 6 * 3600.0)["useful"]
        walk = 500 * np.exp(0.01 * np.cumsum(generator.normal(size=FORTNIGHT.size)))
        silent += not forecast(FORTNIGHT, walk, 6 * 3600.0)["useful"]
        values *= 1 + 0.3 * np.sin(2 * np.pi * FORTNIGHT / DAY_S)
        ahead = forecast(FORTNIGHT, values, 6 * 3600.0)
        skilled += ahead["useful"] and ahead["skill"] > 0.2
    assert silent >= 2 * SERIES - MOST_ALARMS
    assert skilled == SERIES
    # Midnight is usual, 06:00 is the top; nothing is claimed of a series that is silent.
    assert ahead["low"] < ahead["expected"] < ahead["high"]
    assert ahead["expected"] > 550
    nothing = forecast(FORTNIGHT, np.full(FORTNIGHT.size, 7.0), 3600.0)
    assert not nothing["useful"]
    assert nothing["skill"] == 0.0
    assert nothing["expected"] == pytest.approx(7)


def test_two_levels_are_told_from_one_shift() -> None:
    generator = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        noise = 1 + 0.03 * generator.normal(size=40)
        at = generator.integers(6, 34)
        shift = levels_between_tests(list(np.where(np.arange(40) < at, 280, 110) * noise))
        assert shift is not None
        assert shift.pattern == "shift"
        assert shift.position == at
        by_turns = np.where(generator.permutation(40) < 15, 280, 110) * noise
        levels = levels_between_tests(list(by_turns))
        assert levels is not None
        assert levels.pattern == "two-level"
        assert levels.high_mbps == pytest.approx(280, rel=0.05)
        false += levels_between_tests(list(generator.normal(200, 20, size=12))) is not None
    assert false <= 10
    few = levels_between_tests([280, 281, 110, 111])
    assert few is not None
    assert few.pattern == "undecided"
    once = levels_between_tests([280.0] * 9 + [110.0] * 3 + [280.0] * 9)
    assert once is not None
    assert once.pattern == "undecided"


@pytest.mark.parametrize(("first", "second"), [(2, 3), (4, 3), (2, 5)])
def test_runs_by_chance_are_counted(first: int, second: int) -> None:
    orders = set(permutations("a" * first + "b" * second))
    for runs in range(2, first + second + 1):
        few = sum(1 + sum(x != y for x, y in pairwise(o)) <= runs for o in orders)
        assert fewer_runs_by_chance(runs, first, second) == pytest.approx(few / len(orders))


def test_rare_losses_are_counted_and_their_clusters_seen() -> None:
    generator = np.random.default_rng(6)
    alarms = 0
    for _ in range(SERIES // 3):
        lossy = generator.random(2000) < 0.01
        alarms += occurrences(lossy * 5.0)["clustered"]
    assert alarms <= 4
    minutes = np.zeros(2000)
    minutes[700:720] = 4.0
    found = occurrences(minutes)
    assert (found["occurrences"], found["episodes"], found["longest"]) == (20, 1, 20)
    assert found["clustered"]
    assert found["low"] < 0.01 < found["high"]
    assert found["mean"] == pytest.approx(0.04)
    assert found["median_of_occurrences"] == 4.0
    clean = occurrences(np.zeros(100))
    assert (clean["occurrences"], clean["share"], clean["clustered"]) == (0, 0.0, False)


def bucket_tests(
    pauses_s: list[float],
    seed: int,
    *,
    depth_gb: float = 20.0,
    own_limits: bool = False,
    opens_s: float = 0.0,
    drains_s: float = 0.0,
) -> list[BurstTest]:
    """A VM of 5,000 Mbit/s at first and 1,000 for good, read from its intervals of a second.

    A test takes up to `opens_s` to open its connections, and what queues at its end `drains_s`.
    """
    generator = np.random.default_rng(seed)
    tokens_gb, at_s, opening_s, found = depth_gb, 1e9, 0.0, []
    for pause_s in [*pauses_s, 0.0]:
        full_s = tokens_gb * 8 / 4  # 4 Gbit/s beyond what comes in
        whole, part = divmod(full_s, 1.0)  # the rate falls within a report
        steps = np.array([5000.0] * int(whole) + [1000 + 4000 * part] + [1000.0] * 30)
        rates = steps * generator.normal(1, 0.03, steps.size)
        state = steady_state([Interval(1.0, rate) for rate in rates], warmed_up=True)
        assert state is not None
        if state.findings:
            (fall,) = state.findings
            levels = fall.before_mbps, fall.after_mbps
            ends_s = at_s + rates.size
            found.append(BurstTest(at_s, ends_s, fall.at_s, fall.at_gb, *levels, fall.after_gb))
        at_s += opening_s + rates.size + pause_s
        opening_s = generator.uniform(0, opens_s)
        fills_s = pause_s + opening_s - drains_s
        tokens_gb = depth_gb if own_limits else min(depth_gb, fills_s / 8)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_refill_is_what_was_sent_however_late_tests_start(seed: int) -> None:
    pauses_s = [3600.0, 22.0, 25.0, 30.0, 22.0, 25.0]
    tests = bucket_tests(pauses_s, seed, opens_s=3.0, drains_s=2.0)
    assert token_bucket(tests).refill_mbps == pytest.approx(1000, rel=0.07)


@pytest.mark.parametrize("seed", range(5))
def test_a_token_bucket_is_told_from_a_limit_of_each_transfer(seed: int) -> None:
    pauses_s = [3600.0, 17.5 + seed, 70.0, 3600.0, 91.0]
    bucket = token_bucket(bucket_tests(pauses_s, seed))
    assert bucket.depth_gb == pytest.approx(20, rel=0.1)
    assert bucket.volume_gb == pytest.approx(25, rel=0.1)
    assert bucket.refill_mbps == pytest.approx(1000, rel=0.1)
    assert bucket.refilling == "bucket"
    own = token_bucket(bucket_tests(pauses_s, seed, own_limits=True))
    assert (own.refilling, own.refill_mbps) == ("per-test", None)
    assert token_bucket(bucket_tests([3600.0] * 4, seed)).refilling == "undecided"


@pytest.mark.parametrize("vms", [34, pytest.param(100, marks=pytest.mark.thorough)])
def test_vms_that_hold_their_rate_show_no_bucket(vms: int) -> None:
    generator = np.random.default_rng(11)
    falls = []
    for _ in range(vms):
        rates = 1000 * generator.normal(1, 0.1, (6, 120))
        states = [steady_state([Interval(1.0, r) for r in row], warmed_up=True) for row in rates]
        falls.append(sum(bool(state and state.findings) for state in states))
    assert max(falls) < 3  # fewer than show a bucket
    assert sum(falls) <= 0.01 * 6 * vms


@pytest.mark.parametrize(
    "conclude",
    [
        lambda: autocorrelation(np.arange(40), np.arange(40)),
        lambda: forecast(np.arange(0, 5 * DAY_S, 1800), np.ones(240), 3600),
        lambda: forecast(np.arange(0, 200 * DAY_S, DAY_S), np.ones(200), 3600),
        lambda: periodicity(np.arange(720) * 1800.0, np.arange(720.0), HALF_HOUR_S),
        lambda: token_bucket([BurstTest(0, 60, 20, 12.5, 5e3, 1e3)] * 2),
        lambda: on_grid(np.r_[np.arange(30), 1000 + np.arange(30)], np.ones(60), fewest=48),
    ],
)
def test_too_little_is_told(conclude: Callable[[], object]) -> None:
    with pytest.raises(TooFewError, match="are needed"):
        conclude()


def test_discoveries_control_the_rate_of_false_ones() -> None:
    assert discoveries([]) == 0
    assert discoveries([0.04] * 3) == 3
    assert discoveries([0.001, *np.linspace(0.06, 1, 99)]) == 0
    assert discoveries([0.0001, 0.0004, *np.linspace(0.06, 1, 98)]) == 2
