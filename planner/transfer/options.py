"""Ways to carry out one transfer, and what each means: time, value, and bounds of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Literal, TypeAlias

from planner.model.estimate import Bound, Estimate
from planner.model.link import Expected
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H, duration_s
from planner.transfer.allocation import Allocation
from planner.transfer.fees import MeteredFees
from planner.transfer.link_figures import LinkFiguresTable, link_figures
from planner.transfer.request import TransferRequest


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
    def is_one_relay(self) -> bool:
        """Whether everything goes through a single relay."""
        return len(self.allocation.relay_gbps) == 1 and not self.allocation.direct_gbps


class OptionEvaluator:
    """Turns allocations for one request on one network into options."""

    def __init__(self, request: TransferRequest, network: Network, prices: Prices) -> None:
        self.request = request
        self.network = network
        self.prices = prices
        self.gbps_h = BITS_PER_BYTE * request.volume_gb / S_PER_H  # the duration at 1 Gbit/s
        self.fees = MeteredFees(request, network, prices)
        self.regions = list(network.sites)
        self._rtt_ms: dict[tuple[int | None, Bound], float] = {}
        self._caps_at: dict[Bound, tuple[list[float], list[float], float, float]] = {}

    def option(self, allocation: Allocation, rate_gbps: float | None = None) -> Option:
        """Return an allocation's duration and value, by default at its expected rate."""
        rate = rate_gbps or allocation.rate_gbps
        ramp_s = self.path_ramp_up_s(None) if allocation.direct_gbps else 0.0
        for relay in allocation.relay_gbps:
            ramp_s = max(ramp_s, self.path_ramp_up_s(relay))
        time_s = duration_s(self.request.volume_gb, rate) + ramp_s
        hour_usd = self.request.hour_usd
        if hour_usd == inf:
            return Option(allocation, ramp_s, time_s, time_s)
        vm_usd = allocation.vm_usd
        if rate != allocation.rate_gbps:
            start_h = self.request.vm_start_s / S_PER_H
            hours = self.gbps_h / allocation.rate_gbps + start_h
            vm_usd *= (self.gbps_h / rate + start_h) / hours
        value = allocation.egress_usd + vm_usd + hour_usd * time_s / S_PER_H
        return Option(allocation, ramp_s, time_s, value)

    def vms(self, allocation: Allocation) -> dict[str, int]:
        """Return an allocation's VMs by region, from the source to the destination."""
        counts = {self.request.src: allocation.src_vms}
        for relay, count in sorted(allocation.relay_vms.items()):
            counts[self.regions[relay]] = count
        counts[self.request.dst] = allocation.dst_vms
        return counts

    def path_rtt_ms(self, relay: int | None, bound: Bound = "expected") -> float:
        """Return the round-trip time of a path: the sum of its links'."""
        rtt_ms = self._rtt_ms.get((relay, bound))
        if rtt_ms is None:
            src, dst = self.request.src, self.request.dst
            if relay is None:
                rtt_ms = float(getattr(self.network.link(src, dst).rtt_ms, bound))
            else:
                via = self.regions[relay]
                first, second = self.network.link(src, via), self.network.link(via, dst)
                rtt_ms = float(getattr(first.rtt_ms, bound) + getattr(second.rtt_ms, bound))
            self._rtt_ms[relay, bound] = rtt_ms
        return rtt_ms

    @cached_property
    def relay_rtts_ms(self) -> list[float]:
        """The round-trip time through each region; infinity where a link is missing."""
        rows: dict[tuple[str, bool], list[float]] = self.network.kept.setdefault("rtt_ms", {})
        src, dst, network = self.request.src, self.request.dst, self.network
        if (src, True) not in rows:
            rows[src, True] = _rtts_ms(network.expected_out_of(src))
        if (dst, False) not in rows:
            rows[dst, False] = _rtts_ms(network.expected_into(dst))
        return [a + b for a, b in zip(rows[src, True], rows[dst, False], strict=True)]

    def path_ramp_up_s(self, relay: int | None) -> float:
        """Return the time that a path takes to get up to speed."""
        return ramp_up_s(self.path_rtt_ms(relay))

    def under_caps(self, allocation: Allocation) -> tuple[list[CappedFlow], list[CappedFlow]]:
        """Return what each cap of a VM holds of what leaves the source, and enters the destination.

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

    # ---- bounds ------------------------------------------------------------------------------

    @cached_property
    def links(self) -> LinkFiguresTable:
        """Figures of links with the request's connections."""
        return link_figures(self.network, self.request.connections)

    def forwarding_cap(self, via: str) -> Estimate:
        """Return the cap of what one VM of a relay passes on: of both, the lower as expected."""
        site = self.network.sites[via]
        if not self.network.has_private_links:
            into, out = site.ingress_gbps, site.egress_gbps
        else:
            links = self.network.links
            into = site.ingress(links[self.request.src][via].address)
            out = site.egress(links[via][self.request.dst].address)
        return into if into.expected <= out.expected else out

    def rate_at(self, allocation: Allocation, bound: Literal["low", "high"]) -> float:
        """Return the rate of the same VMs and path shares at one of the estimates' bounds."""
        src, dst = self.request.src, self.request.dst
        links = self.links
        egress_gbps, ingress_gbps, src_gbps, dst_gbps = self._caps(bound)
        src_vms, dst_vms, rate = allocation.src_vms, allocation.dst_vms, allocation.rate_gbps
        if self.network.has_private_links:
            ends = zip((src_vms, dst_vms), self.under_caps(allocation), strict=True)
            loads: list[float] = [
                gbps / (getattr(cap, bound) * vms) for vms, flows in ends for cap, gbps in flows
            ]
        else:
            loads = [rate / (src_gbps * src_vms), rate / (dst_gbps * dst_vms)]
        out_connections = in_connections = 0.0
        if flow := allocation.direct_gbps:
            pair_gbps, flow_gbps = links[src, dst].rates[bound]
            if pair_gbps <= 0:
                return 0.0
            out_connections = in_connections = flow / flow_gbps
            loads.append(flow / (pair_gbps * min(src_vms, dst_vms)))
        for k, flow in allocation.relay_gbps.items():
            via = self.regions[k]
            in_gbps, in_flow_gbps = links[src, via].rates[bound]
            out_gbps, out_flow_gbps = links[via, dst].rates[bound]
            vm_gbps = min(in_gbps, out_gbps, ingress_gbps[k], egress_gbps[k])
            if vm_gbps <= 0:
                return 0.0
            out_connections += flow / in_flow_gbps
            in_connections += flow / out_flow_gbps
            loads += (
                flow / (in_gbps * src_vms),
                flow / (out_gbps * dst_vms),
                flow / (vm_gbps * allocation.relay_vms[k]),
            )
        each = self.request.connections
        loads += (out_connections / (each * src_vms), in_connections / (each * dst_vms))
        possible = rate / max(loads)
        # An optimum often leaves a little room; its bounds still enclose it.
        return min(rate, possible) if bound == "low" else max(rate, possible)

    def _caps(self, bound: Bound) -> tuple[list[float], list[float], float, float]:
        """Return caps of one VM at a bound: egress, ingress, the source's and the destination's."""
        if bound not in self._caps_at:
            egress_gbps, ingress_gbps = self.network.caps(bound)
            src, dst = (self.network.index[end] for end in (self.request.src, self.request.dst))
            self._caps_at[bound] = egress_gbps, ingress_gbps, egress_gbps[src], ingress_gbps[dst]
        return self._caps_at[bound]


CappedFlow: TypeAlias = tuple[Estimate, float]
"""A cap of one VM, and Gbit/s."""


def _under_caps(flows: list[CappedFlow]) -> list[CappedFlow]:
    """Return caps with the sum of what they hold: a higher one holds what a lower one does, too."""
    caps = {cap.expected: cap for cap, _ in flows}
    return [
        (cap, sum(gbps for other, gbps in flows if other.expected <= expected))
        for expected, cap in caps.items()
    ]


def _rtts_ms(links: Iterable[Expected | None]) -> list[float]:
    return [link.rtt_ms if link else inf for link in links]
