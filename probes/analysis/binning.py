"""Long series reduced for display: medians and ranges over time, and their distribution.

Summaries (one row for an hour or a day of samples) count by their own median and range, with the
weight of their samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_BARS = 60


class TimeBin(NamedTuple):
    """Samples of a stretch of time.

    Attributes
    ----------
    begin_s, end_s : float
        From the first to the last sample in it, seconds since 1970 (UTC).
    samples : int
    low, median, high : float
        Least, middle and greatest value.
    """

    begin_s: float
    end_s: float
    samples: int
    low: float
    median: float
    high: float


class HistogramBar(NamedTuple):
    """One bar of a histogram: values from ``low``, up to but without ``high`` (the last: with)."""

    low: float
    high: float
    samples: int


class Points(NamedTuple):
    """A series, each point one sample or several.

    Attributes
    ----------
    begin_s, end_s, samples, low, median, high : arrays of length n
        Fields of :class:`TimeBin`.
    """

    begin_s: Floats
    end_s: Floats
    samples: NDArray[np.int64]
    low: Floats
    median: Floats
    high: Floats


def points(at_s: Floats, values: Floats) -> Points:
    """Return single samples as points."""
    return Points(at_s, at_s, np.ones(len(at_s), np.int64), values, values, values)


def joined(first: Points, second: Points) -> Points:
    """Return two series as one, in the order of time."""
    order = np.argsort(np.concatenate([first.begin_s, second.begin_s]), kind="stable")
    return Points(*(np.concatenate(both)[order] for both in zip(first, second, strict=True)))


def bins(series: Points, most: int) -> Iterator[TimeBin]:
    """Yield stretches of equal length that have samples.

    Parameters
    ----------
    series : Points
        In the order of time.
    most : int
        How many at most, at least 1.
    """
    if not len(series.begin_s):
        return
    first, last = series.begin_s[0], series.begin_s[-1]
    share = (series.begin_s - first) / (last - first) if last > first else series.begin_s * 0.0
    places = np.minimum((share * most).astype(np.int64), most - 1)
    cuts = np.flatnonzero(np.diff(places)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True):
        part = slice(begin, end)
        yield TimeBin(
            float(series.begin_s[begin]),
            float(series.end_s[part].max()),
            int(series.samples[part].sum()),
            float(series.low[part].min()),
            weighted_median(series.median[part], series.samples[part]),
            float(series.high[part].max()),
        )


def weighted_median(values: Floats, weights: NDArray[np.int64]) -> float:
    """Return the value in the middle if each stood there as often as its weight."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    half = reached[-1] / 2
    at = int(np.searchsorted(reached, half))
    if reached[at] == half and at + 1 < len(values):
        return float(values[at] + values[at + 1]) / 2
    return float(values[at])


def histogram(values: Floats) -> list[HistogramBar]:
    """Return a histogram whose bars are as wide as Freedman and Diaconis have it.

    "On the histogram as a density estimator: L2 theory", Z. Wahrscheinlichkeitstheorie 57, 1981:
    ``2 IQR n^(-1/3)``; at most 60 bars. Equal values are one bar.
    """
    if not len(values):
        return []
    low, high = float(values.min()), float(values.max())
    lower, upper = np.quantile(values, [0.25, 0.75])
    width = 2 * float(upper - lower) * len(values) ** (-1 / 3)
    bars = 1
    if high > low:
        bars = int(min(MOST_BARS, max(1, np.ceil((high - low) / width)))) if width > 0 else 10
    counts, edges = np.histogram(values, bars, (low, high))
    if high == low:
        edges = np.array([low, high])
    return [
        HistogramBar(float(left), float(right), int(count))
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
