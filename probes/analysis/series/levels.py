"""Two levels from test to test, told from one shift that lasts.

Some paths are at one of two rates by turns ("Measuring and understanding WANs between public-cloud
datacenters", Computer Networks 2016: 280 or 110 Mbit/s, with several IP paths). Rates before and
after a lasting change fall into two groups, too. What tells them apart is the order in time: the
number of runs, by the exact test of Wald and Wolfowitz (1940).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, log
from statistics import median
from typing import Literal, TypeAlias

from probes.analysis.evidence import FALSE_ALARMS

LevelPattern: TypeAlias = Literal["two-level", "shift", "undecided"]
FEWEST_TESTS = 6
LEAST_RATIO = 1.3
GAP_OVER_WIDTH = 3.0
LEAST_RETURNS = 2
"""Times that a path must come back to a level it had left: one odd hour is no second level."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Two rates of one path.

    Attributes
    ----------
    pattern : LevelPattern
        ``two-level`` where the path returned to each; ``shift`` where it left one for good;
        ``undecided`` where there are too few tests on either side, or it has come back just once.
    low_mbps, high_mbps : float
    changes : int
        From one level to the other.
    position : int
        Of the first test after the last change.
    """

    pattern: LevelPattern
    low_mbps: float
    high_mbps: float
    changes: int
    position: int


def levels_between_tests(rates_mbps: Sequence[float]) -> Levels | None:
    """Return the two levels of a path in tests, oldest first; None where there is but one.

    Each needs two tests or more, and the gap between them must be 30 % and three times as wide
    as either level.
    """
    ordered = sorted(rates_mbps)
    if len(ordered) < 4 or ordered[0] <= 0:
        return None
    logs = [log(rate) for rate in ordered]
    cut = max(range(2, len(logs) - 1), key=lambda k: logs[k] - logs[k - 1])
    gap = logs[cut] - logs[cut - 1]
    widest = max(logs[cut - 1] - logs[0], logs[-1] - logs[cut])
    if gap < log(LEAST_RATIO) or gap < GAP_OVER_WIDTH * widest:
        return None
    high = [rate >= ordered[cut] for rate in rates_mbps]
    turns = [at for at in range(1, len(high)) if high[at] != high[at - 1]]
    return Levels(
        _pattern(len(turns), cut, len(ordered) - cut),
        median(ordered[:cut]),
        median(ordered[cut:]),
        len(turns),
        turns[-1],
    )


def _pattern(changes: int, low: int, high: int) -> LevelPattern:
    if changes > LEAST_RETURNS:
        return "two-level"
    if changes == 1 and fewer_runs_by_chance(2, low, high) <= FALSE_ALARMS:
        return "shift"
    return "undecided"


def fewer_runs_by_chance(runs: int, first: int, second: int) -> float:
    """Return how often so many of two kinds, in random order, form so few runs or fewer.

    Wald and Wolfowitz, "On a test whether two samples are from the same population", 1940.
    """
    ways = 0
    for number in range(2, runs + 1):
        half, odd = divmod(number, 2)
        if odd:
            ways += comb(first - 1, half) * comb(second - 1, half - 1)
            ways += comb(first - 1, half - 1) * comb(second - 1, half)
        else:
            ways += 2 * comb(first - 1, half - 1) * comb(second - 1, half - 1)
    return ways / comb(first + second, first)
