"""The steady rate in a test's intervals: a median after the transient, never a mean of all.

Slow start drags a mean down, and some clouds let a burst through first or cut the rate after a
while; a median of what follows is none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

MIN_INTERVALS = 8
"""Fewer intervals do not show what comes after the transient."""

MIN_INTERVAL_S = 0.9
"""Shorter intervals measure the tool's writes rather than the path."""

SETTLED_WITHIN = 0.2
"""The transient is over when an interval is this close to the median of the second half."""

PACED_SHARE = 0.9
"""A test that reaches this share of its target rate was held back by the target."""


class Interval(NamedTuple):
    """What one interval of a test carried."""

    seconds: float
    mbps: float


class Steady(NamedTuple):
    """A steady rate and what it was taken from."""

    mbps: float
    duration_s: float
    intervals: int
    transient_s: float
    transient_mbps: float | None


def steady_rate(intervals: Sequence[Interval], *, warmed_up: bool) -> Steady | None:
    """Return the median rate after the transient; None where the intervals do not show it.

    Parameters
    ----------
    intervals : Sequence[Interval]
        In order of time, without omitted ones.
    warmed_up : bool
        Whether slow start was left out already. If not, the first interval never counts.
    """
    if not intervals:
        return None
    usual_s = median(interval.seconds for interval in intervals)
    if usual_s < MIN_INTERVAL_S:
        return None
    # What is left when a test ends between two reports is too short to count.
    whole = [interval for interval in intervals if interval.seconds >= usual_s / 2]
    if len(whole) < MIN_INTERVALS:
        return None
    half = len(whole) // 2
    settled_mbps = median(interval.mbps for interval in whole[half:])
    first = 0 if warmed_up else 1
    while abs(whole[first].mbps - settled_mbps) > SETTLED_WITHIN * settled_mbps:
        first += 1
        if first > half:
            return None
    kept, transient = whole[first:], whole[:first]
    return Steady(
        mbps=median(interval.mbps for interval in kept),
        duration_s=sum(interval.seconds for interval in kept),
        intervals=len(kept),
        transient_s=sum(interval.seconds for interval in transient),
        transient_mbps=median(interval.mbps for interval in transient) if transient else None,
    )
