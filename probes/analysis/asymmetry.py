"""Whether the two directions of a pair differ, by tests that were made in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, permutation_p, require

FEWEST_PAIRS = 6
"""With fewer, no arrangement of signs is rarer than 5 %."""
DRAWS = 1999
MOST_SIGNS = 40
COLLAPSED_MBPS = 10.0
"""One direction below this while the other is not: the intermittent collapses of the 2016 WAN
paper, which lasted hours."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two series of values taken at the same times, compared.

    Attributes
    ----------
    pairs : int
    ratio : float
        First over second: geometric mean.
    p_value : float
    differs : bool
        Whether chance produces as much in at most 5 % of cases.
    """

    pairs: int
    ratio: float
    p_value: float
    differs: bool


def paired_difference(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> PairedDifference:
    """Compare two series pair by pair: directions, public and private addresses, two tools.

    A test of signs drawn at random for the logarithms of the ratios: no distribution is assumed,
    only that a ratio is as likely as its inverse where there is no difference. Long series get one
    sign for each fortieth of theirs, because neighbours in time resemble each other.

    Parameters
    ----------
    first, second : arrays, length n
        In order of time, if they are from a series.
    seed : int
        Of the random signs.

    Raises
    ------
    TooFewError
        If fewer than six pairs are above zero on both sides.
    """
    a, b = (np.asarray(values, dtype=float) for values in (first, second))
    known = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)
    require("pairs of values", int(known.sum()), FEWEST_PAIRS)
    logs = np.log(a[known] / b[known])
    sums = np.array([part.sum() for part in np.array_split(logs, min(logs.size, MOST_SIGNS))])
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(DRAWS, sums.size))
    # Rounding must not tell apart what is equal.
    p_value = permutation_p(abs(float(sums.sum())) * (1 - 1e-9), np.abs(signs @ sums))
    return PairedDifference(logs.size, exp(float(logs.mean())), p_value, p_value <= FALSE_ALARMS)


@dataclass(frozen=True, slots=True)
class Collapse:
    """One direction that broke down while the other went on."""

    from_s: float
    until_s: float
    samples: int
    mbps: float


def collapses(times_s: ArrayLike, mbps: ArrayLike, other_mbps: ArrayLike) -> list[Collapse]:
    """Return the times at which one direction was below 10 Mbit/s and the other was not.

    Parameters
    ----------
    times_s, mbps, other_mbps : arrays, length n
        In order of time; both directions at each.
    """
    times, rates, others = (np.asarray(a, dtype=float) for a in (times_s, mbps, other_mbps))
    down = (rates < COLLAPSED_MBPS) & (others >= COLLAPSED_MBPS)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], down, [False]]).astype(int)))
    return [
        Collapse(
            float(times[start]),
            float(times[stop - 1]),
            int(stop - start),
            float(np.median(rates[start:stop])),
        )
        for start, stop in edges.reshape(-1, 2)
    ]
