"""Estimates of measured links at many times, on arrays: what a snapshot would have said then.

The rules are those of :class:`~probes.estimation.Estimator`, with the same constants and, for
changes of level, combination and age, the same code: the median of a link's newest samples since it
last changed its level, at most :data:`~probes.estimation.series.MOST_SAMPLES` of at most thirty
days, those with the most connections alone, corrected for slow start. A link that was not measured
yet has no estimate: nothing is inferred from other links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import SECONDS_PER_DAY
from planner.single_flow.spreads import later_test_error
from probes.analysis.level_shift import LEARNT_FROM, level_shifts
from probes.estimation.arrays.sample_table import MEMORY_S, MOST_SAMPLES
from probes.estimation.bounds import LEAST_NOISE, MAD_TO_SIGMA, NORMAL_90

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """Samples of one metric, by pair and time.

    Attributes
    ----------
    starts : array, length pairs + 1
        Rows of pair i are ``starts[i]`` to ``starts[i + 1]``, oldest first.
    at_s, value : arrays, length rows
    cold_s : array, length rows
        Length of the test where slow start is in its value; else 0.
    connections : array, length rows
        0 where not known.
    way : array, length rows
        Equal where samples were taken the same way, so that a change of level is a change.
    """

    starts: Whole
    at_s: Floats
    value: Floats
    cold_s: Floats
    connections: NDArray[np.int32]
    way: NDArray[np.int32]

    @property
    def pairs(self) -> int:
        """How many series there are."""
        return len(self.starts) - 1


class RollingBounds(NamedTuple):
    """Estimates by pair; NaN where there is none."""

    low: Floats
    expected: Floats
    high: Floats


class RollingEstimates:
    """The series of one metric, and what is known of each pair at a given row.

    Parameters
    ----------
    series : SeriesColumns
        Samples with fewer connections than an earlier one of their pair are left out.
    """

    def __init__(self, series: SeriesColumns) -> None:
        self.series = series = _with_most_connections(series)
        self._since = _level_since(series)

    def ends(self, times_s: Floats) -> Whole:
        """Return, by pair and time, the first row that was measured at that time or later."""
        series = self.series
        found = np.empty((series.pairs, len(times_s)), np.int64)
        for pair in range(series.pairs):
            first, last = series.starts[pair], series.starts[pair + 1]
            found[pair] = first + np.searchsorted(series.at_s[first:last], times_s)
        return found

    def newest_connections(self, ends: Whole) -> NDArray[np.int32]:
        """Return, by pair, the connections of the newest sample before a row; 0 without any."""
        series = self.series
        if not len(series.at_s):
            return np.zeros(series.pairs, np.int32)
        newest = series.connections[np.maximum(ends - 1, 0)]
        return np.where(ends > series.starts[:-1], newest, 0).astype(np.int32)

    def newest_values(self, ends: Whole) -> tuple[Floats, Floats, Floats]:
        """Return what estimates rest on.

        Parameters
        ----------
        ends : array, length pairs
            Rows before these are known.

        Returns
        -------
        values, cold_s : arrays, shape (pairs, up to 64)
            NaN where a pair has fewer.
        newest_s : array, length pairs
            Time of the newest sample; NaN where there is none.
        """
        series = self.series
        none = ends <= series.starts[:-1]
        last = np.maximum(ends - 1, 0)
        if not len(series.at_s):
            empty = np.full((series.pairs, 1), np.nan)
            return empty, empty, empty[:, 0]
        since = np.where(none, ends, self._since[last])
        newest_s = np.where(none, np.nan, series.at_s[last])
        values, rows, counted = _gathered(
            series, np.maximum(since, ends - MOST_SAMPLES), ends, MOST_SAMPLES
        )
        old = counted & (series.at_s[rows] < newest_s[:, None] - MEMORY_S)
        values[old] = np.nan
        return values, series.cold_s[rows], newest_s

    def values_between(self, begins: Whole, ends: Whole) -> tuple[Floats, Floats]:
        """Return the values of the rows between, as :meth:`newest_values` does, and ``cold_s``."""
        most = int((ends - begins).max(initial=0))
        if not most:
            empty = np.full((len(begins), 1), np.nan)
            return empty, empty
        values, rows, _ = _gathered(self.series, begins, ends, most)
        return values, self.series.cold_s[rows]


def bounds_of(values: Floats, noise: float | Floats) -> RollingBounds:
    """Return medians with bounds for noise and spread.

    Parameters
    ----------
    values : array, shape (pairs, most)
        NaN where a pair has fewer.
    noise : float or array, length pairs
        Relative error of one measurement, 90th percentile.
    """
    expected, counts = medians(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = deviations(values, expected)
        spread = np.where(expected > 0, NORMAL_90 * deviation / expected, 0.0)
        error = np.maximum(LEAST_NOISE, np.sqrt(noise**2 / counts + spread**2))
        return RollingBounds(expected / (1 + error), expected, expected * (1 + error))


def flow_bounds(values: Floats) -> RollingBounds:
    """Return medians of tests of single flows, with bounds for a later one."""
    expected, counts = medians(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = NORMAL_90 * deviations(values, expected) / expected
        error = later_test_error(counts, np.where(expected > 0, deviation, 0.0))
        return RollingBounds(expected / (1 + error), expected, expected * (1 + error))


def deviations(values: Floats, middle: Floats) -> Floats:
    """Return the standard deviation of each row, by the median of absolute deviations."""
    found, _ = medians(np.abs(values - middle[:, None]))
    return MAD_TO_SIGMA * found


def days_since(newest_s: Floats, now_s: float) -> Floats:
    """Return the age of estimates in whole days."""
    found: Floats = np.maximum(0.0, (now_s - newest_s) // SECONDS_PER_DAY)
    return found


def bounds_of_logs(logs: tuple[Floats, Floats, Floats]) -> RollingBounds:
    """Return bounds from what is expected and how far they are, as logarithms."""
    expected, below, above = logs
    return RollingBounds(
        *(np.exp(bound) for bound in (expected - below, expected, expected + above))
    )


def medians(values: Floats) -> tuple[Floats, Whole]:
    """Return the median of each row's numbers (NaN without any), and how many there are."""
    ordered = np.sort(values, axis=1)  # NaN comes last
    counts = np.count_nonzero(~np.isnan(ordered), axis=1)
    rows = np.arange(len(ordered))
    below = ordered[rows, np.maximum(counts - 1, 0) // 2]
    above = ordered[rows, np.minimum(counts // 2, ordered.shape[1] - 1)]
    return (below + above) / 2, counts


def _gathered(
    series: SeriesColumns, begins: Whole, ends: Whole, most: int
) -> tuple[Floats, Whole, NDArray[np.bool_]]:
    """Return the last values before each end, their rows, and which of them count."""
    rows = ends[:, None] - most + np.arange(most)
    counted = rows >= begins[:, None]
    rows = np.maximum(rows, 0)
    return np.where(counted, series.value[rows], np.nan), rows, counted


def _with_most_connections(series: SeriesColumns) -> SeriesColumns:
    """Leave out samples with fewer connections than an earlier one of their pair."""
    kept = np.ones(len(series.at_s), bool)
    for first, last in zip(series.starts[:-1], series.starts[1:], strict=True):
        used = series.connections[first:last]
        if last - first > 1 and (used != used[0]).any():
            kept[first:last] = used >= np.maximum.accumulate(used)
    if kept.all():
        return series
    before = np.concatenate(([0], np.cumsum(kept)))
    return SeriesColumns(
        before[series.starts],
        series.at_s[kept],
        series.value[kept],
        series.cold_s[kept],
        series.connections[kept],
        series.way[kept],
    )


def _level_since(series: SeriesColumns) -> Whole:
    """Return, for each row, the first row of its pair that counts once this one is known."""
    since = np.empty(len(series.at_s), np.int64)
    for first, last in zip(series.starts[:-1], series.starts[1:], strict=True):
        since[first:last] = first
        if last == first:
            continue
        alike = series.way[first:last].astype(np.int64) << 32 | series.connections[first:last]
        for way in np.unique(alike):
            rows = first + np.flatnonzero(alike == way)
            if len(rows) > LEARNT_FROM:
                _note_shifts(series.value, rows, since)
        more = np.flatnonzero(np.diff(series.connections[first:last])) + first + 1
        for row in more:  # fewer connections may not have saturated the pair
            since[row:last] = np.maximum(since[row:last], row)
    return since


def _note_shifts(values: Floats, rows: Whole, since: Whole) -> None:
    """Note where the level of samples that were taken one way began, once that was found."""
    for shift in level_shifts(values[rows].tolist()):
        known = rows[shift.found_at :]
        since[known] = rows[shift.position]
