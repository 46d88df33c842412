"""Errors of estimates: each new sample against the snapshot before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from planner.model.estimate import Bound, Estimate
from planner.model.link import Link
from planner.model.units import MBPS_PER_GBPS
from probes.samples import Sample

_BOUNDS: tuple[Bound, ...] = ("low", "expected", "high")


class EstimateError(NamedTuple):
    """The error of one estimate.

    Attributes
    ----------
    metric, source : str
        Of the figure, and the source of its estimate: measured, inferred or baseline.
    ratio : float
        |measured - estimated| over the estimate.
    inside : bool
        Whether the sample lies between the bounds of the estimate.
    """

    metric: str
    source: str
    ratio: float
    inside: bool


def estimate_errors(
    links: Mapping[str, Mapping[str, Link]], samples: Iterable[Sample]
) -> Iterator[EstimateError]:
    """Yield how far estimates are from samples that they do not rest on.

    Throughput that was measured with few connections is compared with what the link is expected
    to reach with as many, ``min(k f, A)``.

    Parameters
    ----------
    links : mapping
        Source to destination to link.
    samples : iterable of Sample
    """
    for sample in samples:
        link = links.get(sample.src, {}).get(sample.dst)
        if link is None:
            continue
        estimate, (low, expected, high) = _expected(link, sample)
        if expected > 0:
            ratio = abs(sample.value - expected) / expected
            inside = low <= sample.value <= high
            yield EstimateError(sample.metric, estimate.source, ratio, inside)


def _expected(link: Link, sample: Sample) -> tuple[Estimate, tuple[float, ...]]:
    """Return the estimate that a sample tests, and what it lets expect, with bounds."""
    if sample.metric == "rtt_ms":
        return link.rtt_ms, _bounds(link.rtt_ms)
    if sample.metric == "per_flow_mbps":
        return link.per_flow_mbps, _bounds(link.per_flow_mbps)
    saturated = link.aggregate_gbps
    if not sample.connections:
        return saturated, tuple(MBPS_PER_GBPS * value for value in _bounds(saturated))
    rates_gbps = [link.rate_gbps(sample.connections, bound) for bound in _BOUNDS]
    limit = saturated if rates_gbps[1] == saturated.expected else link.per_flow_mbps
    return limit, tuple(MBPS_PER_GBPS * rate for rate in rates_gbps)


def _bounds(estimate: Estimate) -> tuple[float, ...]:
    return estimate.low, estimate.expected, estimate.high
