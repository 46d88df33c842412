"""Rare events in a series, such as minutes that lose packets: how often, how much, how clustered.

Medians do not see what happens in one sample of ten ("Predictability of cloud networks", 2021,
counts losses).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, permutation_p, share_bounds

FEWEST_OCCURRENCES = 6
DRAWS = 399


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often something happened.

    Attributes
    ----------
    samples, occurrences : int
    share, low, high : float
        Of samples in which it happened, and the bounds of its 95 % interval.
    mean : float
        Over all samples.
    median_of_occurrences, worst : float
        Over those in which it happened; 0 where there are none.
    episodes : int
        Runs of neighbouring samples in which it happened.
    longest : int
        Samples of the longest such run.
    clustered : bool
        Whether it comes in fewer runs than chance gives in 95 % of cases.
    """

    samples: int
    occurrences: int
    share: float
    low: float
    high: float
    mean: float
    median_of_occurrences: float
    worst: float
    episodes: int
    longest: int
    clustered: bool


def occurrences(values: ArrayLike, *, seed: int = 0) -> Occurrences:
    """Count the samples above zero of a series.

    Parameters
    ----------
    values : array, length n >= 1
        In order of time.
    seed : int
        Of the random orders.
    """
    series = np.asarray(values, dtype=float)
    happened = series > 0
    count, size = int(happened.sum()), series.size
    edges = np.flatnonzero(np.diff(np.concatenate([[False], happened, [False]]).astype(int)))
    runs = edges[1::2] - edges[::2]
    low, high = share_bounds(count, size)
    return Occurrences(
        size,
        count,
        count / size,
        low,
        high,
        float(series.mean()),
        float(np.median(series[happened])) if count else 0.0,
        float(series.max(initial=0.0)),
        runs.size,
        int(runs.max(initial=0)),
        FEWEST_OCCURRENCES <= count < size and _clustered(runs.size, count, size, seed),
    )


def _clustered(runs: int, count: int, size: int, seed: int) -> bool:
    """Whether random places of so many among all would form as few runs rarely."""
    generator = np.random.default_rng(seed)
    by_chance = []
    for _ in range(DRAWS):
        places = np.sort(generator.choice(size, count, replace=False))
        by_chance.append(-(1 + np.count_nonzero(np.diff(places) > 1)))
    return permutation_p(-runs, by_chance) <= FALSE_ALARMS
