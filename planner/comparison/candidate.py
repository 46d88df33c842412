"""What one candidate gives and costs: one VM, and one in each of the regions of the use."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from planner.comparison.plan import Ranked
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
from planner.shared_vms.problem import resources_at_bounds

_SURENESS: tuple[Kind, ...] = ("measured", "inferred", "baseline")


class EvaluatedCandidate(NamedTuple):
    """A candidate, evaluated.

    Attributes
    ----------
    ranked : Ranked
        As the answer has it, but for its rank.
    value : float
        What the objective goes by, expected: the least is the best.
    drawn : array, length draws, or None
        The same in each draw of what is not known; None where it is about the bounds.
    """

    ranked: Ranked
    value: float
    drawn: Floats | None


class _Star:
    """The links between a candidate and the regions of the use, with what they carry.

    Raises
    ------
    DataError
        If a link or its price is not known.
    """

    def __init__(
        self, request: ComparisonRequest, network: Network, prices: Prices, region: str
    ) -> None:
        self.request, self.network = request, network
        self.regions = (region, *(other for other in request.regions if other != region))
        n, towards = len(self.regions), request.direction == "to"
        self.ends = [(0, at) if towards else (at, 0) for at in range(1, n)]
        self.links: dict[tuple[int, int], Link] = {}
        fees = LinkFees(prices, self.regions)
        for src, dst in self.ends:
            self.links[src, dst] = network.link(self.regions[src], self.regions[dst])
            fees.add(src, dst)
        self.gbit = np.zeros((n, n))
        for pair in self.ends:
            self.gbit[pair] = request.volume_gb * BITS_PER_BYTE
        self.egress_usd = fees.usd(self.gbit) if self.links else 0.0
        self.vm_usd_per_h = sum(map(prices.vm_usd_per_h, self.regions))

    @property
    def carries(self) -> bool:
        """Whether there is something to send, and all links carry it."""
        count = self.request.connections
        return min((link.rate_gbps(count) for link in self.links.values()), default=0.0) > 0

    def cost(self, duration_s: float) -> Cost:
        """Return the cost of a duration: fees, and a VM in each region."""
        hours = (duration_s + self.request.vm_start_s) / S_PER_H
        return Cost.of(self.egress_usd, self.vm_usd_per_h * hours)

    def worth(self, duration_s: float) -> float:
        """Return cost plus time in USD; the duration itself where time alone counts."""
        if self.request.hour_usd == inf:
            return duration_s
        return self.cost(duration_s).total + self.request.hour_usd * duration_s / S_PER_H

    def rtts_ms(self) -> tuple[Floats, Floats]:
        """Return the round-trip times that are expected, and those in each draw by link."""
        rtts = [link.rtt_ms for link in self.links.values()]
        expected_ms = np.array([rtt.expected for rtt in rtts])
        names = [(self.regions[src], self.regions[dst]) for src, dst in self.ends]
        return expected_ms, drawn_links(names, rtts) * expected_ms


def evaluated(
    request: ComparisonRequest, network: Network, prices: Prices, region: str
) -> EvaluatedCandidate | None:
    """Evaluate one candidate; volumes of its own region need not be sent.

    None where a link or its price is not known, or where there is nothing to send.
    """
    try:
        star = _Star(request, network, prices, region)
    except DataError:
        return None
    if not star.carries:
        return None
    regions, gbit, vms = star.regions, star.gbit, np.ones(len(star.regions))
    nobody = np.zeros(len(regions), dtype=bool)
    at = resources_at_bounds(network, regions, star.links, vms, nobody, request.connections)
    expected, low, high = at["expected"], at["low"], at["high"]
    time_s = expected.time_s(gbit)
    fast_s, slow_s = expected.bounds_s(gbit, vms, low, high)
    rtts_ms, drawn_rtts_ms = star.rtts_ms()
    ramp_s = ramp_up_s(float(rtts_ms.max()))
    duration_s, slowest_s = time_s + ramp_s, max(slow_s, time_s) + ramp_s
    value, drawn = star.worth(duration_s), None
    if request.objective == "stability":
        value = slowest_s / duration_s
    elif request.objective == "latency":
        value, drawn = float(rtts_ms.mean()), drawn_rtts_ms.mean(axis=1)
    else:
        times = DrawnTimes(network, regions, expected, low, high, request.connections)
        drawn = np.array([star.worth(s + ramp_s) for s in times.times_s(gbit, vms).tolist()])
    moved_gb, cost = request.volume_gb * len(star.links), star.cost(duration_s)
    ranked = Ranked(
        0,
        region,
        network.sites[region].vm_type,
        duration_s,
        min(fast_s, time_s) + ramp_s,
        slowest_s,
        moved_gb * BITS_PER_BYTE / time_s,
        cost,
        moved_gb / cost.total if cost.total else None,
        float(rtts_ms.mean()),
        float(rtts_ms.max()),
        _limit(expected.row(int(expected.loads(gbit).argmax())), regions),
        max((link.aggregate_gbps.source for link in star.links.values()), key=_SURENESS.index),
        None,
        None,
        None,
    )
    return EvaluatedCandidate(ranked, value, drawn)


def _limit(row: Row, regions: tuple[str, ...]) -> str:
    if row.link:
        return f"path {regions[row.link[0]]} -> {regions[row.link[1]]}"
    return f"{row.kind} at {regions[row.site]}"
