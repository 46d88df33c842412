"""What leased interconnects would make of a transfer, and from what volume a month they pay.

A lease is a path of its own: its capacity is not that of the link between its regions, which
crosses the public network. With caps ``c_v`` of one VM at each site of the path (its own, and what
one VM pair reaches over the link that is not leased), a rate R takes ``n_v = ceil(R / c_v)`` VMs,
and costs what :mod:`planner.transfer.problem` says. Between two rates at which some ``n_v`` grows,
faster is cheaper and sooner: so the best rate is the lease's, or one of ``n c_v``, and all of them
are compared. The month's fee is no part of that cost. It is earned by the volume a month that saves
as much, if each GB saves what one of this transfer does over the plan without the lease.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from planner.model.answer import Cost
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H, duration_s
from planner.transfer.allocation import EQUAL
from planner.transfer.leases.leased_link import LeasedLink
from planner.transfer.options import Option
from planner.transfer.plan import LeasedPath
from planner.transfer.problem import most_vms
from planner.transfer.request import TransferRequest

MONTH_S = 730 * S_PER_H


class _Stop(NamedTuple):
    """A site of a path: what one of its VMs carries, how many there may be, and their price."""

    region: str
    cap_gbps: float
    most: int
    vm_usd_per_h: float


def leased_paths(
    request: TransferRequest, network: Network, prices: Prices, without: Option
) -> tuple[LeasedPath, ...]:
    """Return what each lease would make of a transfer, in the order asked.

    Left out are leases that are on no path with at most one relay that the request permits.

    Parameters
    ----------
    request, network, prices
    without : Option
        The recommended plan, without any lease.
    """
    found = (_leased(request, network, prices, lease, without) for lease in request.leases)
    return tuple(path for path in found if path)


def _leased(
    request: TransferRequest, network: Network, prices: Prices, lease: LeasedLink, without: Option
) -> LeasedPath | None:
    regions = _regions(request, lease)
    if regions is None or any(region not in network.sites for region in regions):
        return None
    other = next((pair for pair in pairwise(regions) if pair != (lease.src, lease.dst)), None)
    per_gb_usd = lease.per_gb_usd
    pair_gbps = inf
    if other is not None:
        if other[1] not in network.links.get(other[0], {}):
            return None
        pair_gbps = network.link(*other).rate_gbps(request.connections)
        per_gb_usd += prices.egress_usd_per_gb(*other, request.volume_gb)
    stops = _stops(request, network, prices, regions, other, pair_gbps)
    if per_gb_usd == inf or any(stop.most < 1 or stop.cap_gbps <= 0 for stop in stops):
        return None
    begin_s = lease.ready_s + ramp_up_s(_rtt_ms(network, regions))
    egress_usd = per_gb_usd * request.volume_gb

    def at(rate_gbps: float) -> tuple[float, float, Cost, dict[str, int]]:
        move_s = duration_s(request.volume_gb, rate_gbps)
        counts = {stop.region: ceil(rate_gbps / stop.cap_gbps * (1 - EQUAL)) for stop in stops}
        hours = (move_s + request.vm_start_s) / S_PER_H
        vm_usd = hours * sum(counts[stop.region] * stop.vm_usd_per_h for stop in stops)
        cost = Cost.of(egress_usd, vm_usd)
        time_s = begin_s + move_s
        value = time_s
        if request.hour_usd < inf:
            value = cost.total + request.hour_usd * time_s / S_PER_H
        return value, rate_gbps, cost, counts

    most_gbps = min(lease.rate_gbps, *(stop.most * stop.cap_gbps for stop in stops))
    rates = {most_gbps} | {
        n * stop.cap_gbps
        for stop in stops
        for n in range(1, stop.most + 1)
        if n * stop.cap_gbps < most_gbps
    }
    ways = [at(rate) for rate in sorted(rates, reverse=True)]
    within = [way for way in ways if not _misses(request, begin_s, way[1], way[2])]
    value, rate_gbps, cost, counts = min(within or ways, key=lambda way: way[0])
    saved_usd = without.allocation.cost_usd - cost.total
    pays = lease.monthly_usd > 0 and saved_usd > 0
    return LeasedPath(
        lease.id,
        regions,
        bool(within),
        bool(within) and value * (1 + request.margin) <= without.value_usd,
        _misses(request, begin_s, rate_gbps, cost),
        lease.ready_s,
        rate_gbps,
        begin_s + duration_s(request.volume_gb, rate_gbps),
        cost,
        counts,
        saved_usd,
        lease.monthly_usd,
        lease.monthly_usd * request.volume_gb / saved_usd if pays else None,
        lease.rate_gbps * MONTH_S / BITS_PER_BYTE,
    )


def _regions(request: TransferRequest, lease: LeasedLink) -> tuple[str, ...] | None:
    """Return the path that a lease is on: direct, or to or from a relay; None if there is none."""
    src, dst = request.src, request.dst
    if (lease.src, lease.dst) == (src, dst):
        return (src, dst)
    relay = lease.dst if lease.src == src else lease.src if lease.dst == dst else None
    if relay is None or relay in request.forbidden or relay in {src, dst}:
        return None
    if request.relays not in {"any", "one", relay}:
        return None
    return (src, relay, dst)


def _stops(
    request: TransferRequest,
    network: Network,
    prices: Prices,
    regions: tuple[str, ...],
    other: tuple[str, str] | None,
    pair_gbps: float,
) -> list[_Stop]:
    """Return the sites of a path; the caps are those towards public addresses."""
    egress_gbps, ingress_gbps = network.caps()
    stops = []
    for region in regions:
        k = network.index[region]
        cap_gbps = pair_gbps if other and region in other else inf
        if region != regions[-1]:
            cap_gbps = min(cap_gbps, egress_gbps[k])
        if region != regions[0]:
            cap_gbps = min(cap_gbps, ingress_gbps[k])
        most = most_vms(request, network.sites[region])
        stops.append(_Stop(region, cap_gbps, most, prices.vm_usd_per_h(region)))
    return stops


def _rtt_ms(network: Network, regions: tuple[str, ...]) -> float:
    """Return what is known of a path's round-trip time, that of the links beside a lease."""
    links = (network.links.get(src, {}).get(dst) for src, dst in pairwise(regions))
    return sum(link.rtt_ms.expected for link in links if link)


def _misses(request: TransferRequest, begin_s: float, rate_gbps: float, cost: Cost) -> str:
    """Return which limits of the request a way misses, in words; empty if none."""
    missed = []
    time_s = begin_s + duration_s(request.volume_gb, rate_gbps)
    if request.deadline_s is not None and time_s > request.deadline_s:
        missed.append("the deadline")
    if request.min_throughput_gbps and rate_gbps < request.min_throughput_gbps:
        missed.append("the least rate")
    if request.budget_usd is not None and cost.total > request.budget_usd:
        missed.append("the budget")
    return f"misses {' and '.join(missed)}" if missed else ""
