"""Changes of level: found soon and in the right place, and not where there is only noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.analysis.level_shift import LEARNT_FROM, LEAST_SHIFT, level_shifts
from tests.properties import examples

Noise = Callable[[np.random.Generator, int], np.ndarray]
_LENGTH = 256


def _dips(every: int) -> Noise:
    """A third of the rate at fixed minutes, as some clouds show."""

    def noise(rng: np.random.Generator, count: int) -> np.ndarray:
        logs = rng.normal(0, 0.05, count)
        logs[every // 2 :: every] -= np.log(3)
        return logs

    return noise


def _spikes(rng: np.random.Generator, count: int) -> np.ndarray:
    logs = rng.normal(0, 0.02, count)
    logs[rng.random(count) < 0.1] += 1
    return logs


NOISES: dict[str, Noise] = {
    "gaussian": lambda rng, n: rng.normal(0, 0.05, n),
    "wide": lambda rng, n: rng.normal(0, 0.3, n),
    "laplace": lambda rng, n: rng.laplace(0, 0.05, n),
    "student-3": lambda rng, n: rng.standard_t(3, n) * 0.05,
    "delays": lambda rng, n: rng.lognormal(0, 1, n) * 0.05,
    "dips-10": _dips(10),
    "dips-5": _dips(5),
    "spikes": _spikes,
}


@pytest.mark.parametrize("count", [120, pytest.param(400, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", NOISES)
def test_noise_is_no_change(name: str, count: int) -> None:
    rng = np.random.default_rng(20260101)
    alarms = sum(
        bool(level_shifts(list(80 * np.exp(NOISES[name](rng, _LENGTH))))) for _ in range(count)
    )
    # One in a hundred is stated; 10 of 400 is three standard deviations of chance above it.
    assert alarms <= count / 40


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    name=st.sampled_from(["gaussian", "laplace", "student-3", "dips-10"]),
    factor=st.sampled_from([0.02, 0.1, 0.3, 0.5, 2.0, 5.0]),
    at=st.integers(60, 200),
    usual=st.floats(0.5, 1e4),
)
def test_a_planted_change_is_found_soon_and_in_its_place(
    seed: int, name: str, factor: float, at: int, usual: float
) -> None:
    rng = np.random.default_rng(seed)
    logs = NOISES[name](rng, _LENGTH)
    logs[at:] += np.log(factor)
    # A false alarm before it is the other test's business.
    found = [s for s in level_shifts(list(usual * np.exp(logs))) if s.found_at >= at]
    assert found
    assert found[0].found_at - at < 16
    if name == "gaussian":
        assert abs(found[0].position - at) <= 6
        assert 0.6 < found[0].after / found[0].before / factor < 1.67
    # With heavy tails the sum may have been on its way when the change came.


def test_delay_is_as_stated() -> None:
    rng = np.random.default_rng(7)
    delays, near = [], 0
    for _ in range(200):
        logs = rng.normal(0, 0.05, 200)
        logs[100:] += np.log(0.5)
        found = [s for s in level_shifts(list(np.exp(logs))) if s.found_at >= 100]
        delays.append(found[0].found_at - 100 + 1)
        near += abs(found[0].position - 100) <= 2
    assert np.median(delays) == 6
    assert np.percentile(delays, 95) <= 8
    assert near >= 190


def test_a_level_that_comes_back_is_two_changes() -> None:
    rng = np.random.default_rng(3)
    logs = rng.normal(0, 0.03, 240)
    logs[80:160] += np.log(4)
    first, second = level_shifts(list(50 * np.exp(logs)))
    assert (abs(first.position - 80) <= 2, abs(second.position - 160) <= 2) == (True, True)
    assert first.after / first.before > 3.5
    assert second.after / second.before < 0.3


def test_changes_too_small_to_matter_and_short_series_say_nothing() -> None:
    steady = [100.0] * 50 + [100.0 * (1 + 0.8 * LEAST_SHIFT)] * 50
    assert level_shifts(steady) == []
    assert level_shifts([100.0] * LEARNT_FROM + [1.0]) == []
    assert level_shifts([0.0] * 100) == []
    collapsed = level_shifts([100.0] * 40 + [0.0] * 20)
    assert [shift.position for shift in collapsed] == [40]
