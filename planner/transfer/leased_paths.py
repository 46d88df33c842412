"""Transfers over leased interconnects, and the volume a month from which these pay.

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

from planner.model.answer import Cost
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H, duration_s
from planner.transfer.allocation import EQUAL
from planner.transfer.decision import Decision
from planner.transfer.plan import LeasedPath
from planner.transfer.problem import most_vms
from planner.transfer.request import LeasedLink, TransferRequest

MONTH_S = 730 * S_PER_H


def leased_paths(decision: Decision) -> tuple[LeasedPath, ...]:
    """Return the transfer over each lease, in the order asked.

    Left out are leases that are on no path with at most one relay that the request permits.

    Parameters
    ----------
    decision : Decision
        Without any lease.
    """
    found = (_leased(lease, decision) for lease in decision.request.leases)
    return tuple(path for path in found if path)


def _leased(lease: LeasedLink, decision: Decision) -> LeasedPath | None:
    request, network, prices = decision.request, decision.search.network, decision.search.prices
    regions = _regions(request, lease)
    if regions is None or any(region not in network.sites for region in regions):
        return None
    links = {pair: network.links.get(pair[0], {}).get(pair[1]) for pair in pairwise(regions)}
    per_gb_usd, caps = lease.per_gb_usd, dict.fromkeys(regions, inf)
    for pair in links.keys() - {(lease.src, lease.dst)}:
        if (link := links[pair]) is None:
            return None
        caps.update(dict.fromkeys(pair, link.rate_gbps(request.connections)))
        per_gb_usd += prices.egress_usd_per_gb(*pair, request.volume_gb)
    for bounds, ends in zip(network.caps(), (regions[:-1], regions[1:]), strict=True):
        caps |= {r: min(caps[r], bounds[network.index[r]]) for r in ends}  # of public addresses
    most = {region: most_vms(request, network.sites[region]) for region in regions}
    if per_gb_usd == inf or min(most.values()) < 1 or min(caps.values()) <= 0:
        return None
    rtt_ms = sum(link.rtt_ms.expected for link in links.values() if link)
    start_s = request.starts_s(*(network.sites[region] for region in regions))
    begin_s = max(lease.ready_s, start_s) + ramp_up_s(rtt_ms)

    def at(rate_gbps: float) -> tuple[float, float, Cost, dict[str, int]]:
        move_s = duration_s(request.volume_gb, rate_gbps)
        counts = {region: ceil(rate_gbps / caps[region] * (1 - EQUAL)) for region in regions}
        hours = (move_s + start_s) / S_PER_H
        usd_per_h = sum(n * prices.vm_usd_per_h(region) for region, n in counts.items())
        cost = Cost.of(per_gb_usd * request.volume_gb, hours * usd_per_h)
        time_s = begin_s + move_s
        value = time_s
        if request.hour_usd < inf:
            value = cost.total + request.hour_usd * time_s / S_PER_H
        return value, rate_gbps, cost, counts

    most_gbps = min(lease.rate_gbps, *(most[region] * caps[region] for region in regions))
    full = {n * caps[region] for region in regions for n in range(1, most[region] + 1)}
    rates = {most_gbps, *(rate for rate in full if rate < most_gbps)}
    ways = [at(rate) for rate in sorted(rates, reverse=True)]
    within = [way for way in ways if not _misses(request, begin_s, way[1], way[2])]
    value, rate_gbps, cost, counts = min(within or ways, key=lambda way: way[0])
    saved_usd = decision.chosen.allocation.cost_usd - cost.total
    pays = lease.monthly_usd > 0 and saved_usd > 0
    return LeasedPath(
        lease.id,
        regions,
        bool(within),
        bool(within) and value * (1 + request.margin) <= decision.chosen.value_usd,
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
    return (src, relay, dst) if request.relays in {"any", "one", relay} else None


def _misses(request: TransferRequest, begin_s: float, rate_gbps: float, cost: Cost) -> str:
    """Name the limits of the request that a way misses; empty if none."""
    missed = []
    time_s = begin_s + duration_s(request.volume_gb, rate_gbps)
    if request.deadline_s is not None and time_s > request.deadline_s:
        missed.append("the deadline")
    if request.min_throughput_gbps and rate_gbps < request.min_throughput_gbps:
        missed.append("the least rate")
    if request.budget_usd is not None and cost.total > request.budget_usd:
        missed.append("the budget")
    return f"misses {' and '.join(missed)}" if missed else ""
