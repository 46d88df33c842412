"""How much better one plan of a transfer is than another, with what they share drawn once.

Both plans of one transfer leave the source and enter the destination: they share the source's cap,
the receiver's cap and, where windows hold its links back, its window. Each link has errors of its
own, and so has each relay's VM. See :mod:`planner.solvers.joint`.
"""

from __future__ import annotations

from math import exp, inf, sqrt

from planner.model.estimate import Estimate
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, S_PER_H
from planner.solvers.joint import (
    Gain,
    compared,
    multiples,
    probability,
    quantiles,
    range_of,
    spread,
)
from planner.transfer.allocation import Allocation
from planner.transfer.options import Option, OptionEvaluator

# What a relay adds to each round trip (a userspace proxy on a loaded VM).
RELAY_PROCESSING_MS = 1.0
# Dimensions of the draws; relay number k has three of its own behind them.
SRC_CAP, DST_CAP, DST_WINDOW, DIRECT_LINK, RELAYS = range(5)


class _Limits:
    """Limits of a plan's rate, each a factor with its spread."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float, float, int, tuple[float, ...] | None]] = []

    def add(
        self,
        gbps: float,
        spreads: tuple[float, float],
        dimension: int,
        shared: tuple[float, ...] | None = None,
    ) -> None:
        """Add what is expected of a limit, its spreads, and the draws that it shares."""
        self.found.append((gbps, *spreads, dimension, shared))

    def drawn(self) -> list[float]:
        """Return the least limit in each draw."""
        most = quantiles()[-1]
        shared_least = {id(s): (min(s), max(s)) for *_, s in self.found if s}
        edges = []
        for gbps, below, above, _, shared in self.found:
            least, greatest = shared_least[id(shared)] if shared else (1.0, 1.0)
            low, high = gbps * exp(-most * below) * least, gbps * exp(most * above) * greatest
            edges.append((low, high))
        reach = min(high for _, high in edges)
        lists: list[list[float]] = []
        for (low, _), (gbps, below, above, dimension, shared) in zip(
            edges, self.found, strict=True
        ):
            if low > reach:
                continue  # never the least
            own = multiples(below, above, dimension)
            if shared:
                lists.append([gbps * a * b for a, b in zip(own, shared, strict=True)])
            else:
                lists.append([gbps * a for a in own])
        return lists[0] if len(lists) == 1 else list(map(min, *lists))


class OptionComparison:
    """Compares options of one request on one network."""

    def __init__(self, evaluator: OptionEvaluator) -> None:
        self.evaluator, self.request = evaluator, evaluator.request
        self.network: Network = evaluator.network
        self.regions = evaluator.regions
        self._rates: dict[int, tuple[Allocation, list[float]]] = {}
        self._values: dict[int, tuple[Option, list[float]]] = {}

    def gain(self, option: Option, over: Option) -> Gain:
        """Return how many times better an option is, in the objective's terms."""
        if self.request.objective == "latency":
            rtt_ms, (relay,) = self.evaluator.path_rtt_ms, option.relays
            assert not over.relays
            expected = rtt_ms(None) / (rtt_ms(relay) + RELAY_PROCESSING_MS)
        else:
            expected = _ratio(over.value_usd, option.value_usd)
        ratios = self._gains(option, over)
        return compared(expected, ratios, self.request.margin, self.request.risk)

    def probability(self, option: Option, over: Option) -> float:
        """Return how likely it is that an option is better by the margin, in the same terms."""
        return probability(self._gains(option, over), self.request.margin)

    def faster(self, option: Option, over: Option) -> tuple[float, float, float]:
        """Return how many times the throughput of another an option has, and the range of that."""
        ratios = [
            y / x for x, y in zip(self.rates_gbps(over), self.rates_gbps(option), strict=True)
        ]
        return range_of(option.allocation.rate_gbps / over.allocation.rate_gbps, ratios)

    def _gains(self, option: Option, over: Option) -> list[float]:
        if self.request.objective == "latency":
            return self._in_latency(option)
        pairs = zip(self._drawn_values(over), self._drawn_values(option), strict=True)
        return [worse / better if better > 0 else _ratio(worse, better) for worse, better in pairs]

    def _drawn_values(self, option: Option) -> list[float]:
        """Return an option's value at its rate in each draw."""
        if id(option) not in self._values:
            fixed, per_rate = self._value(option)
            values = [fixed + per_rate / gbps for gbps in self.rates_gbps(option)]
            self._values[id(option)] = option, values
        return self._values[id(option)][1]

    def rates_gbps(self, option: Option) -> list[float]:
        """Return the rate of an option's VMs and path shares in each draw."""
        allocation = option.allocation
        if id(allocation) not in self._rates:
            self._rates[id(allocation)] = allocation, self._limits(allocation).drawn()
        return self._rates[id(allocation)][1]

    def _value(self, option: Option) -> tuple[float, float]:
        """Return what an option's value is whatever its rate, and what it adds over its rate."""
        request, allocation = self.request, option.allocation
        if request.hour_usd == inf:
            return option.ramp_up_s, BITS_PER_BYTE * request.volume_gb
        start_h, gbps_h = request.vm_start_s / S_PER_H, self.evaluator.gbps_h
        vm_usd_per_h = allocation.vm_usd / (gbps_h / allocation.rate_gbps + start_h)
        fixed = allocation.egress_usd + vm_usd_per_h * start_h
        fixed += request.hour_usd * option.ramp_up_s / S_PER_H
        return fixed, (vm_usd_per_h + request.hour_usd) * gbps_h

    def _limits(self, allocation: Allocation) -> _Limits:
        """Return what limits an allocation's rate when all its flows grow in proportion."""
        src, dst = self.request.src, self.request.dst
        src_vms, dst_vms, rate = allocation.src_vms, allocation.dst_vms, allocation.rate_gbps
        limits = _Limits()
        sends, receives = self.evaluator.under_caps(allocation)
        for flows, vms, dimension in ((sends, src_vms, SRC_CAP), (receives, dst_vms, DST_CAP)):
            for cap, flow in flows:
                limits.add(cap.expected * vms * rate / flow, _spreads(cap), dimension)
        if flow := allocation.direct_gbps:
            self._add_link(limits, src, dst, min(src_vms, dst_vms) * rate / flow, DIRECT_LINK)
        for number, (region, flow) in enumerate(sorted(allocation.relay_gbps.items())):
            via, vms = self.regions[region], allocation.relay_vms[region]
            own = RELAYS + 3 * number
            self._add_link(limits, src, via, min(src_vms, vms) * rate / flow, own)
            self._add_link(limits, via, dst, min(vms, dst_vms) * rate / flow, own + 1)
            site, links = self.network.sites[via], self.network.links
            caps = site.ingress(links[src][via].address), site.egress(links[via][dst].address)
            cap = min(caps, key=lambda cap: cap.expected)
            limits.add(cap.expected * vms * rate / flow, _spreads(cap), own + 2)
        return limits

    def _add_link(self, limits: _Limits, src: str, dst: str, pairs: float, dimension: int) -> None:
        """Add what a link carries; an inferred window of the destination is shared."""
        link, count = self.network.link(src, dst), self.request.connections
        gbps, low, high = (link.rate_gbps(count, b) for b in ("expected", "low", "high"))
        below, above = spread(gbps, low), spread(gbps, high)
        shared = None
        flow = link.per_flow_mbps
        by_window = flow.origin.method == "window-over-rtt"
        if dst == self.request.dst and by_window and count * flow.expected <= gbps * MBPS_PER_GBPS:
            window = _spreads(self.network.sites[dst].window_mb)
            shared_below, shared_above = min(below, window[0]), min(above, window[1])
            shared = multiples(shared_below, shared_above, DST_WINDOW)
            below = sqrt(below**2 - shared_below**2)
            above = sqrt(above**2 - shared_above**2)
        limits.add(gbps * pairs, (below, above), dimension, shared)

    def _in_latency(self, option: Option) -> list[float]:
        (relay,) = option.relays
        src, via, dst = self.request.src, self.regions[relay], self.request.dst
        direct = self._rtts_ms(src, dst, DIRECT_LINK)
        links = self._rtts_ms(src, via, RELAYS), self._rtts_ms(via, dst, RELAYS + 1)
        return [
            x / (first + second + RELAY_PROCESSING_MS)
            for x, first, second in zip(direct, *links, strict=True)
        ]

    def _rtts_ms(self, src: str, dst: str, dimension: int) -> list[float]:
        rtt_ms = self.network.link(src, dst).rtt_ms
        return [rtt_ms.expected * one for one in multiples(*_spreads(rtt_ms), dimension)]


def _spreads(estimate: Estimate) -> tuple[float, float]:
    expected = estimate.expected
    return spread(expected, estimate.low), spread(expected, estimate.high)


def _ratio(over: float, of: float) -> float:
    """Return how many times less one value costs; 1 where both cost nothing."""
    if of > 0:
        return over / of
    return inf if over > 0 else 1.0
