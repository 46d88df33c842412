"""The rate to expect of a transfer, from its estimate and from what it has achieved.

Bayes' rule in logarithms. By estimates, the rate is normal with the spread of their bounds; a share
of transfers is held by what estimates know nothing of, such as disks, hosts or a path that has
changed, and has any rate. What was achieved shows the rate with the error of a measurement. Close
to the estimate the two are weighed by precision, and far from it what was achieved decides.
"""

from __future__ import annotations

from math import exp, log, sqrt

from planner.model.answer import Bounded
from planner.model.verification import MEASURING_ERROR

SCORE_90 = 1.645
"""Of a normal distribution, from the middle to the end of the 90 % range."""
LEAST_SPREAD, MOST_SPREAD = 0.02, 1.5
"""Least and greatest spread of the logarithm that an estimate can have."""
HELD_SHARE, HELD_SPREAD = 0.1, 1.5
"""Share of transfers that something unknown holds, and the spread of their rates: assumptions."""
RATE_OVER_S = 30.0
"""Over which a rate of the moment is taken, or over one report where they are rarer."""
SLOW_SHARE = 0.7
"""Of the planned rate, where the plan has no low bound: less is much slower than planned."""
TEST_S = 5.0
"""Time of the tests whose repeats :data:`.MEASURING_ERROR` is from."""


def spread_of_bounds(low: float, high: float) -> float:
    """Return the spread of the logarithm that a 90 % range stands for."""
    spread = log(high / max(low, 1e-9 * high)) / (2 * SCORE_90)
    return min(MOST_SPREAD, max(LEAST_SPREAD, spread))


def after_achieving(estimate: Bounded, achieved: float, over_s: float) -> Bounded:
    """Return the rate to expect for the rest of a transfer, in the unit of its estimate (above 0).

    What was `achieved` over some seconds tells nothing where it is 0, as what has stopped may go
    on.
    """
    if achieved <= 0 or over_s <= 0 or estimate.expected <= 0:
        return estimate
    noise = log(1 + MEASURING_ERROR) / SCORE_90 * max(1.0, sqrt(TEST_S / over_s))
    off, found = log(achieved / estimate.expected), []
    spread = spread_of_bounds(estimate.low, estimate.high)
    for share, known in ((1 - HELD_SHARE, spread), (HELD_SHARE, HELD_SPREAD)):
        total = known**2 + noise**2
        gain = known**2 / total
        # Relative to the likelier of the two, whose density could underflow.
        found.append((log(share / sqrt(total)) - off**2 / (2 * total), gain * off, gain * noise**2))
    likeliest = max(weight for weight, *_ in found)
    shares = [exp(weight - likeliest) for weight, *_ in found]
    mean = sum(p * middle for p, (_, middle, _) in zip(shares, found, strict=True)) / sum(shares)
    variance = sum(
        p * (own + (middle - mean) ** 2) for p, (_, middle, own) in zip(shares, found, strict=True)
    ) / sum(shares)
    reach = exp(SCORE_90 * sqrt(variance + noise**2))  # the rest varies, too
    expected = estimate.expected * exp(mean)
    return Bounded(expected, expected / reach, expected * reach)
