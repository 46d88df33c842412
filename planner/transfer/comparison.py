"""How much better one plan of a transfer is than another, with what they share drawn once.

Both plans of one transfer leave the source and enter the destination: they share the source's cap,
the receiver's cap and, where windows hold its links back, its window. Each link has errors of its
own, and so has each relay's VM. See :mod:`planner.solvers.joint`.
"""

from __future__ import annotations

from math import inf

import numpy as np

from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.solvers.joint import Draws, Gain, compared, multiples, probability, range_of
from planner.transfer.allocation import Allocation
from planner.transfer.options import (
    DIRECT_LINK,
    DST_WINDOW,
    EXACT,
    RELAYS,
    Limit,
    Option,
    OptionEvaluator,
    spreads_of,
)

# What a relay adds to each round trip (a userspace proxy on a loaded VM).
RELAY_PROCESSING_MS = 1.0


class OptionComparison:
    """Compares options of one request on one network."""

    def __init__(self, evaluator: OptionEvaluator) -> None:
        self.evaluator, self.request = evaluator, evaluator.request
        self._rates: dict[int, tuple[Allocation, Draws]] = {}

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
        start_h, gbps_h = request.vm_start_s / S_PER_H, self.evaluator.gbps_h
        vm_usd_per_h = allocation.vm_usd / (gbps_h / allocation.rate_gbps + start_h)
        fixed = allocation.egress_usd + vm_usd_per_h * start_h
        fixed += request.hour_usd * option.ramp_up_s / S_PER_H
        return fixed + (vm_usd_per_h + request.hour_usd) * gbps_h / rates

    def rates_gbps(self, option: Option) -> Draws:
        """Return the rate of an option's VMs and path shares in each draw."""
        allocation = option.allocation
        if id(allocation) not in self._rates:
            drawn = [_drawn(limit) for limit in self.evaluator.limits(allocation)]
            self._rates[id(allocation)] = allocation, np.minimum.reduce(drawn)
        return self._rates[id(allocation)][1]

    def _in_latency(self, option: Option) -> Draws:
        (relay,) = option.relays
        src, via, dst = self.request.src, self.evaluator.regions[relay], self.request.dst
        links = self._rtts_ms(src, via, RELAYS) + self._rtts_ms(via, dst, RELAYS + 1)
        return self._rtts_ms(src, dst, DIRECT_LINK) / (links + RELAY_PROCESSING_MS)

    def _rtts_ms(self, src: str, dst: str, dimension: int) -> Draws:
        rtt_ms = self.evaluator.network.link(src, dst).rtt_ms
        return rtt_ms.expected * multiples(*spreads_of(rtt_ms), dimension)


def _drawn(limit: Limit) -> Draws:
    """Return what a resource lets an allocation carry in each draw."""
    own = limit.gbps["expected"] * multiples(*limit.spreads, limit.dimension)
    return own if limit.window == EXACT else own * multiples(*limit.window, DST_WINDOW)


def _ratio(over: float, of: float) -> float:
    """Return how many times less one value costs; 1 where both cost nothing."""
    if of > 0:
        return over / of
    return inf if over > 0 else 1.0
