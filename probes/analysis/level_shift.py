"""Changes of level in a series of measurements, and series that go between two levels.

Page's cumulative sum test (E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954), two
sided, on logarithms: ``S <- max(0, S + z - k)``, alarm at ``S > h``, with ``z`` the distance from
the usual level in units of the usual spread. Level and spreads are the median and the scaled
quartiles of the samples since the last change, learnt with a lag so that a change does not become
usual before it is seen. ``z`` is clipped (Huber's score), so that one outlier, or dips that come
back every half hour, do not add up to a change. The change began after the sum last left zero,
where the two levels fit best.

With ``k`` = 1, ``h`` = 11 and ``z`` clipped at 3, six samples in a row that are off by at least
three spreads are a change; a shift of two spreads takes about a dozen. On noise alone, fewer than
one in a hundred series of 256 samples shows a change (Gaussian, Laplace, Student's t with 3
degrees of freedom, log-normal delays, random spikes, every fifth or tenth sample a deep dip):
fewer than one false alarm in 25,000 samples.

Some paths are at one of two rates by turns ("Measuring and understanding WANs between public-cloud
datacenters", Computer Networks 2016: 280 or 110 Mbit/s, with several IP paths). Rates before and
after a lasting change fall into two groups, too. The order in time tells them apart: the
number of runs, by the exact test of Wald and Wolfowitz (1940).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, copysign, exp, log
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from probes.analysis.evidence import FALSE_ALARMS

ALLOWANCE = 1.0
"""``k``: half of the shift, in spreads, that is looked for."""
THRESHOLD = 11.0
"""``h``."""
CLIP = 3.0
LEARNT_FROM = 16
"""Fewest samples of a level from which a change can be detected."""
LAG = 8
MOST_LEARNT_FROM = 64
LEAST_SPREAD = 0.02
"""Of a logarithm: equal measurements differ by two percent on real clouds."""
LEAST_SHIFT = 0.1
"""Relative; a smaller change alters no decision."""
QUARTILE_TO_SIGMA = 1.4826
LevelPattern: TypeAlias = Literal["two-level", "shift", "undecided"]
FEWEST_TESTS = 6
LEAST_RATIO = 1.3
GAP_OVER_WIDTH = 3.0
LEAST_RETURNS = 2
"""Times that a path must come back to a level it had left: one odd hour is no second level."""


class Shift(NamedTuple):
    """A change of level."""

    position: int  # of the first sample of the new level
    found_at: int  # of the sample that settled it
    before: float  # median of the old level
    after: float  # median of the new one as far as it was seen


def level_shifts(values: Sequence[float]) -> list[Shift]:
    """Return every change of level in a series in order of time, oldest first.

    A value of 0 counts as a thousandth of the median.
    """
    if len(values) <= LEARNT_FROM:
        return []
    floor = median(values) / 1000
    if floor <= 0:
        return []
    logs = [log(max(value, floor)) for value in values]
    shifts: list[Shift] = []
    begin = 0
    while (found := _next_shift(logs, begin)) is not None:
        position, found_at, level = found
        before, after = exp(level), exp(median(logs[position : found_at + 1]))
        shifts.append(Shift(position, found_at, before, after))
        begin = position
    return shifts


def _next_shift(logs: Sequence[float], begin: int) -> tuple[int, int, float] | None:
    """Return the next change after a level begins: its position, where it was found, the level."""
    first = begin + LEARNT_FROM
    level = spread_below = spread_above = 0.0
    above = below = 0.0
    above_since = below_since = first
    for at in range(first, len(logs)):
        if (at - first) % LAG == 0:
            # A sum that is on its way up says that these samples may not be usual.
            last = min(at - LAG + 1, above_since, below_since) if at > first else first
            learnt = logs[max(begin, last - MOST_LEARNT_FROM) : max(last, first)]
            level, spread_below, spread_above = _usual(learnt)
        off = logs[at] - level
        z = off / (spread_above if off > 0 else spread_below)
        if not -CLIP <= z <= CLIP:
            z = copysign(CLIP, z)
        if above <= 0:
            above, above_since = 0.0, at
        if below <= 0:
            below, below_since = 0.0, at
        above, below = above + z - ALLOWANCE, below - z - ALLOWANCE
        if above <= THRESHOLD and below <= THRESHOLD:
            continue
        for score, since in ((above, above_since), (below, below_since)):
            if score > THRESHOLD:
                position = _turn(logs, since, at, level)
                if abs(exp(median(logs[position : at + 1]) - level) - 1) >= LEAST_SHIFT:
                    return position, at, level
                above = below = 0.0
    return None


def _turn(logs: Sequence[float], since: int, found_at: int, level: float) -> int:
    """Return the end of the old level: the best fit of both levels, by absolute deviations."""
    new = median(logs[since : found_at + 1])
    best, least, fit = since, 0.0, 0.0
    for at in range(since, found_at):
        fit += abs(logs[at] - level) - abs(logs[at] - new)
        if fit < least:
            best, least = at + 1, fit
    return best


def _usual(logs: Sequence[float]) -> tuple[float, float, float]:
    """Return the level, and the spread below and above it: delays have a tail on one side."""
    ordered, quarter = sorted(logs), (len(logs) - 1) // 4
    level = median(ordered)
    # The spread of few samples is itself uncertain: taken too small it would see changes.
    allowance = QUARTILE_TO_SIGMA * (1 + 3 / len(logs))
    below, above = level - ordered[quarter], ordered[-1 - quarter] - level
    return level, max(below * allowance, LEAST_SPREAD), max(above * allowance, LEAST_SPREAD)


class Levels(NamedTuple):
    """Two rates of one path."""

    # ``two-level`` where the path returned to each; ``shift`` where it left one for good;
    # ``undecided`` where there are too few tests on either side, or it has come back just once
    pattern: LevelPattern
    low_mbps: float
    high_mbps: float
    changes: int  # from one level to the other
    position: int  # of the first test after the last change


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
    pattern: LevelPattern = "undecided"
    if len(turns) > LEAST_RETURNS:
        pattern = "two-level"
    elif len(turns) == 1 and fewer_runs_by_chance(2, cut, len(ordered) - cut) <= FALSE_ALARMS:
        pattern = "shift"
    middles = median(ordered[:cut]), median(ordered[cut:])
    return Levels(pattern, *middles, len(turns), turns[-1])


def fewer_runs_by_chance(runs: int, first: int, second: int) -> float:
    """Return the probability that so many of two kinds, in random order, form so few runs.

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
