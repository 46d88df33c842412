"""Shared statistics: the evidence that a conclusion needs, p-values, ranks and spreads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.model.errors import DataError

FALSE_ALARMS = 0.05
"""A pattern is reported when chance alone gives one as strong this often, or less."""
NORMAL_95 = 1.96

Floats: TypeAlias = NDArray[np.float64]
Record: TypeAlias = dict[str, Any]
"""Results of an analysis by name: a row of a table, or an object of JSON."""


class TooFewError(DataError):
    """There is too little to conclude from: `have` of `what` (in the plural), not `need`."""

    def __init__(self, what: str, have: int, need: int) -> None:
        self.what, self.have, self.need = what, have, need
        super().__init__(f"{need} {what} are needed to conclude anything, and there are {have}.")


def require(what: str, have: int, need: int) -> None:
    """Raise :class:`TooFewError` unless there is enough."""
    if have < need:
        raise TooFewError(what, have, need)


def figure_in(told: Mapping[str, Any], name: str) -> float | None:
    """Return a figure of a sample's detail; None where it is missing, or no number that counts."""
    value = told.get(name)
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def finite(values: ArrayLike) -> Floats:
    """Return the values that are numbers, as a flat array."""
    known: Floats = without_missing(np.ravel(values))[0]
    return known


def without_missing(*series: ArrayLike) -> Floats:
    """Return arrays as rows, without the places at which one of them has no value."""
    rows = np.array(series, dtype=float)
    known: Floats = rows[:, np.isfinite(rows).all(axis=0)]
    return known


def spread(values: ArrayLike, *, fewest: int = 2) -> Record:
    """Summarise values, at least ``fewest``.

    Returns ``samples``, ``mean``, ``deviation`` (of the population sampled, n - 1), ``minimum``,
    ``percentile_5``, ``median``, ``percentile_95``, ``maximum``, and ``cov``, the coefficient of
    variation.
    """
    known = finite(values)
    require("values", known.size, fewest)
    names = ("minimum", "percentile_5", "median", "percentile_95", "maximum")
    places = dict(zip(names, np.percentile(known, (0, 5, 50, 95, 100)).tolist(), strict=True))
    mean = float(known.mean())
    deviation = float(known.std(ddof=1)) if known.size > 1 else 0.0
    whole = {"samples": known.size, "mean": mean, "deviation": deviation}
    return {**whole, **places, "cov": deviation / mean if mean else 0.0}


def ranks(values: ArrayLike) -> Floats:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    flat = np.asarray(values, dtype=float)
    _, position, counts = np.unique(flat, return_inverse=True, return_counts=True)
    shared: Floats = (counts.cumsum() - (counts - 1) / 2.0)[position]
    return shared


def runs_of(happened: ArrayLike) -> NDArray[np.int64]:
    """Return begin and end (exclusive) of each run of true values, shape (runs, 2)."""
    edges = np.diff(np.concatenate([[False], happened, [False]]).astype(int))
    return np.flatnonzero(edges).reshape(-1, 2)


def permutation_p(observed: float, chance: ArrayLike) -> float:
    """Return the share of random draws that reach the observation, which counts as one of them.

    Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    """
    drawn = np.asarray(chance, dtype=float)
    # Rounding must not tell apart what is equal.
    reached = np.count_nonzero(drawn >= observed - 1e-9 * abs(observed))
    return float((1 + reached) / (1 + drawn.size))


def sign_p(values: Floats, draws: int, *, both_sides: bool = False) -> float:
    """Return the share of sums with random signs that reach the sum of the values."""
    observed, chance = float(values.sum()), _signs(draws, values.size) @ values
    return permutation_p(*((abs(observed), np.abs(chance)) if both_sides else (observed, chance)))


@lru_cache(maxsize=1)  # many series are of one size
def _signs(draws: int, size: int) -> Floats:
    return np.random.default_rng(0).choice((-1.0, 1.0), size=(draws, size))


def share_bounds(count: int, size: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share of independent samples.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    share, squared = count / size, NORMAL_95**2 / size
    middle = (share + squared / 2) / (1 + squared)
    half = sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def discoveries(p_values: ArrayLike) -> int:
    """Return the number of hypotheses rejected at a false discovery rate of 5 %.

    Benjamini and Hochberg, "Controlling the false discovery rate", 1995.
    """
    ordered = np.sort(np.asarray(p_values, dtype=float))
    below = np.flatnonzero(ordered <= FALSE_ALARMS * np.arange(1, ordered.size + 1) / ordered.size)
    return int(below[-1]) + 1 if below.size else 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of predictions whose bounds of 90 % held."""

    predictions: int
    share: float | None  # of later measurements that lay within the bounds; None without any
    # The 95 % confidence interval of the share, if predictions are independent
    low: float | None
    high: float | None

    @classmethod
    def of(cls, held: int, predictions: int) -> Coverage:
        """Return the coverage of a number of predictions, some of which held."""
        if not predictions:
            return cls(0, None, None, None)
        return cls(predictions, held / predictions, *share_bounds(held, predictions))
