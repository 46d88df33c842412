"""When a median is known well enough to stop measuring.

Of n independent values, the true median lies between the r-th smallest and the r-th largest with
probability ``1 - 2 P[Binomial(n, 1/2) < r]``, whatever their distribution (order statistics; see
Le Boudec, Performance Evaluation, 2010, section 2.2). Looking after each value and stopping at the
first good moment would make that a lie, so :func:`may_stop` looks a few times only and shares the
permitted error among the looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb

# Numbers of values at which a test may be stopped early; each look spends half of the error that
# the looks before have left, so that they can never spend more than all of it.
FIRST_LOOK = 5
LOOK_GROWTH = 1.5


@cache
def median_rank(count: int, confidence: float) -> int:
    """Return the greatest r for which the r-th from either end enclose the median; 0: none."""
    missed = 0.0
    rank = 0
    for r in range((count + 1) // 2):
        missed += 2 * comb(count, r) / 2**count
        if missed > 1 - confidence + 1e-12:
            break
        rank = r + 1
    return rank


def median_interval(values: Sequence[float], confidence: float = 0.9) -> tuple[float, float] | None:
    """Return bounds of the true median; None where there are too few values (5 for 90 %).

    Parameters
    ----------
    values : sequence of float
        Independent; in any order.
    confidence : float
        Between 0 and 1; the interval holds the median at least this often.
    """
    rank = median_rank(len(values), confidence)
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def may_stop(values: Sequence[float], *, within: float = 0.03, confidence: float = 0.9) -> bool:
    """Whether a test may stop because its median is known well enough.

    May be asked after every interval; only some numbers of values are looks (5, 8, 13, 20, 31,
    ...), between which the last look's answer holds for the values it saw.

    Parameters
    ----------
    values : sequence of float
        In order of time.
    within : float
        Half the width of the bounds that is good enough, relative to their middle.
    confidence : float
        At most ``1 - confidence`` of all tests stop with the true median outside of the bounds.
    """
    left = 1 - confidence
    look = FIRST_LOOK
    while look <= len(values):
        # The first look gets most: at five values nothing sharper than 6 % can be had.
        spent = min(left, max(left / 2, 2.0 ** (1 - look)))
        left -= spent
        bounds = median_interval(values[:look], 1 - spent)
        if bounds and bounds[1] - bounds[0] <= within * (bounds[0] + bounds[1]):
            return True
        if left <= 0:
            return False
        look = int(look * LOOK_GROWTH) + 1
    return False
