"""Errors of estimates: each new sample against the snapshot before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.model.estimate import Estimate
from planner.model.link import Link
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from relayd.store.samples.newest import NewSample


class EstimateError(NamedTuple):
    """The error of one estimate.

    Attributes
    ----------
    metric, source : str
        Of the figure, and the source of its estimate: measured, inferred or baseline.
    ratio : float
        |measured - estimated| over the estimate.
    """

    metric: str
    source: str
    ratio: float


def estimate_errors(network: Network, samples: Iterable[NewSample]) -> Iterator[EstimateError]:
    """Yield how far a network's estimates are from samples that it does not know yet.

    Throughput that was measured with few connections is compared with what the link is expected
    to reach with as many, ``min(k f, A)``.
    """
    for sample in samples:
        link = network.links.get(sample.src, {}).get(sample.dst)
        if link is None:
            continue
        estimate, expected = _expected(link, sample)
        if expected > 0:
            ratio = abs(sample.value - expected) / expected
            yield EstimateError(sample.metric, estimate.source, ratio)


def _expected(link: Link, sample: NewSample) -> tuple[Estimate, float]:
    if sample.metric == "rtt_ms":
        return link.rtt_ms, link.rtt_ms.expected
    if sample.metric == "per_flow_mbps":
        return link.per_flow_mbps, link.per_flow_mbps.expected
    saturated = link.aggregate_gbps
    if not sample.connections:
        return saturated, saturated.expected * MBPS_PER_GBPS
    rate_gbps = link.rate_gbps(sample.connections)
    limit = saturated if rate_gbps == saturated.expected else link.per_flow_mbps
    return limit, rate_gbps * MBPS_PER_GBPS
