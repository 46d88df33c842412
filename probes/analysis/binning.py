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
    """Samples of a stretch of time."""

    begin_s: float  # of the first sample in it, seconds since 1970 (UTC)
    end_s: float  # of the last one
    samples: int
    low: float  # least value
    median: float
    high: float  # greatest value


class HistogramBar(NamedTuple):
    """One bar of a histogram: values from ``low``, up to but without ``high`` (the last: with)."""

    low: float
    high: float
    samples: int


class Points(NamedTuple):
    """A series, each point one sample or several: arrays of length n as in :class:`TimeBin`."""

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
    """Yield at most so many stretches of equal length that have samples, in order of time."""
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
            float(np.median(np.repeat(series.median[part], series.samples[part]))),
            float(series.high[part].max()),
        )


def histogram(values: Floats) -> list[HistogramBar]:
    """Return a histogram whose bars are as wide as Freedman and Diaconis have it.

    "On the histogram as a density estimator: L2 theory", Z. Wahrscheinlichkeitstheorie 57, 1981:
    ``2 IQR n^(-1/3)``; at most 60 bars. Equal values are one bar.
    """
    if not len(values):
        return []
    low, lower, upper, high = np.quantile(values, [0, 0.25, 0.75, 1]).tolist()
    if high == low:
        return [HistogramBar(low, high, len(values))]
    width = 2 * (upper - lower) * len(values) ** (-1 / 3)
    bars = int(min(MOST_BARS, np.ceil((high - low) / width))) if width > 0 else 10
    counts, edges = np.histogram(values, bars, (low, high))
    return list(map(HistogramBar, edges[:-1].tolist(), edges[1:].tolist(), counts.tolist()))
