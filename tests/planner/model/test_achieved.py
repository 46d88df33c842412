"""The rate to expect after what was achieved: weighed near the estimate, believed far from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.achieved import after_achieving
from planner.model.answer import Bounded

ESTIMATE = Bounded(10.0, 9.0, 11.0)


def test_a_rate_far_from_the_estimate_is_believed_and_a_near_one_weighed() -> None:
    slow = after_achieving(ESTIMATE, 2.0, 30.0)
    assert slow.expected == pytest.approx(2.0, rel=2e-3)
    assert 1.8 < slow.low < slow.expected < slow.high < 2.2
    near = after_achieving(ESTIMATE, 9.5, 30.0)
    assert 9.5 < near.expected < 9.75
    vague = after_achieving(Bounded(10.0, 3.0, 30.0), 9.5, 30.0)
    assert vague.expected == pytest.approx(9.5, rel=2e-3)
    assert after_achieving(ESTIMATE, 0.0, 30.0) is ESTIMATE
    assert after_achieving(ESTIMATE, 5.0, 0.0) is ESTIMATE


def test_a_second_says_less_than_half_a_minute() -> None:
    soon, later = (after_achieving(ESTIMATE, 9.5, over_s) for over_s in (0.2, 30.0))
    assert later.expected < soon.expected < 10.0
    assert soon.high / soon.low > later.high / later.low


@given(st.floats(0.01, 1e3), st.floats(0.01, 1e3), st.floats(1, 30), st.floats(0.1, 1e6))
def test_it_lies_between_both(rate: float, achieved: float, width: float, over_s: float) -> None:
    found = after_achieving(Bounded(rate, rate / width, rate * width), achieved, over_s)
    low, high = sorted((rate, achieved))
    assert low * (1 - 1e-9) <= found.expected <= high * (1 + 1e-9)
    assert found.low < found.expected < found.high
