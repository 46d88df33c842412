"""What every analysis owes its reader: how much it rests on, and no answer from too little."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.model.errors import DataError

FALSE_ALARMS = 0.05
"""A pattern is reported when chance alone gives one as strong this often, or less."""
NORMAL_95 = 1.96

Floats = NDArray[np.float64]


class TooFewError(DataError):
    """There is too little to conclude from.

    Attributes
    ----------
    what : str
        What there are too few of.
    have, need : int
    """

    def __init__(self, what: str, have: int, need: int) -> None:
        self.what, self.have, self.need = what, have, need
        super().__init__(f"{need} {what} are needed to conclude anything, and there are {have}.")


def require(what: str, have: int, need: int) -> None:
    """Raise :class:`TooFewError` unless there is enough."""
    if have < need:
        raise TooFewError(what, have, need)


def finite(values: ArrayLike) -> Floats:
    """Return the values that are numbers, as a flat array."""
    flat = np.asarray(values, dtype=float).ravel()
    known: Floats = flat[np.isfinite(flat)]
    return known


def ranks(values: ArrayLike) -> Floats:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    flat = np.asarray(values, dtype=float)
    _, position, counts = np.unique(flat, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    shared: Floats = (last - (counts - 1) / 2.0)[position]
    return shared


def permutation_p(observed: float, chance: ArrayLike) -> float:
    """Return how often chance does at least as much, the observation counted in.

    Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    """
    drawn = np.asarray(chance, dtype=float)
    return float((1 + np.count_nonzero(drawn >= observed)) / (1 + drawn.size))


def share_bounds(count: int, size: int) -> tuple[float, float]:
    """Return between which the share of many more lies with 95 %, if they were independent.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    share, squared = count / size, NORMAL_95**2 / size
    middle = (share + squared / 2) / (1 + squared)
    half = sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def discoveries(p_values: ArrayLike) -> int:
    """Return how many hypotheses are rejected at a false discovery rate of 5 %.

    Benjamini and Hochberg, "Controlling the false discovery rate", 1995.
    """
    ordered = np.sort(np.asarray(p_values, dtype=float))
    below = np.flatnonzero(ordered <= FALSE_ALARMS * np.arange(1, ordered.size + 1) / ordered.size)
    return int(below[-1]) + 1 if below.size else 0
