"""Comparing two uncertain plans jointly, on fixed draws: no randomness, and the same everywhere.

A figure with bounds is a factor: its logarithm is normal on either side of what is expected, and
90 % of it lies between the bounds. Plans that share a factor share its draws, so that common errors
cancel. A factor's :data:`DRAWS` draws are the quantiles of a normal distribution, each once (Latin
hypercube sampling: McKay, Beckman, Conover, *Technometrics* 21, 1979), in an order of its own. The
orders are fixed: those of a congruential generator from seeds that were chosen so that no two
dimensions, nor their squares, are correlated by more than 0.1, nor 0.28.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from math import erf, exp, inf, log, pi, sqrt
from typing import Literal, NamedTuple, TypeAlias

Risk: TypeAlias = Literal["averse", "neutral", "bold"]


RISK_WEIGHTS: dict[Risk, float] = {"averse": 5.0, "neutral": 1.0, "bold": 0.2}
"""How often the regret of having relayed in vain counts, for each time that of not having relayed.

With 5, 97 % of the relays that plans of one path recommended in November 2022, on the grid of
January, brought 1.1x; with 1, 75 % (``python -m scripts.recommendation_study``).
"""
DRAWS = 64
BOUND_SCORE = 1.6448536269514722
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
_SEEDS = (
    *(7479962, 4922125, 21456997, 39995376, 27713007, 45221916, 31347828, 42862054, 15098040),
    *(16713516, 57876478, 19825683, 26057936, 68994754, 109318302),
)
_MULTIPLIER, _MODULUS = 48271, 2**31 - 1  # Park and Miller, Communications of the ACM 36, 1993
LEAST_REGRET = 1e-9
MOST_SPREAD = 1e2
"""Of a logarithm: beyond what can be told apart."""


class Gain(NamedTuple):
    """How many times better one plan is than another.

    Attributes
    ----------
    expected : float
        By the expected figures.
    low, high : float
        Of the draws, 90 % lie between them.
    probability : float
        That it is at least the margin.
    worth : bool
        Whether the better plan has less expected regret, at the margin and the attitude to risk.
    """

    expected: float
    low: float
    high: float
    probability: float
    worth: bool


@cache
def quantiles() -> tuple[float, ...]:
    """Return the middle of each of :data:`DRAWS` equal parts of a normal distribution."""
    found = []
    for part in range(DRAWS):
        share, score = (part + 0.5) / DRAWS, 0.0
        for _ in range(60):  # Newton's method; the outermost parts need many careful steps
            before = score
            density = exp(-score * score / 2) / sqrt(2 * pi)
            step = (0.5 * (1 + erf(score / sqrt(2))) - share) / density
            score -= max(-0.5, min(0.5, step))
            if score == before:
                break
        found.append(score)
    return tuple(found)


@cache
def scores(dimension: int) -> tuple[float, ...]:
    """Return the normal scores of one dimension's draws."""
    state, keys = _SEEDS[dimension % len(_SEEDS)], []
    for _ in range(DRAWS):
        state = state * _MULTIPLIER % _MODULUS
        keys.append(state)
    ranks = {key: rank for rank, key in enumerate(sorted(keys))}
    values = quantiles()
    return tuple(values[ranks[key]] for key in keys)


@lru_cache(maxsize=16384)
def spread(expected: float, bound: float) -> float:
    """Return the standard deviation of a factor's logarithm on the side of a bound."""
    if expected <= 0 or bound == expected:
        return 0.0
    if bound <= 0:
        return MOST_SPREAD
    return min(MOST_SPREAD, abs(log(bound / expected)) / BOUND_SCORE)


def drawn_multiples(below: float, above: float, dimension: int) -> tuple[float, ...]:
    """Return a factor's draws, as multiples of what is expected of it.

    Parameters
    ----------
    below, above : float
        Spreads of its logarithm, see :func:`spread`.
    dimension : int
        Equal for what is shared, different for what is independent.
    """
    # Scores times :data:`MOST_SPREAD` are far from what a float can't hold.
    return tuple([exp(score * (above if score > 0 else below)) for score in scores(dimension)])


multiples = lru_cache(maxsize=1024)(drawn_multiples)
"""The same, kept: for factors that many plans share."""


@lru_cache(maxsize=8192)
def link_multiples(below: float, above: float, dimension: int) -> array[float]:
    """Return the same in 600 bytes, kept: for links, of which there are many."""
    return array("d", drawn_multiples(below, above, dimension))


def between(draws: Sequence[float]) -> tuple[float, float]:
    """Return between which values 90 % of draws lie."""
    ordered = sorted(draws)
    edge = round(0.05 * DRAWS)
    return ordered[edge], ordered[-1 - edge]


def compared(expected: float, ratios: Sequence[float], margin: float, risk: Risk) -> Gain:
    """Return the gain whose draws are given.

    The regret of a decision is how much better the other would have been, beyond the margin; it is
    counted in logarithms, so that half and double weigh alike. A plan that is exactly at the margin
    in all draws is worth it.

    Parameters
    ----------
    expected : float
        The gain by the expected figures.
    ratios : sequence of float
        The gain in each draw.
    margin : float
    risk : Risk
    """
    overs = _beyond(ratios, margin)
    probable, missed, regretted = 0, 0.0, 0.0
    for over in overs:
        if over >= -LEAST_REGRET:
            probable += 1
            missed += over
        else:
            regretted -= over
    return Gain(
        *range_of(expected, ratios),
        probable / len(ratios),
        missed >= RISK_WEIGHTS[risk] * regretted,
    )


def range_of(expected: float, ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return what is expected, and the range of 90 % of the draws, which encloses it."""
    low, high = between(ratios)
    return expected, min(expected, low), max(expected, high)


def probability(ratios: Sequence[float], margin: float) -> float:
    """Return in what share of the draws a gain is at least the margin."""
    if surely_below(max(ratios), margin):  # the usual cases need no logarithms
        return 0.0
    if surely_above(min(ratios), margin):
        return 1.0
    return sum([over >= -LEAST_REGRET for over in _beyond(ratios, margin)]) / len(ratios)


def surely_below(greatest: float, margin: float) -> bool:
    """Whether no gain is at least the margin, where none is above the greatest."""
    return greatest < (1 + margin) * (1 - 2 * LEAST_REGRET)


def surely_above(least: float, margin: float) -> bool:
    """Whether every gain is at least the margin, where none is below the least."""
    return 1 + margin <= least


def _beyond(ratios: Sequence[float], margin: float) -> list[float]:
    """Return the logarithm of each gain over the margin's."""
    least = log(1 + margin)
    return [
        (log(ratio) if 0 < ratio < inf else MOST_SPREAD if ratio > 0 else -MOST_SPREAD) - least
        for ratio in ratios
    ]
