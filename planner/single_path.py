"""Everything over one path: the exact optimum in closed form.

On one path the cost ``V (8 D / R + t_start)`` falls with the rate while the numbers of VMs stay,
so an optimum lies where some VM is just full (or at the lowest rate that is allowed).
"""

from __future__ import annotations

from math import inf

from planner.transfer import EQUAL, Allocation, Relay, Transfer, allocate

Stage = tuple[float, int]  # Gbit/s of one VM, greatest number of VMs


def path_stages(transfer: Transfer, relay: Relay | None) -> list[Stage]:
    """Return what one VM passes on, and how many there may be, at each site of a path."""
    src, dst = transfer.src, transfer.dst
    if relay is None:
        pair = transfer.direct.pair_gbps if transfer.direct else 0.0
        return [(min(pair, src.cap_gbps), src.quota), (min(pair, dst.cap_gbps), dst.quota)]
    return [
        (min(relay.in_gbps, src.cap_gbps), src.quota),
        (relay.vm_gbps, relay.quota),
        (min(relay.out_gbps, dst.cap_gbps), dst.quota),
    ]


def greatest_rate_gbps(transfer: Transfer, relay: Relay | None) -> float:
    """Return the rate of one path with every VM that the quotas allow."""
    return min(gbps * quota for gbps, quota in path_stages(transfer, relay))


def best_on_path(
    transfer: Transfer,
    relay: Relay | None,
    *,
    time_value_usd_per_h: float = 0.0,
    at_least_gbps: float = 0.0,
    budget_usd: float = inf,
) -> Allocation | None:
    """Return the allocation on one path with least cost plus time, or None if there is none.

    Parameters
    ----------
    transfer : Transfer
    relay : Relay | None
        None for the direct path.
    time_value_usd_per_h : float
        Infinity asks for the greatest rate.
    at_least_gbps, budget_usd : float
        Limits.
    """
    stages = path_stages(transfer, relay)
    most = min(gbps * quota for gbps, quota in stages)
    if most <= 0 or at_least_gbps > most * (1 + EQUAL):
        return None
    rates = {k * gbps for gbps, quota in stages for k in range(1, quota + 1)}
    rates = {rate for rate in rates if at_least_gbps <= rate <= most} | {most}
    if at_least_gbps > 0:
        rates.add(min(at_least_gbps, most))
    best: Allocation | None = None
    best_value = inf
    for rate in sorted(rates, reverse=True):
        if relay is None:
            allocation = allocate(transfer, rate, {})
        else:
            allocation = allocate(transfer, 0.0, {relay.region: rate})
        if allocation.cost_usd > budget_usd * (1 + EQUAL):
            continue
        if time_value_usd_per_h == inf:
            return allocation
        value = allocation.cost_usd + time_value_usd_per_h * transfer.gbps_h / rate
        if value < best_value * (1 - EQUAL):
            best, best_value = allocation, value
    return best
