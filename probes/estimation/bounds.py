"""Estimates from repeated values: low, expected, high, and their origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import TypeAlias

from planner.model.estimate import Addresses, Estimate, Figures, Kind, Method, Origin
from probes.medians import median
from probes.samples import Sample

Value: TypeAlias = tuple[float, Sample]
"""What a sample says of a quantity, after corrections."""
LEAST_NOISE = 0.01
NORMAL_90 = 1.645
MAD_TO_SIGMA = 1.4826


def bounds_of(values: Sequence[float], noise: float) -> tuple[float, float, float]:
    """Return the median of values with bounds from one measurement's noise and their spread.

    Parameters
    ----------
    values : sequence of float
        At least one.
    noise : float
        Relative error of one measurement, 90th percentile.
    """
    expected = median(values)
    if len(values) == 1:
        error = max(LEAST_NOISE, noise)
        return expected / (1 + error), expected, expected * (1 + error)
    sigma = MAD_TO_SIGMA * median(abs(value - expected) for value in values)
    spread = NORMAL_90 * sigma / expected if expected > 0 else 0.0
    error = max(LEAST_NOISE, sqrt(noise**2 / len(values) + spread**2))
    return expected / (1 + error), expected, expected * (1 + error)


def from_values(
    values: Sequence[Value],
    noise: float,
    kind: Kind = "measured",
    method: Method = "median-of-samples",
    figures: Figures | None = None,
) -> Estimate:
    """Return the median of what samples say, with bounds.

    Parameters
    ----------
    values : sequence of (value, Sample)
    noise : float
        See :func:`bounds_of`.
    kind, method, figures
        See :class:`planner.model.estimate.Origin`.
    """
    low, expected, high = bounds_of([value for value, _ in values], noise)
    origin = origin_of_samples([sample for _, sample in values], kind, method, figures)
    return Estimate(low, expected, high, origin)


def origin_of_samples(
    samples: Sequence[Sample], kind: Kind, method: Method, figures: Figures | None = None
) -> Origin:
    """Return the origin of what was made from samples."""
    if len(samples) == 1:
        (only,) = samples
        at_s = only.measured_at_s
        return Origin(kind, method, 1, 1, at_s, at_s, only.address, figures)
    times = [sample.measured_at_s for sample in samples]
    return Origin(
        kind,
        method,
        len(samples),
        len({(sample.src, sample.dst) for sample in samples}),
        max(times),
        min(times),
        _joined({sample.address for sample in samples}),
        figures,
    )


def no_surer_than(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate with bounds at least this relative error away."""
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def _joined(found: set[Addresses | None]) -> Addresses | None:
    if None in found:
        return None
    return found.pop() if len(found) == 1 else "both"
