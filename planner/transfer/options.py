"""Ways to carry out one transfer, and what each means: time, value, and bounds of both.

:meth:`OptionEvaluator.gain` compares two with what they share drawn once. Both leave the source and
enter the destination: they share the source's cap, the receiver's cap and, where windows hold its
links back, its window. Each link has errors of its own, and so has each relay's VM. See
:mod:`planner.solvers.joint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from math import hypot, inf, sqrt
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from planner.model.answer import Bottleneck, Cost, FeeLine
from planner.model.baseline.flow_spreads import spread_of_level
from planner.model.estimate import BOUNDS, Bound, Estimate
from planner.model.network import Network
from planner.model.pricing import Pair, Prices, fee_lines, least_connections, link_gbps
from planner.model.shared_resources import SITE_KINDS
from planner.model.throughput import LIKELY, ramp_up_s
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, S_PER_H, duration_s
from planner.solvers.joint import (
    Draws,
    Gain,
    compared,
    least_slow_probabilities,
    multiples,
    of_further_vms,
    probability,
    range_of,
    spread_of,
)
from planner.transfer.allocation import Allocation, whole_vms
from planner.transfer.fees import MeteredFees
from planner.transfer.problem import TransferProblem, transfer_problem
from planner.transfer.request import TransferRequest

MARGINAL = 1e-6
FLOW_LIMITS = ("connections", "flow cap")
"""Limits of connections: windows over round-trip times, or what a provider lets a flow carry."""
CAUSES = ("egress cap", "ingress cap", "path", *FLOW_LIMITS)
"""Limits of a VM pair; of several that are as low, the first is named."""
SHARE_THAT_HOLDS = 0.95
"""A plan that carries this share of its rate under the other reading holds under both."""
# What a relay adds to each round trip (a userspace proxy on a loaded VM).
RELAY_PROCESSING_MS = 1.0
# Dimensions of the draws; relay number k has three of its own behind them.
SRC_CAP, DST_CAP, DST_WINDOW, DIRECT_LINK, RELAYS = range(5)
Spreads: TypeAlias = tuple[float, float]
"""Of a factor's logarithm, below and above what is expected."""
EXACT: Spreads = (0.0, 0.0)
L = TypeVar("L", bound=tuple[Any, ...])


def spreads_of(estimate: Estimate) -> Spreads:
    """Return the spreads of an estimate."""
    expected = estimate.expected
    return spread_of(expected, estimate.low), spread_of(expected, estimate.high)


class LinkFigures(NamedTuple):
    """Rates of one VM pair over a link with all its connections, and with one of them.

    `own` are the spreads of the former; where the link enters the destination, whose window may
    hold it back, those of the link itself, and `window` those that all such links share.
    `slow_probability` is that its connections are slow, and each then carries `slow_gbps`. Each
    VM pair beyond the `tried` ones brings at least a share `further` of what the first carries.
    What was not measured may be `odd`, see :func:`planner.solvers.joint.factors`.
    """

    rates: Mapping[Bound, tuple[float, float]]
    own: Spreads
    window: Spreads
    slow_probability: float
    slow_gbps: float
    tried: int
    further: float
    odd: bool = False

    def of_several(self, pairs: float) -> tuple[Mapping[Bound, float], Spreads]:
        """Return the rates of VM pairs at once, and the spreads of `own`."""
        gbps = {bound: self.rates[bound][0] * pairs for bound in BOUNDS}
        least = hypot(self.own[0], self.window[0])
        narrows, further = of_further_vms(pairs, self.tried, self.further, least)
        gbps["low"] *= narrows
        return gbps, (hypot(self.own[0], further), self.own[1])


class Limit(NamedTuple):
    """The limit that one resource sets to an allocation.

    `dimension` is that of its draws: equal for what plans share, see :mod:`planner.solvers.joint`.
    The window's spreads are those of the destination, which all links into it share. If a link's
    connections are slow, which has a probability, the limit is a share of what it is if its path
    ends there: the plan opens too few of them. `link` is what it is of, where that may be.
    """

    dimension: int
    gbps: Mapping[Bound, float]
    spreads: Spreads
    window: Spreads = EXACT
    slow_probability: float = 0.0
    slow_share: float = 1.0
    odd: bool = False
    link: Pair | None = None

    def at(self, bound: Bound) -> float:
        """Return the limit at a bound, which holds under every reading that is not improbable."""
        least = {"low": 1 - LIKELY, "expected": 1.0, "high": LIKELY}[bound]
        return self.gbps[bound] * (self.slow_share if self.slow_probability > least else 1.0)


class OptionEvaluator:
    """The figures of one request on one network, and what they make of allocations."""

    def __init__(self, request: TransferRequest, network: Network, prices: Prices) -> None:
        self.request, self.network, self.prices = request, network, prices
        self.pairs_of = cache(self._pairs_of)
        self.fees = MeteredFees(request.volume_gb, prices, self.pairs_of)
        self.regions = list(network.sites)
        self.link, self.estimates = cache(self._link), cache(network.link)
        self.ends = request.src, request.dst
        self._ends_start_s = request.starts_s(*(network.sites[end] for end in self.ends))

    @cached_property
    def whole(self) -> TransferProblem:
        """The problem with all VMs that there may be, whatever the objective and limits."""
        whole = transfer_problem(self.request, self.network, self.prices)
        return replace(whole, lead_s=self.lead_s(whole.regions))

    def vms(self, allocation: Allocation) -> dict[str, int]:
        """Return an allocation's VMs by region, from the source to the destination."""
        counts = {self.request.src: allocation.src_vms}
        for relay, count in sorted(allocation.relay_vms.items()):
            counts[self.regions[relay]] = count
        counts[self.request.dst] = allocation.dst_vms
        return counts

    def fee_lines(self, allocation: Allocation) -> tuple[FeeLine, ...]:
        """List the fees besides egress."""
        links_gb = self.fees.links_gb(allocation)
        hours = dict.fromkeys(self.vms(allocation), allocation.paid_h)
        return fee_lines(self.prices, links_gb, hours)

    def vm_start_s(self, paths: Iterable[int | None] = ()) -> float:
        """Return the time until the VMs at both ends and at the relays of paths have started."""
        sites = self.network.sites
        return self._ends_start_s or self.request.starts_s(
            *(sites[self.regions[path]] for path in paths if path is not None)
        )

    def ramp_up_s(self, paths: Iterable[int | None]) -> float:
        """Return the time to get up to speed on the slowest of some paths."""
        return ramp_up_s(max(map(self.path_rtt_ms, paths), default=0.0))

    def lead_s(self, paths: Sequence[int | None]) -> float:
        """Return the time until VMs have started and the slowest of some paths is up to speed."""
        return self.vm_start_s(paths) + self.ramp_up_s(paths)

    # ---- paths and links ---------------------------------------------------------------------

    def _pairs_of(self, relay: int | None) -> tuple[Pair, ...]:
        """Return the links of a path: direct, or through the relay at a position."""
        between = [] if relay is None else [self.regions[relay]]
        return tuple(pairwise([self.request.src, *between, self.request.dst]))

    def path_rtt_ms(self, relay: int | None) -> float:
        """Return the round-trip time of a path."""
        if relay is None:
            return self.estimates(self.request.src, self.request.dst).rtt_ms.expected
        return float(self.relay_rtts_ms[relay])

    @cached_property
    def relay_rtts_ms(self) -> Draws:
        """The round-trip time through each region; infinity where a link is missing."""
        links, index = self.network.links, self.network.index
        out, into = links.row(index[self.request.src]), links.column(index[self.request.dst])
        both = out["rtt_ms"]["expected"] + into["rtt_ms"]["expected"]
        both[(out["address"] == 0) | (into["address"] == 0)] = inf
        return np.asarray(both)

    def binding(self, src: str, dst: str) -> tuple[float, str]:
        """Return the limit of one VM pair on a link: its figure and the name of its cause."""
        return _first_least(*self._caps(src, dst), self._saturated(src, dst), self._flows(src, dst))

    def binding_on(self, relay: int | None) -> tuple[float, str, str, str]:
        """Return the limit of one VM pair on a path: its figure, its cause, and its link's ends."""
        found = [(*self.binding(*link), *link) for link in self.pairs_of(relay)]
        return _first_least(*sorted(found, key=lambda one: (CAUSES.index(one[1]), *one[2:])))

    def holding(self, relay: int | None, end: int) -> tuple[str, tuple[str, str]]:
        """Find the limit, besides their cap, of one end's VMs on a path: its cause and its link.

        The end is the source (0) or the destination (1). The connections that a source opens go on
        over a relay's second link; accepting them holds no VM. The cap of the link's kind of
        address may be below that of all traffic.
        """
        links, index = self.pairs_of(relay), self.network.index
        src, dst = links[-end]
        found = []
        cap = self._caps(src, dst)[end]
        if cap[0] < self.network.caps()[end][index[(src, dst)[end]]]:
            found.append((*cap, (src, dst)))
        if self.network.held_out_of(src)[1 + end][index[dst]] < inf:
            found.append((*self._saturated(src, dst), (src, dst)))
        if not end:
            found += [(*self._flows(*link), link) for link in links]
        _, cause, link = _first_least(*found)
        return cause, link

    def _caps(self, src: str, dst: str) -> tuple[tuple[float, str], tuple[float, str]]:
        """Return the caps of one VM at both ends of a link."""
        address, sites = self.estimates(src, dst).address, self.network.sites
        return (
            (sites[src].egress(address).expected, "egress cap"),
            (sites[dst].ingress(address).expected, "ingress cap"),
        )

    def _saturated(self, src: str, dst: str) -> tuple[float, str]:
        """Return the rate of one VM pair, however many its connections, and its cause.

        An aggregate that the caps made is a matter of caps: tests reach somewhat less than these.
        """
        link = self.estimates(src, dst)
        causes = {"vm": min(self._caps(src, dst))[1], "window": self._flows(src, dst)[1]}
        return link.most_gbps(self.request.connections), causes.get(link.limited_by, "path")

    def _flows(self, src: str, dst: str) -> tuple[float, str]:
        """Return the rate of the connections of one VM pair, and the name of their limit."""
        flow = self.estimates(src, dst).per_flow_mbps
        figures = flow.origin.figures
        by_cap = figures is not None and figures.held_to == "flow-cap"
        gbps = self.request.connections * flow.expected / MBPS_PER_GBPS
        return gbps, "flow cap" if by_cap else "connections"

    def full(self, flows_gbps: Mapping[int | None, float]) -> Bottleneck | None:
        """Return what paths' rates fill whatever the VMs: an interconnect, a site's connections."""
        for path, gbps in flows_gbps.items():
            for src, dst in self.pairs_of(path):
                if gbps >= (most_gbps := link_gbps(self.prices, src, dst)) * (1 - MARGINAL):
                    return Bottleneck("interconnect", f"{src} -> {dst}", most_gbps, "Gbit/s in all")
        pairs = [self.ends] if len(flows_gbps) > 1 else self.pairs_of(*flows_gbps)
        most, way, region = least_connections(self.prices, *pairs)
        if most < inf and (count := sum(self.needs(flows_gbps).values())) >= most * (1 - MARGINAL):
            gain, unit = sum(flows_gbps.values()) / count, f"Gbit/s for each of {most:.0f}"
            return Bottleneck(SITE_KINDS[way], region, gain, unit)
        return None

    def opens(self, vms: float, *pairs: Pair) -> float:
        """Return the connections that VMs open, as far as the sites of links allow."""
        return min(self.request.connections * vms, least_connections(self.prices, *pairs)[0])

    def pairs(self, src: str, dst: str, vms: tuple[int, ...], opening: float) -> float:
        """Return the number of VM pairs, among so many VMs, that a link gives its rate to.

        `opening` is the number of VMs that open all their connections.
        """
        flows_gbps, saturated_gbps = self._flows(src, dst)[0], self._saturated(src, dst)[0]
        held_gbps = saturated_gbps * self.network.held_pairs(src, dst, *vms)
        return min(flows_gbps * opening, held_gbps) / min(flows_gbps, saturated_gbps)

    def deciding(self, src: str, dst: str) -> Estimate:
        """Return the estimate of a link that its rate rests on."""
        link = self.estimates(src, dst)
        flows_decide = self._flows(src, dst)[0] < self._saturated(src, dst)[0]
        return link.per_flow_mbps if flows_decide else link.aggregate_gbps

    def _link(self, src: str, dst: str) -> LinkFigures:
        """Return the figures of a link with the request's connections."""
        link, count = self.estimates(src, dst), self.request.connections
        rates = {b: (link.rate_gbps(count, b), link.rate_gbps(1, b)) for b in BOUNDS}
        gbps = rates["expected"][0]
        below, above = spread_of(gbps, rates["low"][0]), spread_of(gbps, rates["high"][0])
        if count == 1:
            below, above = spread_of_level(below), spread_of_level(above)
        own, window = (below, above), EXACT
        flow = link.per_flow_mbps
        by_window = flow.origin.method == "window-over-rtt" and dst == self.request.dst
        if by_window and count * flow.expected <= gbps * MBPS_PER_GBPS * (1 + MARGINAL):
            of_receiver = spreads_of(self.network.sites[dst].window_mb)
            window = min(below, of_receiver[0]), min(above, of_receiver[1])
            own = sqrt(below**2 - window[0] ** 2), sqrt(above**2 - window[1] ** 2)
        slow = link.slow_connections if count > 1 else 0.0
        # Classes are of what many connections carry; one has its window, and its own spread.
        odd = count > 1 and link.aggregate_gbps.source != "measured"
        return LinkFigures(rates, own, window, slow, link.slow_gbps, *link.further, odd)

    def needs(
        self, flows_gbps: Mapping[int | None, float], bound: Bound = "expected"
    ) -> dict[int | None, float]:
        """Return the connections, in fractions, by path: a relay opens as many as it accepts."""
        return {
            path: gbps / min([self.link(*pair).rates[bound][1] for pair in self.pairs_of(path)])
            for path, gbps in flows_gbps.items()
        }

    def connections(self, allocation: Allocation) -> dict[int | None, int]:
        """Return the fewest whole connections by path."""
        return {path: whole_vms(count) for path, count in self.needs(allocation.flows).items()}

    # ---- comparing ---------------------------------------------------------------------------

    def gain(self, option: Option, over: Option) -> Gain:
        """Return the gain of an option over another, in the objective's terms."""
        if self.request.objective == "latency":
            (relay,) = option.relays
            expected = self.path_rtt_ms(None) / (self.path_rtt_ms(relay) + RELAY_PROCESSING_MS)
        else:
            expected = _ratio(over.value_usd, option.value_usd)
        ratios = self._gains(option, over)
        return compared(expected, ratios, self._margin(over), self.request.risk)

    def probabilities(self, options: Iterable[Option], over: Option) -> list[float]:
        """Return the probability that each is better than another by the margin, in these terms."""
        gains = np.array([self._gains(option, over) for option in options])
        found: list[float] = probability(gains, self._margin(over)).tolist()
        return found

    def _margin(self, over: Option) -> float:
        """Return the margin as a share of an option's value: fees are certain, and need none."""
        margin, paid_for = self.request.margin, self.request.hour_usd < inf
        if self.request.objective == "latency" or not paid_for or over.value_usd <= 0:
            return margin
        return margin * (1 - over.allocation.egress_usd / over.value_usd)

    def _gains(self, option: Option, over: Option) -> Draws:
        if self.request.objective == "latency":
            (relay,) = option.relays
            first, second = self.pairs_of(relay)
            links = self._rtts_ms(*first, RELAYS) + self._rtts_ms(*second, RELAYS + 1)
            (direct,) = self.pairs_of(None)
            return self._rtts_ms(*direct, DIRECT_LINK) / (links + RELAY_PROCESSING_MS)
        better, worse = option.values, over.values
        if better.min() > 0:
            return worse / better
        return np.array([_ratio(*pair) for pair in zip(worse, better, strict=True)])

    def _rtts_ms(self, src: str, dst: str, dimension: int) -> Draws:
        rtt_ms = self.estimates(src, dst).rtt_ms
        return rtt_ms.expected * multiples(*spreads_of(rtt_ms), dimension)


class Option:
    """An allocation with what it means for the request; not changed once made.

    Attributes
    ----------
    allocation : Allocation
        Its VMs are paid for `duration_s`: it was found at the lead of all paths that it might use.
    ramp_up_s : float
        Time to get up to speed on the slowest of its paths, 8.5 round trips a link.
    vm_start_s, lead_s : float
        Time until its VMs have started; and that together with getting up to speed.
    value_usd : float
        Cost plus duration where an hour is worth `hour_usd`; the duration itself if that is
        infinite.
    """

    def __init__(self, figures: OptionEvaluator, allocation: Allocation, hour_usd: float) -> None:
        self.figures = figures
        self.vm_start_s = figures.vm_start_s(allocation.flows)
        self.ramp_up_s = figures.ramp_up_s(allocation.flows)
        self.lead_s = self.vm_start_s + self.ramp_up_s
        move_s = duration_s(figures.request.volume_gb, allocation.rate_gbps)
        self.duration_s = time_s = self.lead_s + move_s
        self.allocation = allocation = replace(allocation, paid_h=time_s / S_PER_H)
        self.value_usd = time_s
        if hour_usd < inf:
            self.value_usd = allocation.cost_usd + hour_usd * time_s / S_PER_H

    @property
    def relays(self) -> tuple[int, ...]:
        """Positions of the relays that it uses."""
        return tuple(sorted(self.allocation.relay_vms))

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
        return len(self.relays) == 1 and not self.allocation.direct_gbps

    @cached_property
    def connections(self) -> dict[int | None, int]:
        """The connections that each path opens on each of its links, over all VMs.

        One path opens all that the VMs that open them may. Of several, each as many as its rate
        needs; as long as VMs have connections to spare, each path gets its share of those that its
        rate was measured with: single ones may be slow.
        """
        allocation, each = self.allocation, self.figures.request.connections
        flows, src_vms, relay_vms = allocation.flows, allocation.src_vms, allocation.relay_vms
        most = {
            path: int(self.figures.opens(vms, *self.figures.pairs_of(path)))
            for path in flows
            for vms in [src_vms if path is None else min(src_vms, relay_vms[path])]
        }
        if len(flows) == 1:
            return most
        needs, extras = self.figures.connections(allocation), {}
        for path, flow in flows.items():
            pairs = self.figures.pairs_of(path)
            pair_gbps = min([self.figures.link(*pair).rates["expected"][0] for pair in pairs])
            wanted = min(most[path], round(each * flow / pair_gbps))
            extras[path] = max(0, wanted - needs[path])
        spare = self.figures.opens(src_vms, self.figures.ends) - sum(needs.values())
        granted = min(1.0, max(0, spare) / (sum(extras.values()) or 1))
        return {path: need + int(extras[path] * granted) for path, need in needs.items()}

    @cached_property
    def limits(self) -> list[Limit]:
        """The limits of its rate when all its flows grow in proportion."""
        figures, found = self.figures, self._limits_of_ends()
        sites = figures.network.sites
        flows, rate = self.allocation.flows, self.allocation.rate_gbps
        src_vms, dst_vms = self.allocation.src_vms, self.allocation.dst_vms

        def add_pair(
            dimension: int, path: int | None, opened: int, ends: tuple[str, str], *vms: int
        ) -> None:
            opening = figures.opens(opened, *figures.pairs_of(path)) / figures.request.connections
            link, pairs = figures.link(*ends), figures.pairs(*ends, vms, opening)
            of_pairs, own = link.of_several(pairs)
            gbps = {bound: of_pairs[bound] * rate / flows[path] for bound in BOUNDS}
            spreads = (own, link.window)
            slow = link.slow_probability
            if slow:
                carried = self.connections[path] * link.slow_gbps
                share = min(1.0, carried / (pairs * link.rates["expected"][0]))
                found.append(Limit(dimension, gbps, *spreads, slow, share, link.odd, ends))
            else:
                found.append(Limit(dimension, gbps, *spreads, odd=link.odd))

        if self.allocation.direct_gbps:
            (pair,) = figures.pairs_of(None)
            add_pair(DIRECT_LINK, None, src_vms, pair, src_vms, dst_vms)
            if (most_gbps := link_gbps(figures.prices, *pair)) < inf:
                in_all_gbps = most_gbps * rate / self.allocation.direct_gbps
                found.append(Limit(DIRECT_LINK, dict.fromkeys(BOUNDS, in_all_gbps), EXACT))
        for number, relay in enumerate(self.relays):
            first, second = figures.pairs_of(relay)
            vms, times = self.allocation.relay_vms[relay], rate / flows[relay]
            dimension = RELAYS + 3 * number
            opened = min(src_vms, vms)
            add_pair(dimension, relay, opened, first, src_vms, vms)
            add_pair(dimension + 1, relay, opened, second, vms, dst_vms)
            site = sites[figures.regions[relay]]
            into = site.ingress(figures.estimates(*first).address)
            out = site.egress(figures.estimates(*second).address)
            found.append(_of_caps(dimension + 2, vms * times, into, out))
        return found

    def _limits_of_ends(self) -> list[Limit]:
        """Return the limits of the caps at both ends.

        One cap holds all, unless links over private addresses are in use, whose cap is higher: that
        of public addresses then holds what is sent over these.
        """
        figures, allocation = self.figures, self.allocation
        network, request = figures.network, figures.request
        sends, receives = network.sites[request.src].egress, network.sites[request.dst].ingress
        found = []
        for cap_of, at, vms, dimension in (
            (sends, 0, allocation.src_vms, SRC_CAP),
            (receives, -1, allocation.dst_vms, DST_CAP),
        ):
            capped = [
                (cap_of(figures.estimates(*figures.pairs_of(path)[at]).address), gbps)
                for path, gbps in allocation.flows.items()
            ]
            for expected, cap in {cap.expected: cap for cap, _ in capped}.items():
                # A higher cap also holds the flows of lower ones.
                flow = sum([gbps for other, gbps in capped if other.expected <= expected])
                found.append(_of_caps(dimension, vms * allocation.rate_gbps / flow, cap))
        return found

    def rate_at(self, bound: Literal["low", "high"]) -> float:
        """Return the rate of the same VMs and path shares at one of the estimates' bounds."""
        allocation, figures = self.allocation, self.figures
        rate, opens = allocation.rate_gbps, figures.opens(allocation.src_vms, figures.ends)
        possible = min([limit.at(bound) for limit in self.limits])
        if possible <= 0:
            return 0.0
        connections = sum(figures.needs(allocation.flows, bound).values())
        possible = min(possible, rate * opens / connections)
        # An optimum often leaves a little room; its bounds still enclose it.
        return min(rate, possible) if bound == "low" else max(rate, possible)

    @cached_property
    def rates_gbps(self) -> Draws:
        """The rate of its VMs and path shares in each draw."""
        limits = self.limits
        # Most relays share limits, so most of these are kept already.
        drawn = np.array(
            [multiples(*limit.spreads, limit.dimension, limit.odd) for limit in limits]
        )
        for row, limit in zip(drawn, limits, strict=True):
            row *= limit.gbps["expected"]
            if limit.window != EXACT:
                row *= multiples(*limit.window, DST_WINDOW)
            if limit.slow_share < 1:
                row[least_slow_probabilities() < limit.slow_probability] *= limit.slow_share
        return np.asarray(drawn.min(axis=0))

    @property
    def slow_shares(self) -> dict[Pair, float]:
        """What links carry of their limit if their connections are slow, of those that may be."""
        return {limit.link: limit.slow_share for limit in self.limits if limit.link}

    @property
    def rests_on_a_reading(self) -> bool:
        """Return whether it carries less if the connections of slow links are slow."""
        return self.gbps_if_slow < SHARE_THAT_HOLDS * self.allocation.rate_gbps

    @cached_property
    def gbps_if_slow(self) -> float:
        """The rate of its VMs and path shares if connections are slow wherever they may be."""
        limits = [one.gbps["expected"] * one.slow_share for one in self.limits]
        return min(self.allocation.rate_gbps, *limits)

    @cached_property
    def values(self) -> Draws:
        """Its value to the request at its rate in each draw."""
        hour_usd = self.figures.request.hour_usd
        if hour_usd == inf:
            return self.durations_s
        hours = self.durations_s / S_PER_H
        return self.allocation.egress_usd + (self.allocation.usd_per_h + hour_usd) * hours

    @property
    def durations_s(self) -> Draws:
        """Its duration in each draw."""
        return self.lead_s + BITS_PER_BYTE * self.figures.request.volume_gb / self.rates_gbps


def faster(options: Sequence[Option], over: Option) -> list[tuple[float, float, float]]:
    """Return the ratio of the throughput of each to another's: expected, low and high."""
    expected = np.array([option.allocation.rate_gbps for option in options])
    ratios = np.array([option.rates_gbps for option in options]) / over.rates_gbps
    found = range_of(expected / over.allocation.rate_gbps, ratios)
    return [tuple(row) for row in np.transpose(found).tolist()]


def _first_least(*limits: L) -> L:
    """Return the first of the limits, each after its rate, that are as low as the lowest."""
    least = min([limit[0] for limit in limits]) * (1 + MARGINAL)
    return next(limit for limit in limits if limit[0] <= least)


def _of_caps(dimension: int, times: float, *caps: Estimate) -> Limit:
    least = min(caps, key=attrgetter("expected"))
    gbps: dict[Bound, float] = {
        "low": min([cap.low for cap in caps]) * times,
        "expected": least.expected * times,
        "high": min([cap.high for cap in caps]) * times,
    }
    return Limit(dimension, gbps, spreads_of(least))


def _ratio(over: float, of: float) -> float:
    """Return the ratio of two values; 1 where both are 0."""
    if of > 0:
        return over / of
    return inf if over > 0 else 1.0
