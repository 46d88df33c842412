"""Comparing two uncertain plans jointly, on fixed draws: no randomness, and the same everywhere.

A figure with bounds is a factor: its logarithm is normal on either side of what is expected, and
90 % of it lies between the bounds. Plans that share a factor share its draws, so that common errors
cancel. A factor's :data:`DRAWS` draws are the quantiles of a normal distribution, each once (Latin
hypercube sampling: McKay, Beckman, Conover, *Technometrics* 21, 1979), in an order of its own. The
orders are fixed: those of a congruential generator from seeds that were chosen so that no two
dimensions, nor their squares, are correlated by more than 0.1, nor 0.28.

All functions take arrays whose last axis is the draws; a single comparison is an array of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import exp, hypot, inf, log
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Risk: TypeAlias = Literal["averse", "neutral", "bold"]
Draws = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

RISK_WEIGHTS: dict[Risk, float] = {"averse": 5.0, "neutral": 1.0, "bold": 0.2}
"""Weight of the regret of having relayed in vain, where that of not having relayed weighs 1."""
LEAST_PROBABILITY: dict[Risk, float] = {"averse": 0.5, "neutral": 0.5, "bold": 0.0}
"""That a relay brings the margin: a relay that does not is one more thing to pay and to fail.

Regret alone also takes relays that hedge against a direct path that may be odd. On the grid of
January 2022, with neutral regret, 83 % of what it took for time brought 1.1x in November; at this
probability 94 % (``python -m benchmarks.readings``).
"""
DRAWS = 64
BOUND_SCORE = 1.6448536269514722
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
_SEEDS = (
    *(7479962, 4922125, 21456997, 39995376, 27713007, 45221916, 31347828, 42862054, 15098040),
    *(16713516, 57876478, 19825683, 26057936, 68994754, 109318302),
)
_MULTIPLIER, _MODULUS = 48271, 2**31 - 1  # Park and Miller, Communications of the ACM 36, 1993
READING = 14
"""The dimension of the reading of slow links, which links share: behind those of three relays."""
LEAST_REGRET = 1e-9
ODD_RATE = 0.1
"""Of what is expected of a link that was not measured, in one of its draws: on the 2022 grids, with
regions left out, 0.6 to 1.4 % of links had less than a third of it, a twentieth in the median;
a relay must not be refused for one such link alone."""
MOST_SPREAD = 1e2
"""Of a logarithm: beyond what can be told apart."""


class Gain(NamedTuple):
    """The gain of one plan over another, as a ratio."""

    expected: float  # by the expected figures
    low: float  # of the draws, 90 % lie between this and the next
    high: float
    probability: float  # that it is at least the margin
    # Whether the better plan has less expected regret, at the margin and the attitude to risk
    worth: bool
    margin: float


# ---- draws ---------------------------------------------------------------------------------------


@cache
def quantiles() -> tuple[float, ...]:
    """Return the middle of each of :data:`DRAWS` equal parts of a normal distribution."""
    return tuple(NormalDist().inv_cdf((part + 0.5) / DRAWS) for part in range(DRAWS))


@cache
def _scores() -> Draws:
    """Return the normal scores of the draws, a row for each dimension."""
    found = []
    for state in _SEEDS:
        keys = []
        for _ in range(DRAWS):
            state = state * _MULTIPLIER % _MODULUS
            keys.append(state)
        found.append(np.array(quantiles())[np.argsort(np.argsort(keys))])
    return np.array(found)


def scores(dimension: int | Sequence[int]) -> Draws:
    """Return the normal scores of a dimension's draws; of several, a row for each."""
    return np.asarray(_scores()[np.remainder(dimension, len(_SEEDS))])


def spread(expected: NDArray[np.floating], bound: NDArray[np.floating]) -> Draws:
    """Return the standard deviations of factors' logarithms on the side of a bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(np.abs(np.log(bound / expected)) / BOUND_SCORE, MOST_SPREAD)
    return np.where((expected > 0) & (bound != expected) & ~np.isnan(found), found, 0.0)


def spread_of(expected: float, bound: float) -> float:
    """Return :func:`spread` of one factor."""
    ratio = bound / expected if expected > 0 else 1.0
    if ratio == 1.0 or ratio != ratio:
        return 0.0
    return min(abs(log(ratio)) / BOUND_SCORE, MOST_SPREAD) if 0 < ratio < inf else MOST_SPREAD


def of_further_vms(pairs: float, tried: int, share: float, least: float) -> tuple[float, float]:
    """Return a factor of the low bound of VM pairs' rates, and the spread that squares to it.

    Each beyond the `tried` ones adds at least a `share` of what one carries; `least` is the spread
    of that below what is expected.
    """
    if pairs <= tried:
        return 1.0, 0.0
    further = spread_of(1.0, (tried + (pairs - tried) * share) / pairs)
    return exp(BOUND_SCORE * (least - hypot(least, further))), further


def factors(
    of: Draws,
    below: NDArray[np.floating],
    above: NDArray[np.floating],
    odd: NDArray[np.bool_] | bool = False,
) -> Draws:
    """Return the draws of factors, as multiples of what is expected, along a new last axis.

    Parameters
    ----------
    of : array
        Normal scores of the draws (:func:`scores`): equal for what is shared.
    below, above : arrays
        Spreads of their logarithms, see :func:`spread`.
    odd : array of bool, optional
        Links that were not measured, and may be unlike their class: the least draw of these is at
        most :data:`ODD_RATE`. What is exact is not odd.
    """
    # Scores times :data:`MOST_SPREAD` are far from what a float can't hold.
    found = np.exp(of * np.where(of > 0, above[..., None], below[..., None]))
    if np.any(odd):
        least = (of == of.min(axis=-1, keepdims=True)) & np.asarray(odd & (below > 0))[..., None]
        found[least] = np.minimum(found[least], ODD_RATE)
    return found


@lru_cache(maxsize=16384)
def multiples(below: float, above: float, dimension: int, odd: bool = False) -> Draws:
    """Return :func:`factors` of one factor, kept: many plans share it. Not to be written to."""
    return factors(scores(dimension), np.array(below), np.array(above), odd)


@cache
def least_slow_probabilities() -> Draws:
    """Return the least probability of slow connections with which links have them, by draw."""
    return (np.argsort(np.argsort(scores(READING))) + 0.5) / DRAWS


def between(draws: Draws) -> tuple[Draws, Draws]:
    """Return the two values between which 90 % of each figure's draws lie."""
    ordered = np.sort(draws, axis=-1)
    edge = round(0.05 * DRAWS)
    return ordered[..., edge], ordered[..., -1 - edge]


# ---- the rule ------------------------------------------------------------------------------------


def worth(ratios: Draws, margin: float | Draws, risk: Risk) -> NDArray[np.bool_]:
    """Say where relaying pays: the one rule, for all questions.

    The regret of a decision is how much better the other would have been, beyond the margin; it is
    counted in logarithms, so that half and double weigh alike. A plan that is exactly at the margin
    in all draws is worth it; one that is unlikely to reach it (:data:`LEAST_PROBABILITY`) is not.

    Parameters
    ----------
    ratios : array, shape (..., draws)
        How many times better the relayed plan is in each draw.
    margin : float, or array of shape (..., 1)
    """
    over = _beyond(ratios, margin)
    reached = over >= -LEAST_REGRET
    missed = np.where(reached, over, 0.0).sum(axis=-1)
    regretted = np.where(reached, 0.0, -over).sum(axis=-1)
    likely = reached.mean(axis=-1) >= LEAST_PROBABILITY[risk]
    return np.asarray(likely & (missed >= RISK_WEIGHTS[risk] * regretted))


def compared(expected: float, ratios: Draws, margin: float, risk: Risk) -> Gain:
    """Return the gain of one plan over another, and whether it is worth it (:func:`worth`).

    Parameters
    ----------
    expected : float
        The gain by the expected figures.
    ratios : array, length draws
        The gain in each draw.
    """
    likely, (_, low, high) = probability(ratios, margin), range_of(np.array(expected), ratios)
    is_worth = bool(worth(ratios, margin, risk))
    return Gain(expected, float(low), float(high), float(likely), is_worth, margin)


def range_of(expected: Draws, ratios: Draws) -> tuple[Draws, Draws, Draws]:
    """Return expected ratios, and the ranges of 90 % of their draws, widened to enclose them."""
    low, high = between(ratios)
    return expected, np.minimum(expected, low), np.maximum(expected, high)


def probability(ratios: Draws, margin: float) -> Draws:
    """Return the share of draws in which each gain is at least the margin."""
    return np.asarray((_beyond(ratios, margin) >= -LEAST_REGRET).mean(axis=-1))


def _beyond(ratios: Draws, margin: float | Draws) -> Draws:
    """Return the logarithm of each gain over the margin's."""
    possible = np.minimum(np.maximum(ratios, exp(-MOST_SPREAD)), exp(MOST_SPREAD))
    return np.log(possible) - np.log1p(margin)
