"""Spreads of tests of one TCP flow around other tests of it, and around window predictions.

All figures are of the survey of February 2022: natural logarithms of ratios, at the 5th and the
95th percentile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log1p, sqrt
from typing import Any, TypeVar

from planner.model.throughput import LawSpread, learned_spread

Number = TypeVar("Number", bound=Any)

REPEAT_ERROR = 0.095
"""Relative difference of two tests of a link, 90th percentile."""
TEST_SPREAD = log1p(REPEAT_ERROR) / sqrt(2) / 1.645
"""Of one test about its link's level: two tests differ by the noise of both."""
DEVIATION_TO_90 = 1.4826 * 1.645
"""From the median of absolute deviations of normal values to their 90th percentile."""
NOISE_COUNTS_AS = 5
"""Number of tests that the general error counts as, next to a link's own tests."""
FLOW_CLASSES_MS = (20.0, 60.0)
"""Nearer flows meet caps, and slightly farther ones are limited by more than their window."""
FLOW_SPREADS = (LawSpread(0.45, 0.06), LawSpread(0.15, 0.07), LawSpread(0.08, 0.065))
"""Of tests around the receiver's window over the round-trip time, by class of distance."""


def later_test_error(count: Number, deviation: Number) -> Number:
    """Return the relative error of a later test against the median of some, 90th percentile.

    The deviation is the 90th percentile of the relative distances of these tests from their median;
    the error of one test in general counts as :data:`NOISE_COUNTS_AS` tests.
    """
    usual = REPEAT_ERROR**2 / 2  # two tests differ by the noise of both
    more = count - 1
    squares = (NOISE_COUNTS_AS * usual + more * deviation**2) / (NOISE_COUNTS_AS + more)
    found: Number = (squares * (1 + 1 / count)) ** 0.5
    return found


def window_error(rtts_ms: Sequence[float]) -> float:
    """Return the relative error of a window learned from tests over such round trips."""
    distance = sorted(rtts_ms)[len(rtts_ms) // 2]
    return max(FLOW_SPREADS[bisect_right(FLOW_CLASSES_MS, distance)]) / sqrt(len(rtts_ms))


def spread_of_level(spread: float) -> float:
    """Return the spread of a flow's level, given that of later tests of it.

    Transfers are longer than tests, whose own noise (:data:`REPEAT_ERROR`) is no part of a level;
    of tests that spread less, half counts as noise. Both are standard deviations of logarithms.
    """
    return sqrt(max(spread**2 - TEST_SPREAD**2, spread**2 / 4))


class FlowSpreads:
    """Spreads of tests around the predictions of their receivers' windows.

    Tests are the kind of the receiver (its VM type, or empty), the round-trip time in ms, and the
    logarithm of the measured over the predicted rate. Near ones are not used: the caps of their VMs
    may come from these same tests.
    """

    def __init__(self, tests: Iterable[tuple[str, float, float]]) -> None:
        ratios: dict[tuple[str, int], list[float]] = defaultdict(list)
        for kind, rtt_ms, ratio in tests:
            if number := bisect_right(FLOW_CLASSES_MS, rtt_ms):
                ratios[kind, number].append(ratio)
        self._learned = {
            (kind, number): learned_spread(found, FLOW_SPREADS[number])
            for (kind, number), found in ratios.items()
        }

    def of(self, kind: str, rtt_ms: float) -> LawSpread:
        """Return the spread of tests into a kind of receiver at a distance."""
        number = bisect_right(FLOW_CLASSES_MS, rtt_ms)
        return self._learned.get((kind, number), FLOW_SPREADS[number])
