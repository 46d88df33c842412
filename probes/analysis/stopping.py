"""Stopping rule for measurements whose median is known well enough.

Of n independent values, the true median lies between the r-th smallest and the r-th largest with
probability ``1 - 2 P[Binomial(n, 1/2) < r]``, whatever their distribution (order statistics; see
Le Boudec, Performance Evaluation, 2010, section 2.2). Testing after each value and stopping at the
first success would invalidate that, so :func:`may_stop` tests only a few times and divides the
permitted error among these tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb

# Numbers of values at which a test may be stopped early; each test spends half of the error that
# the tests before have left, so that together they never spend more than all of it.
FIRST_TEST = 5
TEST_GROWTH = 1.5


@cache
def _median_rank(count: int, confidence: float) -> int:
    """Return the greatest r for which the r-th from either end enclose the median; 0: none."""
    missed = 0.0
    for rank in range((count + 1) // 2):
        missed += 2 * comb(count, rank) / 2**count
        if missed > 1 - confidence + 1e-12:
            return rank
    return (count + 1) // 2


def median_interval(values: Sequence[float], confidence: float = 0.9) -> tuple[float, float] | None:
    """Return bounds of the true median; None where there are too few values (5 for 90 %).

    The interval holds the median of independent values at least as often as the confidence.
    """
    rank = _median_rank(len(values), confidence)
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def may_stop(values: Sequence[float], *, within: float = 0.03) -> bool:
    """Tell whether a test may stop because its median is known well enough.

    May be asked after every interval; only some numbers of values are tested (5, 8, 13, 20, 31,
    ...), between which the answer of the last test holds. `within` is the half-width of the bounds
    that is good enough, relative to their middle. At most 10 % of all tests stop with the true
    median outside of the bounds.
    """
    left = 1 - 0.9
    test = FIRST_TEST
    while test <= len(values):
        # The first test gets most: at five values nothing sharper than 6 % can be had.
        spent = min(left, max(left / 2, 2.0 ** (1 - test)))
        left -= spent
        bounds = median_interval(values[:test], 1 - spent)
        if bounds and bounds[1] - bounds[0] <= within * (bounds[0] + bounds[1]):
            return True
        if left <= 0:
            return False
        test = int(test * TEST_GROWTH) + 1
    return False
