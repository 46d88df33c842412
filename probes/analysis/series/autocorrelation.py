"""How long a series remembers: autocorrelation, and how many independent samples it is worth.

As in the series of "Measuring and understanding WANs between public-cloud datacenters" (Computer
Networks, 2016) and "Predictability of cloud networks" (2021). The time of correlation is the
integrated one, summed while pairs of neighbouring lags stay positive (Geyer, "Practical Markov
chain Monte Carlo", Statistical Science 7, 1992); bounds of chance are Bartlett's (1946).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import NORMAL_95, Floats
from probes.analysis.series.grid import on_grid

FEWEST_SAMPLES = 48

HOUR_S = 3600.0
LAGS_S = (HOUR_S, 6 * HOUR_S, 24 * HOUR_S)


@dataclass(frozen=True, slots=True)
class Autocorrelation:
    """How samples of a series resemble earlier ones.

    Attributes
    ----------
    samples : int
    step_s : float
        Usual time between samples.
    next : float
        Correlation of a sample with the one before.
    remembers : bool
        Whether that is beyond chance: above ``1.96 / sqrt(n)``.
    at_lags : tuple of (float, float)
        Seconds, and the correlation over that time, of an hour, six hours and a day as far as the
        series is ten times as long.
    correlation_time_s : float
        Time between samples that are as good as independent.
    independent_samples : float
        What the series is worth.
    """

    samples: int
    step_s: float
    next: float
    remembers: bool
    at_lags: tuple[tuple[float, float], ...]
    correlation_time_s: float
    independent_samples: float


def autocorrelation(times_s: ArrayLike, values: ArrayLike) -> Autocorrelation:
    """Return how long a series remembers.

    Parameters
    ----------
    times_s, values : arrays, length n
        In order of time; roughly equal steps.

    Raises
    ------
    TooFewError
        If there are fewer than 48 samples, or over 40 % of steps have none.
    """
    grid = on_grid(times_s, values, fewest=FEWEST_SAMPLES)
    found = correlations(grid.values)
    count = int(np.isfinite(grid.values).sum())
    # 1 + 2 sum of r, over pairs of lags (1, 2), (3, 4), ... for as long as a pair is positive.
    pairs = found[1 : 1 + (found.size - 1) // 2 * 2].reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= 0)
    kept = pairs[: ended[0]] if ended.size else pairs
    steps = max(1.0, 1.0 + 2.0 * float(kept.sum()))
    reach = grid.values.size // 10
    at_lags = [
        (lag_s, float(found[lag]))
        for lag_s in LAGS_S
        if 1 <= (lag := round(lag_s / grid.step_s)) <= reach
    ]
    return Autocorrelation(
        count,
        grid.step_s,
        float(found[1]),
        float(found[1]) > NORMAL_95 / count**0.5,
        tuple(at_lags),
        steps * grid.step_s,
        count / steps,
    )


def correlations(values: Floats) -> Floats:
    """Return the autocorrelation of a grid at lags 0, 1, ... up to half its length.

    Steps without a value count in no product.
    """
    known = np.isfinite(values)
    centred = np.where(known, values - values[known].mean(), 0.0)
    power = float(centred @ centred) / known.sum()
    length = 2 ** int(np.ceil(np.log2(2 * values.size)))
    lags = values.size // 2 + 1

    def products(series: Floats) -> Floats:
        waves = np.fft.rfft(series, length)
        summed: Floats = np.fft.irfft(np.abs(waves) ** 2, length)[:lags]
        return summed

    pairs = np.maximum(np.round(products(known.astype(float))), 1.0)
    if power <= 0:
        found: Floats = np.zeros(lags)
        found[0] = 1.0
        return found
    return np.asarray(products(centred) / pairs / power)
