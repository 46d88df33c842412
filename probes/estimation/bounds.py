"""From repeated values to a low, an expected and a high one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import sqrt

from planner.model.network import Estimate, Source

LEAST_NOISE = 0.01
NORMAL_90 = 1.645
MAD_TO_SIGMA = 1.4826


def median(values: Iterable[float]) -> float:
    """Return the median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def from_values(values: list[tuple[float, float]], noise: float, source: Source) -> Estimate:
    """Return the median of (value, time) with bounds from one measurement's noise and spread.

    Parameters
    ----------
    values : list of (value, seconds since 1970)
    noise : float
        Relative error of one measurement, 90th percentile.
    source : Source
    """
    figures = [value for value, _ in values]
    expected = median(figures)
    sigma = MAD_TO_SIGMA * median(abs(figure - expected) for figure in figures)
    spread = NORMAL_90 * sigma / expected if expected > 0 else 0.0
    error = max(LEAST_NOISE, sqrt(noise**2 / len(figures) + spread**2))
    return Estimate(
        expected / (1 + error),
        expected,
        expected * (1 + error),
        source,
        max(time for _, time in values),
        len(figures),
    )


def no_surer_than(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate with bounds at least this relative error away."""
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def inferred_from(estimate: Estimate, error: float, basis: str) -> Estimate:
    """Return what an estimate of something else tells, with that inference's error."""
    return replace(no_surer_than(estimate, error), source="inferred", samples=0, basis=basis)
