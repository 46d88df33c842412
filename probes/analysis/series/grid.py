"""A series of samples on a grid of equal steps, as methods of time series need it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import Floats, require

FEWEST_FILLED_PCT = 60
MOST_STEPS = 200_000


class Grid(NamedTuple):
    """A series on a grid.

    Attributes
    ----------
    first_s, step_s : float
        Seconds since 1970 at which the first step begins, and the length of each.
    values : array, length n
        Mean of the samples in each step; NaN where there is none.
    """

    first_s: float
    step_s: float
    values: Floats

    @property
    def times_s(self) -> Floats:
        """When each step begins."""
        times: Floats = self.first_s + self.step_s * np.arange(self.values.size, dtype=np.float64)
        return times


def on_grid(times_s: ArrayLike, values: ArrayLike, *, fewest: int) -> Grid:
    """Lay a series on a grid of its own usual step: the median between samples.

    Parameters
    ----------
    times_s : array, length n
        In order.
    values : array, length n
    fewest : int
        Steps with samples that are needed.

    Raises
    ------
    TooFewError
        If fewer steps have samples, or most have none.
    """
    times, series = (np.asarray(a, dtype=float) for a in (times_s, values))
    known = np.isfinite(times) & np.isfinite(series)
    times, series = times[known], series[known]
    require("samples", series.size, fewest)
    between = np.diff(times)
    require("samples at different times", int((between > 0).sum()) + 1, fewest)
    step_s = max(float(np.median(between[between > 0])), (times[-1] - times[0]) / MOST_STEPS)
    place = np.round((times - times[0]) / step_s).astype(int)
    count = np.bincount(place)
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(place, series) / count
    filled = int((count > 0).sum())
    require("steps of equal length with samples", filled, fewest)
    require(
        "of every hundred steps with samples", round(100 * filled / count.size), FEWEST_FILLED_PCT
    )
    return Grid(float(times[0]), step_s, means)
