"""An answer to one transfer: flows and VMs, with their cost; and the best of those over one path.

On one path the cost ``V (8 D / R + t_lead)`` falls with the rate while the numbers of VMs stay,
so an optimum lies where some VM is just full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import TypeAlias

from planner.model.units import S_PER_H
from planner.transfer.problem import TransferPath, TransferProblem

# Figures are good to several percent: 1e-9 relative is equality.
EQUAL = 1e-9
# What rates that were backed off from an edge by EQUAL may add up to beyond a whole VM.
ROUNDING = 1e-7
Stage: TypeAlias = tuple[float, int, float]
"""The rate that one VM of a site forwards in Gbit/s, its quota, and the price of an hour."""


# Not frozen: a plan makes many, and freezing triples the time of that.
@dataclass(slots=True)
class Allocation:
    """Flows and VMs, with their cost; not changed once made.

    Attributes
    ----------
    rate_gbps : float
    flows : dict
        Relay's region, or None for the direct path, to Gbit/s; only those used.
    relay_vms : dict
        Relay's region to number of VMs.
    usd_per_h, paid_h : float
        Price of its VMs with all fees by the hour, and how long they are paid for.
    """

    rate_gbps: float
    flows: dict[int | None, float]
    src_vms: int
    dst_vms: int
    relay_vms: dict[int, int]
    egress_usd: float
    usd_per_h: float
    paid_h: float

    @property
    def vm_usd(self) -> float:
        """Cost of its VMs, with all fees by the hour."""
        return self.usd_per_h * self.paid_h

    @property
    def cost_usd(self) -> float:
        """Egress and VMs together, with all fees."""
        return self.egress_usd + self.vm_usd

    @property
    def direct_gbps(self) -> float:
        """The rate over the direct path."""
        return self.flows.get(None, 0.0)


def is_simple(transfer: TransferProblem, found: Allocation) -> bool:
    """Return whether an allocation uses no more paths than it may, each for part enough."""
    least_gbps = transfer.least_part * found.rate_gbps * (1 - ROUNDING)
    return len(found.flows) <= transfer.most_paths and min(found.flows.values()) >= least_gbps


def whole_vms(load: float) -> int:
    """Return the whole number of VMs that a load needs, forgiving rounding errors; at least 1."""
    return max(1, ceil(load - ROUNDING * (1.0 + load)))


def allocate(
    transfer: TransferProblem, flows: Sequence[tuple[TransferPath, float]], *, stretch: bool = False
) -> Allocation:
    """Return paths' flows in Gbit/s with the fewest VMs that carry them, and the cost of both.

    With `stretch`, all flows are raised in proportion until one of the VMs is full: the same VMs,
    for a shorter time.
    """
    src, dst = transfer.src, transfer.dst
    rate = sum([flow for _, flow in flows])
    # Loads are in VMs: connections are added up, what limits a link alone is not.
    out_use = in_use = egress_usd_gbps = 0.0
    out_load, in_load = rate / src.cap_gbps, rate / dst.cap_gbps
    for path, flow in flows:
        out_use += flow / path.in_connections_gbps
        in_use += flow / path.out_connections_gbps
        out_load = max(out_load, flow / path.in_gbps)
        in_load = max(in_load, flow / path.out_gbps)
        egress_usd_gbps += flow * path.usd_per_gb
    out_load, in_load = max(out_load, out_use), max(in_load, in_use)
    src_vms, dst_vms = whole_vms(out_load), whole_vms(in_load)
    load = max(out_load / src_vms, in_load / dst_vms)
    usd_per_h = src_vms * src.vm_usd_per_h + dst_vms * dst.vm_usd_per_h + transfer.usd_per_h
    relay_vms = {}
    for path, flow in flows:
        vms = flow / path.vm_gbps
        if path.region is None:
            load = max(load, vms)  # of what the link carries in all
        else:
            relay_vms[path.region] = whole = whole_vms(vms)
            load = max(load, vms / whole)
            usd_per_h += whole * path.vm_usd_per_h + path.usd_per_h
    egress_usd = egress_usd_gbps * transfer.volume_gb / rate
    share = load if stretch and load < 1 else 1.0
    of_paths = {path.region: flow / share for path, flow in flows}
    rate /= share
    hours = transfer.gbps_h / rate + transfer.lead_s / S_PER_H
    return Allocation(rate, of_paths, src_vms, dst_vms, relay_vms, egress_usd, usd_per_h, hours)


# ---- everything over one path --------------------------------------------------------------------


def _stages(transfer: TransferProblem, path: TransferPath) -> list[Stage]:
    """Return the sites of a path, and its link where that has a capacity of its own."""
    src, dst = transfer.src, transfer.dst
    first = (min(path.in_gbps, src.cap_gbps), src.quota, src.vm_usd_per_h)
    last = (min(path.out_gbps, dst.cap_gbps), dst.quota, dst.vm_usd_per_h)
    if path.region is None:
        return [first, last] if path.vm_gbps == inf else [first, last, (path.vm_gbps, 1, 0.0)]
    return [first, (path.vm_gbps, path.quota, path.vm_usd_per_h), last]


def greatest_rate_gbps(transfer: TransferProblem, path: TransferPath | None) -> float:
    """Return the rate of one path with every VM that the quotas allow; 0 without a path."""
    src, dst = transfer.src, transfer.dst
    most = path.most_gbps(src.quota, dst.quota) if path else 0.0
    return min(most, src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)


def best_on_path(
    transfer: TransferProblem,
    path: TransferPath | None,
    *,
    time_value_usd_per_h: float = 0.0,
    at_least_gbps: float = 0.0,
    budget_usd: float = inf,
) -> Allocation | None:
    """Return the allocation on one path with least cost plus time, or None if there is none.

    A time value of infinity asks for the greatest rate.
    """
    if path is None:
        return None
    stages = _stages(transfer, path)
    most = min([gbps * quota for gbps, quota, _ in stages])
    if most <= 0 or at_least_gbps > most * (1 + EQUAL):
        return None
    least = at_least_gbps * (1 - EQUAL)
    rates = {most}
    for gbps, quota, _ in stages:
        full = [k * gbps for k in range(1, min(quota, int(most / gbps) + 1) + 1)]
        rates.update([rate for rate in full if least <= rate <= most])
    egress_usd = transfer.volume_gb * path.usd_per_gb
    lead_h, gbps_h = transfer.lead_s / S_PER_H, transfer.gbps_h
    # With one VM at each site no rate is cheaper by the hour: where that is no better than the
    # best, nothing slower is.
    fixed_usd_per_h = transfer.usd_per_h + path.usd_per_h
    least_usd_per_h = fixed_usd_per_h + sum([usd_per_h for *_, usd_per_h in stages])
    best_rate, best_value = 0.0, inf
    for rate in sorted(rates, reverse=True):
        hours = gbps_h / rate
        least_usd = egress_usd + least_usd_per_h * (hours + lead_h)
        if best_rate and least_usd + time_value_usd_per_h * hours >= best_value:
            break
        usd_per_h = sum([whole_vms(rate / gbps) * usd for gbps, _, usd in stages])
        usd_per_h += fixed_usd_per_h
        cost_usd = egress_usd + usd_per_h * (hours + lead_h)
        if cost_usd > budget_usd * (1 + EQUAL):
            continue
        if time_value_usd_per_h == inf:
            best_rate = rate
            break
        value = cost_usd + time_value_usd_per_h * hours
        if value < best_value * (1 - EQUAL):
            best_rate, best_value = rate, value
    return allocate(transfer, [(path, best_rate)]) if best_rate else None
