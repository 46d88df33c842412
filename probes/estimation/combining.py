"""Tests of links combined with what is believed of links of their class: one source of formulas.

All figures are logarithms, of one link or of arrays of them; estimates and replays of history use
the same functions. A class has a law with a spread (:mod:`planner.model.throughput`), both learned
from the links of the class that were measured: the fewer these are, the more of ours.

A link's level lies about the law as its class is spread, and tests lie about the level as they
repeat; both weigh by their precision (a normal model's posterior). Where tests are far outside of
the class's spread, either the link is unlike its class or the test went wrong. One short test from
a cold start goes wrong now and then (on the 2022 grid, one in a hundred from AWS to Google Cloud
found a twentieth of the rate): alone it moves the bounds, and asks to be repeated. Several tests
that agree, or one of a steady rate, are believed wholly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.throughput import FAR, UNKNOWN_NOISE, LawSpread, spread_of
from probes.estimation.groups import NORMAL_90

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LAW_COUNTS_AS = 3
"""Links, in the median of a class: a few odd ones do not move it."""
NOISE_COUNTS_AS = 5
"""Tests, in the noise of a link's tests."""
LEAST_LINKS = 3
"""A class of distance with fewer is shifted by the other classes, too, and has our spread."""
LEAST_NOISE = 0.01
LEAST_RATIO = 1e-3
SHORT_S = 10.0
"""A test from a cold start that is no longer than this may go wrong."""


class ClassLaw(NamedTuple):
    """How links of a class lie about their law.

    Attributes
    ----------
    shift : float
        Median of what was measured over the law.
    spread : LawSpread
    """

    shift: float
    spread: LawSpread


def class_law(
    own: Floats | Sequence[float], others: Floats | Sequence[float], ours: LawSpread
) -> ClassLaw:
    """Return how links of a class lie about their law.

    Parameters
    ----------
    own, others : arrays or sequences of float
        Logarithms of measured over law: of links of the class, and of the same providers in other
        classes of distance.
    ours : LawSpread
        Of the class on the 2022 grid.
    """
    ratios = np.asarray(own, np.float64)
    if len(ratios) < LEAST_LINKS:
        return ClassLaw(_median_with_law(np.append(ratios, others)), ours)
    shift = _median_with_law(ratios)
    widest = FAR * max(ours)
    errors = np.sort(np.clip(ratios - shift, -widest, widest))
    return ClassLaw(shift, spread_of(errors.tolist(), ours))


def _median_with_law(ratios: Floats) -> float:
    """Return the median of some links and the law itself, between two the nearer to the law."""
    ordered = np.sort(np.append(ratios, [0.0] * LAW_COUNTS_AS))
    below, above = ordered[(len(ordered) - 1) // 2].item(), ordered[len(ordered) // 2].item()
    return float(min(max(0.0, below), above))


class Tests(NamedTuple):
    """Repeated tests of links, as arrays.

    Attributes
    ----------
    level : array
        Logarithm of their median; minus infinity where nothing got through.
    noise : array
        How far one test lies from the level: 90 % of them within it.
    repeats : array of int
        How many there are.
    lone : array of bool
        Whether there is one alone, and it is short and from a cold start.
    """

    level: Floats
    noise: Floats
    repeats: NDArray[np.int64]
    lone: NDArray[np.bool_]


def tests_of(
    medians: Floats,
    deviations: Floats,
    repeats: NDArray[np.int64],
    lone: NDArray[np.bool_],
    noise: Floats,
) -> Tests:
    """Return what repeated tests say of their links.

    Parameters
    ----------
    medians, deviations : arrays
        Median, and the standard deviation about it by the median of absolute deviations.
    repeats, lone : arrays
    noise : array
        Of one test in the link's class, which counts as :data:`NOISE_COUNTS_AS` tests.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.where(medians > 0, NORMAL_90 * deviations / medians, 0.0)
        squares = (NOISE_COUNTS_AS * noise**2 + repeats * seen**2) / (NOISE_COUNTS_AS + repeats)
        return Tests(np.log(medians), np.maximum(LEAST_NOISE, np.sqrt(squares)), repeats, lone)


class Posterior(NamedTuple):
    """What is believed of links, as arrays.

    Attributes
    ----------
    expected, below, above : array
        And how far the 5th and the 95th percentile of later tests are from it.
    doubted : array of bool
        Whether the only test contradicts the law so much that it is to be repeated.
    """

    expected: Floats
    below: Floats
    above: Floats
    doubted: NDArray[np.bool_]


def combined(tests: Tests, expected: Floats, below: Floats, above: Floats) -> Posterior:
    """Return what tests and the law of their class say together.

    Parameters
    ----------
    tests : Tests
    expected, below, above : arrays
        By the law, and how far the 5th and the 95th percentile of links are from it.
    """
    level, noise = tests.level, tests.noise
    lower = level < expected - 1e-9  # whatever the last digit, the median link is not below itself
    spread = np.maximum(np.where(lower, below, above), noise)
    far = np.abs(level - expected) > FAR * spread
    # The spread over links holds the noise of one test.
    of_level = np.maximum(spread**2 - noise**2, spread**2 / 4)
    of_median = noise**2 / np.maximum(tests.repeats, 1)
    weight = np.where(far, 1.0, of_level / (of_level + of_median))
    # Of a link unlike its class, the class's noise says little.
    unlike = np.where(far, UNKNOWN_NOISE**2 / np.maximum(tests.repeats, 1), 0.0)
    error = np.sqrt(weight * of_median + noise**2 + unlike)
    doubted = far & tests.lone
    with np.errstate(invalid="ignore"):
        away = np.abs(level - expected) + noise
        believed = np.where(weight == 1.0, level, expected + weight * (level - expected))
    return Posterior(
        np.where(doubted, expected, believed),
        np.where(doubted, np.where(lower, np.maximum(below, away), below), error),
        np.where(doubted, np.where(lower, above, np.maximum(above, away)), error),
        doubted,
    )
