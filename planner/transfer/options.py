"""Ways to carry out one transfer, and what each means: time, value, and bounds of both.

:meth:`OptionEvaluator.gain` compares two with what they share drawn once. Both leave the source and
enter the destination: they share the source's cap, the receiver's cap and, where windows hold its
links back, its window. Each link has errors of its own, and so has each relay's VM. See
:mod:`planner.solvers.joint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from planner.model.answer import Cost
from planner.model.estimate import BOUNDS, Bound, Estimate
from planner.model.network import Network
from planner.model.pricing import Pair, Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, S_PER_H, duration_s
from planner.solvers.joint import Draws, Gain, compared, multiples, probability, range_of, spread_of
from planner.transfer.allocation import Allocation
from planner.transfer.fees import MeteredFees
from planner.transfer.request import TransferRequest

MARGINAL = 1e-6
# What a relay adds to each round trip (a userspace proxy on a loaded VM).
RELAY_PROCESSING_MS = 1.0
# Dimensions of the draws; relay number k has three of its own behind them.
SRC_CAP, DST_CAP, DST_WINDOW, DIRECT_LINK, RELAYS = range(5)
Rates: TypeAlias = tuple[float, float]
"""Rates of one VM pair with all its connections, and with one of them, Gbit/s."""
Spreads: TypeAlias = tuple[float, float]
"""Of a factor's logarithm, below and above what is expected."""
EXACT: Spreads = (0.0, 0.0)


def spreads_of(estimate: Estimate) -> Spreads:
    """Return the spreads of an estimate."""
    expected = estimate.expected
    return spread_of(expected, estimate.low), spread_of(expected, estimate.high)


class LinkFigures(NamedTuple):
    """Figures of one link with some number of connections.

    Attributes
    ----------
    rates : mapping of Bound to Rates
    alone : Spreads
        Of what one VM pair reaches.
    own, window : Spreads
        The same where the link enters the destination, whose window may hold it back: what is
        the link's own, and what all links into the destination share.
    """

    rates: Mapping[Bound, Rates]
    alone: Spreads
    own: Spreads
    window: Spreads


@dataclass(slots=True)  # not frozen, as allocations are not
class Option:
    """An allocation with what it means for the request; not changed once made.

    Attributes
    ----------
    ramp_up_s : float
        Time to get up to speed on the slowest of its paths, 8.5 round trips a link.
    value_usd : float
        Cost plus duration at the request's value of time; the duration itself if that is
        infinite.
    """

    allocation: Allocation
    ramp_up_s: float
    duration_s: float
    value_usd: float

    @property
    def relays(self) -> tuple[int, ...]:
        """Positions of the relays that it uses."""
        return tuple(sorted(self.allocation.relay_gbps))

    @property
    def vms(self) -> tuple[int, ...]:
        """VMs at the source, at the destination and at each relay."""
        allocation = self.allocation
        return (allocation.src_vms, allocation.dst_vms, *allocation.relay_vms.values())

    @property
    def cost(self) -> Cost:
        """Its cost, as answers state it."""
        return Cost.of(self.allocation.egress_usd, self.allocation.vm_usd)

    @property
    def is_one_relay(self) -> bool:
        """Return whether everything goes through a single relay."""
        return len(self.allocation.relay_gbps) == 1 and not self.allocation.direct_gbps


class Limit(NamedTuple):
    """The limit that one resource sets to an allocation.

    Attributes
    ----------
    dimension : int
        Of its draws: equal for what plans share, see :mod:`planner.solvers.joint`.
    gbps : mapping of Bound to float
    spreads, window : Spreads
        Of its draws: its own, and those of the destination's window, which all links share.
    """

    dimension: int
    gbps: Mapping[Bound, float]
    spreads: Spreads
    window: Spreads = EXACT


class OptionEvaluator:
    """Turns allocations for one request on one network into options, and compares these."""

    def __init__(self, request: TransferRequest, network: Network, prices: Prices) -> None:
        self.request = request
        self.network = network
        self.prices = prices
        self.gbps_h = BITS_PER_BYTE * request.volume_gb / S_PER_H  # the duration at 1 Gbit/s
        self.fees = MeteredFees(request.volume_gb, prices, self.pairs_of)
        self.regions = list(network.sites)
        self._links: dict[Pair, LinkFigures] = {}
        self._limits: dict[int, tuple[Allocation, list[Limit]]] = {}
        self._rtt_ms: dict[int | None, float] = {}
        self._rates: dict[int, tuple[Allocation, Draws]] = {}

    def option(self, allocation: Allocation, hour_usd: float) -> Option:
        """Return an allocation's duration, and its value where an hour is worth so much."""
        ramp_s = self.path_ramp_up_s(None) if allocation.direct_gbps else 0.0
        for relay in allocation.relay_gbps:
            ramp_s = max(ramp_s, self.path_ramp_up_s(relay))
        time_s = duration_s(self.request.volume_gb, allocation.rate_gbps) + ramp_s
        value = time_s
        if hour_usd < inf:
            value = allocation.cost_usd + hour_usd * time_s / S_PER_H
        return Option(allocation, ramp_s, time_s, value)

    def vms(self, allocation: Allocation) -> dict[str, int]:
        """Return an allocation's VMs by region, from the source to the destination."""
        counts = {self.request.src: allocation.src_vms}
        for relay, count in sorted(allocation.relay_vms.items()):
            counts[self.regions[relay]] = count
        counts[self.request.dst] = allocation.dst_vms
        return counts

    def path_rtt_ms(self, relay: int | None) -> float:
        """Return the round-trip time of a path: the sum of its links'."""
        if relay not in self._rtt_ms:
            links = [self.network.link(*pair) for pair in self.pairs_of(relay)]
            self._rtt_ms[relay] = float(sum(link.rtt_ms.expected for link in links))
        return self._rtt_ms[relay]

    @cached_property
    def relay_rtts_ms(self) -> list[float]:
        """The round-trip time through each region; infinity where a link is missing."""
        links, index = self.network.links, self.network.index
        out, into = links.row(index[self.request.src]), links.column(index[self.request.dst])
        both = out["rtt_ms"]["expected"] + into["rtt_ms"]["expected"]
        both[(out["address"] == 0) | (into["address"] == 0)] = inf
        found: list[float] = both.tolist()
        return found

    def path_ramp_up_s(self, relay: int | None) -> float:
        """Return the time that a path takes to get up to speed."""
        return ramp_up_s(self.path_rtt_ms(relay))

    def _under_caps(self, allocation: Allocation) -> tuple[list[CappedFlow], list[CappedFlow]]:
        """Return the caps of a VM with the flows that count against them, at both ends.

        One cap holds all, unless links over private addresses are in use, whose cap is higher: that
        of public addresses then holds what is sent over these.
        """
        src, dst = self.request.src, self.request.dst
        sites = self.network.sites
        if not self.network.has_private_links:
            gbps = sum([*allocation.relay_gbps.values(), allocation.direct_gbps])
            return [(sites[src].egress_gbps, gbps)], [(sites[dst].ingress_gbps, gbps)]
        links = self.network.links
        flows = [(self.regions[relay], gbps) for relay, gbps in allocation.relay_gbps.items()]
        out, into = list(flows), list(flows)
        if allocation.direct_gbps:
            out.append((dst, allocation.direct_gbps))
            into.append((src, allocation.direct_gbps))
        return (
            _under_caps([(sites[src].egress(links[src][to].address), x) for to, x in out]),
            _under_caps([(sites[dst].ingress(links[by][dst].address), x) for by, x in into]),
        )

    # ---- links -------------------------------------------------------------------------------

    def pairs_of(self, relay: int | None) -> list[tuple[str, str]]:
        """Return the links of a path: direct, or through the relay at a position."""
        between = [] if relay is None else [self.regions[relay]]
        return list(pairwise([self.request.src, *between, self.request.dst]))

    def binding(self, src: str, dst: str) -> tuple[float, str]:
        """Return the limit of one VM pair on a link: its figure and its name."""
        link = self.network.link(src, dst)
        flows_gbps = self.request.connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        return min(
            # An aggregate that the caps made is a matter of caps.
            (self.network.sites[src].egress(link.address).expected, "egress cap"),
            (self.network.sites[dst].ingress(link.address).expected, "ingress cap"),
            (link.aggregate_gbps.expected * (1 + MARGINAL), "path"),
            (flows_gbps * (1 + 2 * MARGINAL), "connections"),
        )

    def deciding(self, src: str, dst: str) -> Estimate:
        """Return the estimate of a link that its rate rests on."""
        link = self.network.link(src, dst)
        flows = self.request.connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        return link.per_flow_mbps if flows < link.aggregate_gbps.expected else link.aggregate_gbps

    # ---- bounds ------------------------------------------------------------------------------

    def link(self, src: str, dst: str) -> LinkFigures:
        """Return the figures of a link with the request's connections; 0 where it is unknown."""
        if (src, dst) not in self._links:
            self._links[src, dst] = self._link_figures(src, dst)
        return self._links[src, dst]

    def _link_figures(self, src: str, dst: str) -> LinkFigures:
        link, count = self.network.links.get(src, {}).get(dst), self.request.connections
        if link is None:
            return LinkFigures(dict.fromkeys(BOUNDS, (0.0, 0.0)), EXACT, EXACT, EXACT)
        rates = {b: (link.rate_gbps(count, b), link.rate_gbps(1, b)) for b in BOUNDS}
        gbps = rates["expected"][0]
        below, above = spread_of(gbps, rates["low"][0]), spread_of(gbps, rates["high"][0])
        own, window = (below, above), EXACT
        flow = link.per_flow_mbps
        by_window = flow.origin.method == "window-over-rtt"
        if by_window and count * flow.expected <= gbps * MBPS_PER_GBPS:
            of_receiver = spreads_of(self.network.sites[dst].window_mb)
            window = min(below, of_receiver[0]), min(above, of_receiver[1])
            own = sqrt(below**2 - window[0] ** 2), sqrt(above**2 - window[1] ** 2)
        return LinkFigures(rates, (below, above), own, window)

    def limits(self, allocation: Allocation) -> list[Limit]:
        """Return the limits of an allocation's rate when all its flows grow in proportion."""
        if id(allocation) not in self._limits:
            self._limits[id(allocation)] = allocation, self._limits_of(allocation)
        return self._limits[id(allocation)][1]

    def _limits_of(self, allocation: Allocation) -> list[Limit]:
        src, dst, rate = self.request.src, self.request.dst, allocation.rate_gbps
        src_vms, dst_vms = allocation.src_vms, allocation.dst_vms
        found: list[Limit] = []

        def of_caps(dimension: int, times: float, *caps: Estimate) -> None:
            gbps = {b: min([getattr(cap, b) for cap in caps]) * times for b in BOUNDS}
            lowest = min(caps, key=lambda cap: cap.expected)
            found.append(Limit(dimension, gbps, spreads_of(lowest)))

        def of_pair(dimension: int, times: float, *pair: str) -> None:
            link = self.link(*pair)
            gbps = {b: link.rates[b][0] * times for b in BOUNDS}
            spreads = (link.own, link.window) if pair[1] == dst else (link.alone, EXACT)
            found.append(Limit(dimension, gbps, *spreads))

        sends, receives = self._under_caps(allocation)
        for flows, vms, dimension in ((sends, src_vms, SRC_CAP), (receives, dst_vms, DST_CAP)):
            for cap, flow in flows:
                of_caps(dimension, vms * rate / flow, cap)
        if flow := allocation.direct_gbps:
            of_pair(DIRECT_LINK, min(src_vms, dst_vms) * rate / flow, src, dst)
        for number, (relay, flow) in enumerate(sorted(allocation.relay_gbps.items())):
            via, vms, dimension = (
                self.regions[relay],
                allocation.relay_vms[relay],
                RELAYS + 3 * number,
            )
            of_pair(dimension, min(src_vms, vms) * rate / flow, src, via)
            of_pair(dimension + 1, min(vms, dst_vms) * rate / flow, via, dst)
            site, (first, second) = self.network.sites[via], self.pairs_of(relay)
            into = site.ingress(self.network.link(*first).address)
            out = site.egress(self.network.link(*second).address)
            of_caps(dimension + 2, vms * rate / flow, into, out)
        return found

    def rate_at(self, allocation: Allocation, bound: Literal["low", "high"]) -> float:
        """Return the rate of the same VMs and path shares at one of the estimates' bounds."""
        rate, each = allocation.rate_gbps, self.request.connections
        possible = min([limit.gbps[bound] for limit in self.limits(allocation)])
        if possible <= 0:
            return 0.0
        flows: list[tuple[int | None, float]] = [*allocation.relay_gbps.items()]
        if allocation.direct_gbps:
            flows.append((None, allocation.direct_gbps))
        out_connections = in_connections = 0.0
        for relay, flow in flows:
            pairs = self.pairs_of(relay)
            out_connections += flow / self.link(*pairs[0]).rates[bound][1]
            in_connections += flow / self.link(*pairs[-1]).rates[bound][1]
        possible = min(
            possible,
            rate * each * allocation.src_vms / out_connections,
            rate * each * allocation.dst_vms / in_connections,
        )
        # An optimum often leaves a little room; its bounds still enclose it.
        return min(rate, possible) if bound == "low" else max(rate, possible)

    # ---- comparing ---------------------------------------------------------------------------

    def gain(self, option: Option, over: Option) -> Gain:
        """Return the gain of an option over another, in the objective's terms."""
        if self.request.objective == "latency":
            rtt_ms, (relay,) = self.path_rtt_ms, option.relays
            assert not over.relays
            expected = rtt_ms(None) / (rtt_ms(relay) + RELAY_PROCESSING_MS)
        else:
            expected = _ratio(over.value_usd, option.value_usd)
        ratios = self._gains(option, over)
        return compared(expected, ratios, self.request.margin, self.request.risk)

    def probability(self, option: Option, over: Option) -> float:
        """Return the probability that an option is better by the margin, in the same terms."""
        return probability(self._gains(option, over), self.request.margin)

    def faster(self, option: Option, over: Option) -> tuple[float, float, float]:
        """Return the ratio of an option's throughput to another's, and its range."""
        expected = option.allocation.rate_gbps / over.allocation.rate_gbps
        return range_of(expected, self.rates_gbps(option) / self.rates_gbps(over))

    def _gains(self, option: Option, over: Option) -> Draws:
        if self.request.objective == "latency":
            return self._in_latency(option)
        better, worse = self._values(option), self._values(over)
        if better.min() > 0:
            return worse / better
        return np.array([_ratio(*pair) for pair in zip(worse, better, strict=True)])

    def _values(self, option: Option) -> Draws:
        """Return an option's value at its rate in each draw."""
        request, allocation, rates = self.request, option.allocation, self.rates_gbps(option)
        if request.hour_usd == inf:
            return option.ramp_up_s + BITS_PER_BYTE * request.volume_gb / rates
        start_h, gbps_h = request.vm_start_s / S_PER_H, self.gbps_h
        vm_usd_per_h = allocation.vm_usd / (gbps_h / allocation.rate_gbps + start_h)
        fixed = allocation.egress_usd + vm_usd_per_h * start_h
        fixed += request.hour_usd * option.ramp_up_s / S_PER_H
        return fixed + (vm_usd_per_h + request.hour_usd) * gbps_h / rates

    def rates_gbps(self, option: Option) -> Draws:
        """Return the rate of an option's VMs and path shares in each draw."""
        allocation = option.allocation
        if id(allocation) not in self._rates:
            drawn = [_drawn(limit) for limit in self.limits(allocation)]
            self._rates[id(allocation)] = allocation, np.minimum.reduce(drawn)
        return self._rates[id(allocation)][1]

    def _in_latency(self, option: Option) -> Draws:
        (relay,) = option.relays
        src, via, dst = self.request.src, self.regions[relay], self.request.dst
        links = self._rtts_ms(src, via, RELAYS) + self._rtts_ms(via, dst, RELAYS + 1)
        return self._rtts_ms(src, dst, DIRECT_LINK) / (links + RELAY_PROCESSING_MS)

    def _rtts_ms(self, src: str, dst: str, dimension: int) -> Draws:
        rtt_ms = self.network.link(src, dst).rtt_ms
        return rtt_ms.expected * multiples(*spreads_of(rtt_ms), dimension)


CappedFlow: TypeAlias = tuple[Estimate, float]
"""A cap of one VM, and Gbit/s."""


def _under_caps(flows: list[CappedFlow]) -> list[CappedFlow]:
    """Return caps with the flows under each: a higher cap also holds the flows of lower ones."""
    caps = {cap.expected: cap for cap, _ in flows}
    return [
        (cap, sum(gbps for other, gbps in flows if other.expected <= expected))
        for expected, cap in caps.items()
    ]


def _drawn(limit: Limit) -> Draws:
    """Return the rate that a resource allows in each draw."""
    own = limit.gbps["expected"] * multiples(*limit.spreads, limit.dimension)
    return own if limit.window == EXACT else own * multiples(*limit.window, DST_WINDOW)


def _ratio(over: float, of: float) -> float:
    """Return the ratio of two values; 1 where both are 0."""
    if of > 0:
        return over / of
    return inf if over > 0 else 1.0
