"""Everything over one path: the exact optimum in closed form, and which relays come first.

On one path the cost ``V (8 D / R + t_start)`` falls with the rate while the numbers of VMs stay,
so an optimum lies where some VM is just full.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TypeAlias

from planner.model.units import S_PER_H
from planner.transfer.allocation import EQUAL, Allocation, allocate, whole_vms
from planner.transfer.problem import Relay, TransferProblem

# Relays as fast as the fastest within this share, or within the same step below it, are ranked by
# price, then by distance: repeated measurements of a link differ by 3.8 % in the median (60 pairs
# of the January 2022 grid), so that nothing is known of smaller differences.
AS_FAST = 0.05
Stage: TypeAlias = tuple[float, int, float]
"""The rate that one VM of a site forwards in Gbit/s, its quota, and the price of an hour."""


def path_stages(transfer: TransferProblem, relay: Relay | None) -> list[Stage]:
    """Return the sites of a path."""
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    pair_gbps = direct.pair_gbps if direct else 0.0
    into, out = (relay.in_gbps, relay.out_gbps) if relay else (pair_gbps, pair_gbps)
    through = [(relay.vm_gbps, relay.quota, relay.vm_usd_per_h)] if relay else []
    return [
        (min(into, src.cap_gbps), src.quota, src.vm_usd_per_h),
        *through,
        (min(out, dst.cap_gbps), dst.quota, dst.vm_usd_per_h),
    ]


def greatest_rate_gbps(transfer: TransferProblem, relay: Relay | None) -> float:
    """Return the rate of one path with every VM that the quotas allow."""
    return min([gbps * quota for gbps, quota, _ in path_stages(transfer, relay)])


def best_on_path(
    transfer: TransferProblem,
    relay: Relay | None,
    *,
    time_value_usd_per_h: float = 0.0,
    at_least_gbps: float = 0.0,
    budget_usd: float = inf,
) -> Allocation | None:
    """Return the allocation on one path with least cost plus time, or None if there is none.

    Parameters
    ----------
    transfer : TransferProblem
    relay : Relay | None
        None for the direct path.
    time_value_usd_per_h : float
        Infinity asks for the greatest rate.
    at_least_gbps, budget_usd : float
        Limits.
    """
    stages = path_stages(transfer, relay)
    most = min([gbps * quota for gbps, quota, _ in stages])
    path = relay or transfer.direct
    if path is None or most <= 0 or at_least_gbps > most * (1 + EQUAL):
        return None
    least = at_least_gbps * (1 - EQUAL)
    rates = {most}
    for gbps, quota, _ in stages:
        full = [k * gbps for k in range(1, min(quota, int(most / gbps) + 1) + 1)]
        rates.update([rate for rate in full if least <= rate <= most])
    egress_usd = transfer.volume_gb * path.usd_per_gb
    start_h, gbps_h = transfer.vm_start_s / S_PER_H, transfer.gbps_h
    # With one VM at each site no rate is cheaper by the hour: where that is no better than the
    # best, nothing slower is.
    least_usd_per_h = sum([usd_per_h for *_, usd_per_h in stages])
    best_rate, best_value = 0.0, inf
    for rate in sorted(rates, reverse=True):
        hours = gbps_h / rate
        least_usd = egress_usd + least_usd_per_h * (hours + start_h)
        if best_rate and least_usd + time_value_usd_per_h * hours >= best_value:
            break
        usd_per_h = sum([whole_vms(rate / gbps) * usd for gbps, _, usd in stages])
        cost_usd = egress_usd + usd_per_h * (hours + start_h)
        if cost_usd > budget_usd * (1 + EQUAL):
            continue
        if time_value_usd_per_h == inf:
            best_rate = rate
            break
        value = cost_usd + time_value_usd_per_h * hours
        if value < best_value * (1 - EQUAL):
            best_rate, best_value = rate, value
    if not best_rate:
        return None
    if relay is None:
        return allocate(transfer, best_rate, {})
    return allocate(transfer, 0.0, {relay.region: best_rate}, relays=[relay])


def ranked_relays(
    relays: Sequence[Relay],
    rates_gbps: Sequence[float],
    most: int,
    *,
    rtt_ms: Sequence[float],
    at_least_gbps: float = 0.0,
    by_price: bool = False,
) -> list[Relay]:
    """Return the best relays, best first.

    Parameters
    ----------
    relays : sequence of Relay
    rates_gbps : sequence of float
        What each of them carries with all its VMs (:func:`greatest_rate_gbps`).
    most : int
        How many to return at most.
    rtt_ms : sequence of float
        Of the path through each region; among equals, the nearest comes first.
    at_least_gbps : float
        Relays that can't carry this with all their VMs are left out.
    by_price : bool
        Whether the egress fee alone ranks them, and speed only among equals. Otherwise they are
        ranked by speed in steps of :data:`AS_FAST`, then by fee.
    """
    least = at_least_gbps * (1 - EQUAL)
    able = [item for item in zip(rates_gbps, relays, strict=True) if item[0] >= least]
    if not able:
        return []
    fastest = max(rate for rate, _ in able)

    def key(item: tuple[float, Relay]) -> tuple[float, float, float, int]:
        rate, relay = item
        step = int((1 - rate / fastest) / AS_FAST)
        first = (relay.usd_per_gb, -rate) if by_price else (step, relay.usd_per_gb)
        return (*first, rtt_ms[relay.region], relay.region)

    return [relay for _, relay in sorted(able, key=key)[:most]]
