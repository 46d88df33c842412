"""One flow, direct and through relays: against packets counted one by one, and against a survey."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.fields.shared import DEFAULT_MARGIN
from planner.model.throughput import LEAST_SHARE, steady_rates
from tests.probes.estimation.survey import judged_flows, judged_relays, triples
from tests.properties import examples

SEGMENT_KB = 1.46


def arrived_kb(window_kb: float, rtt_ms: float, duration_s: float) -> float:
    """Count what a TCP connection delivers from a cold start, a millisecond at a time.

    A sender may have a congestion window unacknowledged, which grows by what is acknowledged (slow
    start, RFC 5681) up to the receiver's. Time counts from the first byte that arrives.
    """
    arriving: dict[int, float] = defaultdict(float)
    acknowledged: dict[int, float] = defaultdict(float)
    flying, congestion_kb, delivered, half = 0.0, 10 * SEGMENT_KB, 0.0, round(rtt_ms / 2)
    for now in range(int(duration_s * 1000) + half):
        delivered += arriving.pop(now, 0.0)
        if back := acknowledged.pop(now, 0.0):
            limited = flying > congestion_kb / 2  # RFC 7661: only a window in use grows
            flying -= back
            congestion_kb = min(window_kb, congestion_kb + back) if limited else congestion_kb
        if (send := congestion_kb - flying) > 1e-9:
            flying += send
            arriving[now + half] += send
            acknowledged[now + round(rtt_ms)] += send
    return delivered


@given(st.floats(200, 6000), st.floats(30, 250), st.floats(8, 30))
@settings(max_examples=examples(25), deadline=None)
def test_the_steady_rate_of_a_cold_test_is_that_of_packets(
    window_kb: float, rtt_ms: float, duration_s: float
) -> None:
    shown_mbps = arrived_kb(window_kb, rtt_ms, duration_s) * 8 / 1000 / duration_s
    (steady_mbps,) = steady_rates([shown_mbps], rtt_ms, duration_s, one_flow=True)
    assert steady_mbps == pytest.approx(window_kb * 8 / rtt_ms, rel=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("margin", [0.0, DEFAULT_MARGIN])
def test_relays_are_judged_well_without_tests_of_their_links(margin: float) -> None:
    judged = judged_relays(triples()[::50], margin=margin)
    errors = sorted(judged.errors)
    assert median(errors) <= 0.03
    assert errors[int(0.9 * len(errors))] <= 0.10
    assert mean(judged.right) >= (0.95 if margin else 0.97)
    assert mean(judged.kept) >= (0.985 if margin else 0.998)
    assert 0.85 <= judged.coverage <= 0.95


@pytest.mark.thorough
def test_nine_of_ten_flows_that_were_not_tested_fall_within_their_bounds() -> None:
    judged = judged_flows()
    assert len(judged.held) > 700
    assert 0.85 <= judged.coverage <= 0.95


@pytest.mark.parametrize("one_flow", [True, False])
def test_a_test_of_no_time_shows_the_least_share(*, one_flow: bool) -> None:
    (steady_mbps,) = steady_rates([100.0], [1e5], [1e-308], one_flow=one_flow)
    assert steady_mbps == pytest.approx(100 / LEAST_SHARE)
