"""The strongest period of a series, of whatever length: a periodogram against red noise.

Neighbours in time resemble each other, so slow waves are strong by chance; the expected spectrum is
that of a first-order autoregression (Torrence and Compo, "A practical guide to wavelet analysis",
Bulletin of the AMS 79, 1998). Over that spectrum, powers of chance are exponential, and the largest
of m exceeds x with probability ``1 - (1 - exp(-x))^m``. Values count by their ranks, as normal
scores, so that outliers make no period.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, Floats, ranks
from probes.analysis.series.autocorrelation import correlations
from probes.analysis.series.grid import on_grid

FEWEST_SAMPLES = 96
FEWEST_CYCLES = 5
"""A period that came back fewer times may be a coincidence."""
MOST_HARMONIC = 8
SURELY_STANDING = 8.0
"""Over the expected power, which chance exceeds in one of 3,000 waves."""


@dataclass(frozen=True, slots=True)
class StrongestPeriod:
    """The wave that stands out most.

    Attributes
    ----------
    samples : int
    period_s : float
    cycles : float
        In the time that the series covers.
    share : float
        Of the variance of the series' ranks that the wave explains.
    p_value : float
        How often chance, with the same memory, has a wave as strong.
    present : bool
        Whether that is in at most 5 % of cases.
    """

    samples: int
    period_s: float
    cycles: float
    share: float
    p_value: float
    present: bool


def strongest_period(times_s: ArrayLike, values: ArrayLike) -> StrongestPeriod:
    """Return the period that stands out most in a series.

    Parameters
    ----------
    times_s, values : arrays, length n
        In order of time; roughly equal steps.

    Raises
    ------
    TooFewError
        If there are fewer than 96 samples, or over 40 % of steps have none.
    """
    grid = on_grid(times_s, values, fewest=FEWEST_SAMPLES)
    known = np.isfinite(grid.values)
    count = int(known.sum())
    scores = np.zeros(grid.values.size)
    quantile = NormalDist().inv_cdf
    scores[known] = [quantile(rank / (count + 1)) for rank in ranks(grid.values[known])]
    # A trend is no period.
    steps = np.arange(scores.size, dtype=float)
    slope, offset = np.polyfit(steps[known], scores[known], 1)
    scores[known] -= slope * steps[known] + offset
    waves = np.arange(FEWEST_CYCLES, scores.size // 2)
    power = (np.abs(np.fft.rfft(scores)) ** 2)[waves]
    expected = _red_noise(np.where(known, scores, np.nan), waves, scores.size)
    expected *= power.sum() / expected.sum()
    standing = power / expected
    best = int(standing.argmax())
    p_value = float(-np.expm1(waves.size * np.log1p(-np.exp(-standing[best]))))
    best = _fundamental(standing, best)
    total = float(scores @ scores) * scores.size / 2
    return StrongestPeriod(
        count,
        grid.step_s * scores.size / float(waves[best]),
        float(waves[best]),
        float(power[best]) / total if total else 0.0,
        p_value,
        p_value <= FALSE_ALARMS,
    )


def _fundamental(standing: Floats, best: int) -> int:
    """Return the slowest wave that stands out and has the strongest among its harmonics.

    What comes back as a short dip, and not as a wave, has harmonics as strong as itself.
    """
    number = best + FEWEST_CYCLES
    for harmonic in range(MOST_HARMONIC, 1, -1):
        slower = round(number / harmonic) - FEWEST_CYCLES
        if slower >= 0 and standing[slower] >= max(SURELY_STANDING, standing[best] / 2):
            return slower
    return best


def _red_noise(scores: Floats, waves: np.ndarray, length: int) -> Floats:
    """Return the shape of the spectrum of a first-order autoregression, some steps missing.

    Steps that are missing at random, and count as the mean, add white noise.
    """
    filled = float(np.isfinite(scores).mean())
    likeness = min(0.99, max(0.0, float(correlations(scores)[1])))
    angles = 2 * np.pi * waves / length
    red = (1 - likeness**2) / (1 + likeness**2 - 2 * likeness * np.cos(angles))
    shape: Floats = filled * red + 1 - filled
    return shape
