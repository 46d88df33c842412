"""From repeated values to a low, an expected and a high one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from math import sqrt

from planner.model.estimate import Estimate, Figures, Kind, Method, Origin

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


def from_values(
    values: list[tuple[float, float]],
    noise: float,
    kind: Kind = "measured",
    method: Method = "median-of-samples",
    *,
    links: int = 1,
    figures: Figures | None = None,
) -> Estimate:
    """Return the median of (value, time) with bounds from one measurement's noise and spread.

    Parameters
    ----------
    values : list of (value, seconds since 1970)
    noise : float
        Relative error of one measurement, 90th percentile.
    kind, method, links, figures
        See :class:`planner.model.estimate.Origin`.
    """
    measured = [value for value, _ in values]
    times = [time for _, time in values]
    expected = median(measured)
    sigma = MAD_TO_SIGMA * median(abs(value - expected) for value in measured)
    spread = NORMAL_90 * sigma / expected if expected > 0 else 0.0
    error = max(LEAST_NOISE, sqrt(noise**2 / len(values) + spread**2))
    return Estimate(
        expected / (1 + error),
        expected,
        expected * (1 + error),
        Origin(kind, method, len(values), links, max(times), min(times), figures=figures),
    )


def no_surer_than(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate with bounds at least this relative error away."""
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def origin_of_many(
    method: Method, behind: Collection[Origin], figures: Figures | None = None
) -> Origin:
    """Return the origin of what was inferred from several links or VMs."""
    newest = [origin.newest_s for origin in behind if origin.newest_s is not None]
    oldest = [origin.oldest_s for origin in behind if origin.oldest_s is not None]
    addresses = {origin.address for origin in behind}
    return Origin(
        "inferred",
        method,
        sum(origin.samples for origin in behind),
        sum(origin.links for origin in behind),
        max(newest, default=None),
        min(oldest, default=None),
        None if None in addresses else addresses.pop() if len(addresses) == 1 else "both",
        figures,
    )


def inferred_from(
    estimate: Estimate, error: float, method: Method, figures: Figures | None = None
) -> Estimate:
    """Return what an estimate of something else tells, with that inference's error."""
    origin = estimate.origin._replace(kind="inferred", method=method, figures=figures)
    return replace(no_surer_than(estimate, error), origin=origin)
