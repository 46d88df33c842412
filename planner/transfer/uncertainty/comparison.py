"""How much better one plan of a transfer is than another, with what they share drawn once.

Both plans of one transfer leave the source and enter the destination: they share the source's cap,
the receiver's cap and, where windows hold its links back, its window. Each link has errors of its
own, and so has each relay's VM. See :mod:`planner.solvers.joint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TypeAlias

from planner.model.estimate import Estimate
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.solvers.joint import (
    DRAWS,
    Gain,
    compared,
    link_multiples,
    multiples,
    probability,
    range_of,
    surely_above,
    surely_below,
)
from planner.transfer.allocation import Allocation
from planner.transfer.options import Option, OptionEvaluator
from planner.transfer.uncertainty.link_figures import (
    DIRECT_LINK,
    DST_CAP,
    DST_WINDOW,
    RELAYS,
    SRC_CAP,
    Factor,
    Spreads,
    factor_of,
    spreads_of,
)

# What a relay adds to each round trip (a userspace proxy on a loaded VM).
RELAY_PROCESSING_MS = 1.0
EXACT: Spreads = (0.0, 0.0)


_Limit: TypeAlias = tuple[float, Factor, int]
"""What is expected of a limit, Gbit/s; its factor, and the dimension of its draws."""


def _least(limits: Sequence[_Limit]) -> list[float]:
    """Return the least of some limits in each draw."""
    reach = min([gbps * f.greatest * f.window_greatest for gbps, f, _ in limits])
    # What is never the least is not drawn.
    lists = [
        _drawn(*one) for one in limits if not one[0] * one[1].least * one[1].window_least > reach
    ]
    found = lists[0]
    for other in lists[1:]:
        found = [a if a < b else b for a, b in zip(found, other, strict=True)]  # noqa: FURB136
    return found


def _drawn(gbps: float, factor: Factor, dimension: int) -> list[float]:
    """Return a limit in each draw."""
    spreads, window = factor.spreads, factor.window
    if window:
        own = link_multiples(*spreads, dimension)
        shared = multiples(*window, DST_WINDOW)
        return [gbps * a * b for a, b in zip(own, shared, strict=True)]
    if spreads == EXACT:
        return [gbps] * DRAWS
    of = multiples if dimension < DIRECT_LINK else link_multiples
    return [gbps * a for a in of(*spreads, dimension)]


class OptionComparison:
    """Compares options of one request on one network."""

    def __init__(self, evaluator: OptionEvaluator) -> None:
        self.evaluator, self.request = evaluator, evaluator.request
        self.network: Network = evaluator.network
        self.regions = evaluator.regions
        self._rates: dict[int, tuple[Allocation, list[float]]] = {}
        self._values: dict[int, tuple[Option, list[float]]] = {}
        self._factors: dict[int, Factor] = {}  # of caps, which the network keeps

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
        margin = self.request.margin
        if self.request.objective != "latency":
            least, most = self._value_range(option)
            least_over, most_over = self._value_range(over)
            # Most often, the ranges alone tell what :func:`probability` would.
            if least > 0 and surely_below(most_over / least, margin):
                return 0.0
            if least > 0 and surely_above(least_over / most, margin):
                return 1.0
        return probability(self._gains(option, over), margin)

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

    def _value_range(self, option: Option) -> tuple[float, float]:
        """Return the least and the greatest of these values: at the greatest and the least rate."""
        fixed, per_rate = self._value(option)
        rates = self.rates_gbps(option)
        return fixed + per_rate / max(rates), fixed + per_rate / min(rates)

    def rates_gbps(self, option: Option) -> list[float]:
        """Return the rate of an option's VMs and path shares in each draw."""
        allocation = option.allocation
        if id(allocation) not in self._rates:
            self._rates[id(allocation)] = allocation, _least(self._limits(allocation))
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

    def _limits(self, allocation: Allocation) -> list[_Limit]:
        """Return what limits an allocation's rate when all its flows grow in proportion."""
        evaluator, src, dst = self.evaluator, self.request.src, self.request.dst
        src_vms, dst_vms, rate = allocation.src_vms, allocation.dst_vms, allocation.rate_gbps
        sends, receives = evaluator.under_caps(allocation)
        ends = ((sends, src_vms, SRC_CAP), (receives, dst_vms, DST_CAP))
        limits = [
            (cap.expected * vms * rate / flow, self._factor(cap), dimension)
            for flows, vms, dimension in ends
            for cap, flow in flows
        ]
        if flow := allocation.direct_gbps:
            link = evaluator.links[src, dst]
            gbps = link.rates["expected"][0] * (min(src_vms, dst_vms) * rate / flow)
            limits.append((gbps, link.into_end, DIRECT_LINK))
        for number, (region, flow) in enumerate(sorted(allocation.relay_gbps.items())):
            via, vms = self.regions[region], allocation.relay_vms[region]
            own = RELAYS + 3 * number
            first, second = evaluator.links[src, via], evaluator.links[via, dst]
            cap = evaluator.forwarding_cap(via)
            limits += (
                (first.rates["expected"][0] * (min(src_vms, vms) * rate / flow), first.alone, own),
                (
                    second.rates["expected"][0] * (min(vms, dst_vms) * rate / flow),
                    second.into_end,
                    own + 1,
                ),
                (cap.expected * vms * rate / flow, self._factor(cap), own + 2),
            )
        return limits

    def _factor(self, cap: Estimate) -> Factor:
        found = self._factors.get(id(cap))
        if found is None:
            found = self._factors[id(cap)] = factor_of(cap)
        return found

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
        return [rtt_ms.expected * one for one in multiples(*spreads_of(rtt_ms), dimension)]


def _ratio(over: float, of: float) -> float:
    """Return how many times less one value costs; 1 where both cost nothing."""
    if of > 0:
        return over / of
    return inf if over > 0 else 1.0
