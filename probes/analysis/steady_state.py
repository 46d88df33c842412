"""The steady rate in a test's intervals, and changes of the rate.

A series of 1 s rates may begin with slow start, or with a burst that a token bucket lets through
(EC2); it may fall after a while or after a volume (Azure, 8 to 10 GB or 100 s); or go back and
forth between two rates (several IP paths). The steady rate is the median after the last lasting
change; changes are reported with their time and volume. Where bytes over time since that change
differ from the median by over 5 %, the bytes are right: a path that carries nothing in one second
of three moves two thirds of its usual rate. Seconds without data are stalls, not a level.

Lasting changes are found by cutting the series in two where ranks differ most (Mann-Whitney, as
in Pettitt's test, 1979), again and again in the parts. A cut counts if the ranks differ by more
than chance allows - widened where neighbouring intervals resemble each other, as TCP's do - and
the medians by 15 % or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log, sqrt
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.evidence import figure_in
from probes.analysis.stopping import median_interval

Pattern: TypeAlias = Literal["slow-start", "burst", "drop", "rise", "two-level", "stall"]
LASTING: tuple[Pattern, ...] = ("drop", "rise", "two-level")
"""Changes of the rate for good; bursts and slow start are the transient."""

MIN_INTERVAL_S = 0.9
"""Shorter intervals measure the tool's writes rather than the path."""
STALLED = 1e-3
"""Intervals below this share of the usual rate carried nothing: shaped links keep 0.6 % and more
of their burst (t3.nano)."""
MEDIAN_IS_MEAN_WITHIN = 0.05
"""A median that is further from bytes over time is not the rate that a transfer gets."""
SETTLED_WITHIN = 0.2
"""The transient is over when an interval is this close to the median of those ahead."""
FEWEST_INTERVALS = 3
FEWEST_OF_LEVEL = 4
"""Intervals that a level lasts at least; shorter ones are a transient or a dip."""
LEAST_CHANGE = 1.15
SURELY_DIFFERENT = 3.9
"""Standard deviations of the rank sum. The largest over all cuts of 30 to 300 independent values
exceeds it in under 1 % of series (simulated)."""
WINDOWS = (15, 30)
"""Intervals on either side of a cut that is looked for in windows."""
SURELY_DIFFERENT_IN_WINDOW = 4.1
CLEARLY_APART = 5.0
"""For tests too short for ranks: distance of the levels in standard deviations of their noise."""
TRANSIENT_SIGMAS = 4.0
MOST_NOISE = 0.6
"""An interval at the start that is this far from the level is never taken for noise."""
BEGINNING_SHARE = 1 / 3
SHORT_BEGINNING_S = 10.0
"""A first level that ends within this share of the test or time is a burst, or slow start."""
SAME_LEVEL = 1.15
MAD_TO_SIGMA = 1.4826


class Interval(NamedTuple):
    """One interval of a test: its length and mean rate."""

    seconds: float
    mbps: float


class RateChange(NamedTuple):
    """A change of rate in a series."""

    pattern: Pattern
    at_s: float  # time of the change since the start of the series
    at_gb: float  # volume until then
    # Medians of the levels on either side; of the two levels, the earlier first
    before_mbps: float
    after_mbps: float
    after_gb: float  # volume sent from then on, to the end of the series


class SteadyState(NamedTuple):
    """The steady rate of a test, and its changes of rate."""

    # Median after the last lasting change, or bytes over time where they differ by over 5 %, and
    # 90 % bounds of the median (the extremes where there are fewer than five intervals), of which
    # `mbps` is never outside. For a two-level path that of all and the two levels
    mbps: float
    low_mbps: float
    high_mbps: float
    duration_s: float  # time that it was taken from
    intervals: int  # in that time
    transient_s: float  # time before the first level
    transient_mbps: float | None  # its median; None without any
    findings: tuple[RateChange, ...]  # in order of time; of stalls the first
    is_mean: bool = False  # whether `mbps` is bytes over time
    # Relative standard error of bytes over time by the spread of the intervals, where these stall
    # or `mbps` is that; else 0. Where nothing came in a share s of n, it is sqrt(s / (n (1 - s)))
    mean_error: float = 0.0


class _Level(NamedTuple):
    start: int
    stop: int
    mbps: float


def steady_state(intervals: Sequence[Interval], *, warmed_up: bool) -> SteadyState | None:
    """Return the steady rate of one test; None where the intervals do not show it.

    Intervals are in order of time, without omitted ones; of 1 s or more. Three tell a rate, 10 a
    large lasting change, 20 any. Unless slow start was left out already, the first never counts.
    """
    usual_s = median(interval.seconds for interval in intervals) if intervals else 0.0
    # The remainder of a test that ends between two reports is too short to count.
    whole = [one for one in intervals if one.seconds >= usual_s / 2 >= MIN_INTERVAL_S / 2]
    moved = [one.mbps for one in whole if one.mbps > 0]
    least_mbps = STALLED * median(moved) if moved else 0.0
    places = [place for place, one in enumerate(whole) if one.mbps > least_mbps]
    if len(places) < FEWEST_INTERVALS + (not warmed_up):
        return None
    found = _steady(whole, places, warmed_up)
    if found is None:
        return None
    # Stalls lie between the intervals of the level, and after them.
    first = places[-found.intervals]
    counted = whole[first:]
    lasts_s = _seconds(counted)
    if len(counted) > found.intervals:
        stalled = min(set(range(first, len(whole))).difference(places))
        stall = _change("stall", whole, stalled, found.mbps, 0.0)
        in_time = sorted((*found.findings, stall), key=lambda change: change.at_s)
        found = found._replace(findings=tuple(in_time))
    mean_mbps = sum(one.seconds * one.mbps for one in counted) / lasts_s
    is_mean = abs(mean_mbps - found.mbps) > MEDIAN_IS_MEAN_WITHIN * found.mbps
    mbps = mean_mbps if is_mean else found.mbps
    off = [(one.mbps - mean_mbps) / mean_mbps for one in counted]
    error = sqrt(sum(share * share for share in off)) / len(counted)
    return found._replace(
        mbps=mbps,
        low_mbps=min(found.low_mbps, mbps),
        high_mbps=max(found.high_mbps, mbps),
        duration_s=lasts_s,
        intervals=len(counted),
        is_mean=is_mean,
        mean_error=round(error, 6) if is_mean or len(counted) > found.intervals else 0.0,
    )


def changes_in(detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the changes in a sample's detail, without malformed entries.

    Times and volumes are from the beginning of the test, with its warm-up.
    """
    told = detail.get("findings")
    figures = ("at_s", "at_gb", "before_mbps", "after_mbps")
    omitted_s, omitted_gb = (figure_in(detail, name) or 0.0 for name in ("omitted_s", "omitted_gb"))
    return [
        {
            **change,
            "at_s": change["at_s"] + omitted_s,
            "at_gb": change["at_gb"] + omitted_gb,
            "after_gb": figure_in(change, "after_gb"),
        }
        for change in (told if isinstance(told, list) else [])
        if isinstance(change, dict)
        and isinstance(change.get("pattern"), str)
        and None not in [figure_in(change, name) for name in figures]
    ]


def changes_as_json(changes: Sequence[RateChange]) -> list[dict[str, object]]:
    """Return changes for the detail of a sample, rounded."""
    return [
        {
            name: value if name == "pattern" else round(value, 6 if name.endswith("_gb") else 3)
            for name, value in change._asdict().items()
        }
        for change in changes
    ]


# ---- inside -----------------------------------------------------------------------------------


def _steady(
    whole: Sequence[Interval], places: Sequence[int], warmed_up: bool
) -> SteadyState | None:
    """Find the last level of the intervals at these places, which all moved data."""
    moving = [whole[place] for place in places]
    rates = [interval.mbps for interval in moving]
    levels = _levels(rates, 0 if warmed_up else 1)
    start = _transient(rates, levels[0])
    if start is None and len(levels) == 1:
        return None
    first = levels[0].start if start is None else start
    levels[0] = _Level(first, levels[0].stop, median(rates[first : levels[0].stop]))
    before_mbps = median(rates[:first]) if first else None
    transient = _seconds(moving[:first]), before_mbps
    findings: tuple[RateChange, ...] = ()
    level_mbps = levels[0].mbps
    if before_mbps is not None and abs(before_mbps - level_mbps) > SETTLED_WITHIN * level_mbps:
        pattern: Pattern = "slow-start" if before_mbps < level_mbps else "burst"
        findings = (_change(pattern, whole, places[first], before_mbps, level_mbps),)
    if len(levels) >= 3 and (two := _two_levels(levels)):
        change = _change(
            "two-level", whole, places[levels[1].start], levels[0].mbps, levels[1].mbps
        )
        kept = moving[first:]
        figures = median(rates[first:]), *two, _seconds(kept), len(kept)
        return SteadyState(*figures, *transient, (*findings, change))
    for before, after in pairwise(levels):
        early = max(SHORT_BEGINNING_S, BEGINNING_SHARE * _seconds(moving))
        is_beginning = before.start == first and _seconds(moving[: after.start]) <= early
        if after.mbps < before.mbps:
            pattern = "burst" if is_beginning else "drop"
        else:
            pattern = "slow-start" if is_beginning and not findings else "rise"
        findings += (_change(pattern, whole, places[after.start], before.mbps, after.mbps),)
    last, start = levels[-1], levels[-1].start
    if len(levels) > 1 and is_beginning:  # the cut may stand before the transient's last intervals
        start = _transient(rates, last) or start
    level = rates[start : last.stop]
    low, high = median_interval(level) or (min(level), max(level))
    lasts_s = _seconds(moving[start : last.stop])
    return SteadyState(median(level), low, high, lasts_s, len(level), *transient, findings)


def _transient(rates: Sequence[float], level: _Level) -> int | None:
    """Return the start of a level's usual rate; None if that takes more than half of it."""
    for start in range(level.start, (level.start + level.stop + 1) // 2 + 1):
        ahead = rates[start : max(start + FEWEST_OF_LEVEL, (start + level.stop) // 2)]
        usual = median(ahead)
        sigma = MAD_TO_SIGMA * median(abs(rate - usual) for rate in ahead)
        noise = min(TRANSIENT_SIGMAS * sigma, MOST_NOISE * usual)
        if abs(rates[start] - usual) <= max(SETTLED_WITHIN * usual, noise):
            return start
    return None


def _levels(rates: Sequence[float], first: int) -> list[_Level]:
    """Cut a series where its level changes."""
    series = np.log(np.maximum(np.asarray(rates), max(rates) * 1e-3 or 1e-9))
    bounds = [first, *sorted(_cuts(series, first, len(rates))), len(rates)]
    # Cuts may have become pointless once there were others next to them.
    while len(bounds) > 2:
        middles = [median(rates[a:b]) for a, b in pairwise(bounds)]
        changes = [max(a, b) / max(min(a, b), 1e-9) for a, b in pairwise(middles)]
        least = min(range(len(changes)), key=changes.__getitem__)
        if changes[least] >= LEAST_CHANGE:
            break
        del bounds[least + 1]
    return [_Level(a, b, median(rates[a:b])) for a, b in pairwise(bounds)]


def _cuts(series: np.ndarray, start: int, stop: int) -> list[int]:
    cut = _best_cut(series[start:stop])
    if cut is None:
        return []
    cut += start
    return [*_cuts(series, start, cut), cut, *_cuts(series, cut, stop)]


def _best_cut(series: np.ndarray) -> int | None:
    """Return the best cut of a series in two levels, or None if it is one.

    The whole series is searched first, then windows of it: where a rate goes back and forth, no
    single cut divides the whole well.
    """
    count = len(series)
    if count < 2 * FEWEST_OF_LEVEL + 1:
        return None
    sizes = np.arange(FEWEST_OF_LEVEL, count - FEWEST_OF_LEVEL + 1)
    distance = _distance(_ranks(series).cumsum()[sizes - 1], sizes, count)
    cut = int(sizes[distance.argmax()])
    surely = SURELY_DIFFERENT * _widened(_likeness(series, cut) + 1 / count)
    if _differ(series, cut, float(distance.max()), surely):
        return cut
    # Ranks may put the cut next to a short level that stands out; means do not.
    contrast = np.abs(series.cumsum()[sizes - 1] - sizes * series.mean())
    cut = int(sizes[(contrast / np.sqrt(sizes * (count - sizes))).argmax()])
    if _differ(series, cut, 0.0, surely):
        return cut
    for half in WINDOWS:
        if count <= 2 * half:
            break
        windows = np.lib.stride_tricks.sliding_window_view(series, 2 * half)
        distance = _distance(_ranks(windows)[:, :half].sum(axis=1), half, 2 * half)
        at = int(distance.argmax())
        surely = SURELY_DIFFERENT_IN_WINDOW * _widened(_likeness(series))
        if _differ(windows[at], half, float(distance[at]), surely):
            return at + half
    return None


def _ranks(series: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = series.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable") + 1.0
    return ranks


def _distance(sums: np.ndarray, sizes: np.ndarray | int, count: int) -> np.ndarray:
    """Return the rank sums' distance from their expectation, in standard deviations."""
    spread = np.sqrt(sizes * (count - sizes) * (count + 1) / 12.0)
    return np.asarray(np.abs(sums - sizes * (count + 1) / 2.0) / spread)


def _differ(series: np.ndarray, cut: int, distance: float, surely: float) -> bool:
    """Tell whether the two sides of a cut are two levels."""
    before, after = series[:cut], series[cut:]
    change = abs(float(np.median(before) - np.median(after)))
    if change < log(LEAST_CHANGE):
        return False
    if distance > surely:
        return True
    # All of one level above all of the other, by far: plain also in short tests.
    apart = before.min() > after.max() or before.max() < after.min()
    noise = _widened(_likeness(series, cut) + 1 / len(series)) * float(np.std(_left(series, cut)))
    return bool(apart and change > CLEARLY_APART * noise)


def _left(series: np.ndarray, cut: int) -> np.ndarray:
    """Return the deviations of both sides of a cut from their medians."""
    return np.concatenate([part - np.median(part) for part in (series[:cut], series[cut:])])


def _likeness(series: np.ndarray, cut: int | None = None) -> float:
    """Estimate the likeness of neighbours (r of a first-order autoregression).

    Differences of next neighbours have variance ``2 v (1 - r)``, those of second neighbours
    ``2 v (1 - r^2)``: their ratio gives r, and medians of them do not see the few that straddle a
    change. Where there is just one change, the deviations from its levels tell r more sharply.
    """
    near = float(np.median(np.abs(np.diff(series)))) ** 2
    far = float(np.median(np.abs(series[2:] - series[:-2]))) ** 2
    likeness = far / near - 1 if near > 0 else 1.0
    if cut is not None:
        left = _left(series, cut)
        power = float(left @ left)
        likeness = min(likeness, float(left[1:] @ left[:-1]) / power if power > 0 else 0.0)
    return likeness


def _widened(likeness: float) -> float:
    """Return the factor by which likeness of neighbours widens chance differences of means."""
    likeness = min(0.9, max(0.0, likeness))
    return sqrt((1 + likeness) / (1 - likeness))


def _two_levels(levels: Sequence[_Level]) -> tuple[float, float] | None:
    """Return the two rates between which the levels alternate, or None."""
    sides = [[level.mbps for level in levels[side::2]] for side in (0, 1)]
    if any(max(side) > min(side) * SAME_LEVEL for side in sides):
        return None
    one, other = map(median, sides)
    return min(one, other), max(one, other)


def _change(
    pattern: Pattern, whole: Sequence[Interval], at: int, before_mbps: float, after_mbps: float
) -> RateChange:
    before_gb, after_gb = (
        sum(interval.seconds * interval.mbps for interval in some) / MBPS_PER_GBPS / BITS_PER_BYTE
        for some in (whole[:at], whole[at:])
    )
    return RateChange(pattern, _seconds(whole[:at]), before_gb, before_mbps, after_mbps, after_gb)


def _seconds(whole: Sequence[Interval]) -> float:
    return sum(interval.seconds for interval in whole)
