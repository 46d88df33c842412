"""What one candidate gives and costs: one VM, and one in each of the regions of the use."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from planner.comparison.request import ComparisonRequest
from planner.model.answer import Cost
from planner.model.errors import DataError
from planner.model.estimate import Kind
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, Row
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.shared_vms.drawn_times import DrawnTimes, drawn_links
from planner.shared_vms.fees import LinkFees
from planner.shared_vms.rates import resources_at_bounds

_SURENESS: tuple[Kind, ...] = ("measured", "inferred", "baseline")


@dataclass(frozen=True)
class EvaluatedCandidate:
    """A candidate, evaluated; see :class:`planner.comparison.plan.Ranked`.

    Attributes
    ----------
    value : float
        What the objective goes by, expected: the least is the best.
    drawn : array, length draws, or None
        The same in each draw of what is not known; None where it is about the bounds.
    """

    region: str
    vm_type: str
    duration_s: float
    duration_s_low: float
    duration_s_high: float
    throughput_gbps: float
    cost: Cost
    gb_per_usd: float | None
    rtt_ms: float
    worst_rtt_ms: float
    limit: str
    source: Kind
    value: float
    drawn: Floats | None


def evaluated(
    request: ComparisonRequest, network: Network, prices: Prices, region: str
) -> EvaluatedCandidate | None:
    """Evaluate one candidate; volumes of its own region need not be sent.

    None where a link or its price is not known, or where there is nothing to send.
    """
    regions = (region, *(other for other in request.regions if other != region))
    ends = [(0, at) if request.direction == "to" else (at, 0) for at in range(1, len(regions))]
    links: dict[tuple[int, int], Link] = {}
    fees = LinkFees(prices, regions)
    try:
        for src, dst in ends:
            links[src, dst] = network.link(regions[src], regions[dst])
            fees.add(src, dst)
    except DataError:
        return None
    if not links or min(link.rate_gbps(request.connections) for link in links.values()) <= 0:
        return None
    vms, nobody = np.ones(len(regions)), np.zeros(len(regions), dtype=bool)
    at = resources_at_bounds(network, regions, links, vms, nobody, request.connections)
    expected, low, high = at["expected"], at["low"], at["high"]
    gbit = np.zeros((len(regions), len(regions)))
    gbit[tuple(np.transpose(ends))] = request.volume_gb * BITS_PER_BYTE
    drawn_times = DrawnTimes(network, regions, expected, low, high, request.connections)
    time_s = expected.time_s(gbit)
    fast_s, slow_s = expected.bounds_s(gbit, vms, low, high)
    ramp_s = max(ramp_up_s(link.rtt_ms.expected) for link in links.values())
    egress_usd = fees.usd(gbit)
    vm_usd_per_h = sum(prices.vm_usd_per_h(one) for one in regions)

    def cost(duration_s: float) -> Cost:
        return Cost.of(egress_usd, vm_usd_per_h * (duration_s + request.vm_start_s) / S_PER_H)

    def worth(duration_s: float) -> float:
        if request.hour_usd == inf:
            return duration_s
        return cost(duration_s).total + request.hour_usd * duration_s / S_PER_H

    duration_s, slowest_s = time_s + ramp_s, max(slow_s, time_s) + ramp_s
    rtts = [link.rtt_ms for link in links.values()]
    rtt_ms = float(np.mean([rtt.expected for rtt in rtts]))
    value, drawn = worth(duration_s), None
    if request.objective == "stability":
        value = slowest_s / duration_s
    elif request.objective == "latency":
        value = rtt_ms
        factors = drawn_links([(regions[src], regions[dst]) for src, dst in ends], rtts)
        drawn = (factors * [rtt.expected for rtt in rtts]).mean(axis=1)
    else:
        drawn = np.array([worth(s + ramp_s) for s in drawn_times.times_s(gbit, vms).tolist()])
    moved_gb, usual = request.volume_gb * len(links), cost(duration_s)
    return EvaluatedCandidate(
        region,
        network.sites[region].vm_type,
        duration_s,
        min(fast_s, time_s) + ramp_s,
        slowest_s,
        moved_gb * BITS_PER_BYTE / time_s,
        usual,
        moved_gb / usual.total if usual.total else None,
        rtt_ms,
        max(rtt.expected for rtt in rtts),
        _limit(expected.row(int(expected.loads(gbit).argmax())), regions),
        max((link.aggregate_gbps.source for link in links.values()), key=_SURENESS.index),
        value,
        drawn,
    )


def _limit(row: Row, regions: tuple[str, ...]) -> str:
    if row.link:
        return f"path {regions[row.link[0]]} -> {regions[row.link[1]]}"
    return f"{row.kind} at {regions[row.site]}"
