"""An answer to one transfer: flows and VMs, with their cost; and which relays it can need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from planner.model.units import S_PER_H
from planner.transfer.problem import Relay, TransferProblem

# Figures are good to several percent: 1e-9 relative is equality.
EQUAL = 1e-9
# What rates that were backed off from an edge by EQUAL may add up to beyond a whole VM.
ROUNDING = 1e-7


@dataclass(frozen=True, slots=True)
class Allocation:
    """Flows and VMs, with their cost.

    Attributes
    ----------
    rate_gbps : float
    direct_gbps : float
    relay_gbps : dict
        Relay's region to Gbit/s; only those used.
    src_vms, dst_vms : int
    relay_vms : dict
        Relay's region to number of VMs.
    egress_usd, vm_usd : float
    """

    rate_gbps: float
    direct_gbps: float
    relay_gbps: dict[int, float]
    src_vms: int
    dst_vms: int
    relay_vms: dict[int, int]
    egress_usd: float
    vm_usd: float

    @property
    def cost_usd(self) -> float:
        """Egress and VMs together."""
        return self.egress_usd + self.vm_usd


def whole_vms(load: float) -> int:
    """Return the whole number of VMs that a load needs, forgiving rounding errors; at least 1."""
    return max(1, ceil(load - ROUNDING * (1.0 + load)))


def allocate(
    transfer: TransferProblem,
    direct_gbps: float,
    relay_gbps: dict[int, float],
    *,
    stretch: bool = False,
    relays: Sequence[Relay] | None = None,
) -> Allocation:
    """Return flows with the fewest VMs that carry them, and the cost of both.

    Parameters
    ----------
    transfer : TransferProblem
    direct_gbps : float
    relay_gbps : dict
        Relay's region to Gbit/s.
    stretch : bool
        Whether to raise all flows in proportion until one of the VMs is full: the same VMs, for
        a shorter time.
    relays : sequence of Relay, optional
        Those of `relay_gbps`, from a caller that has them at hand.
    """
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    if relays is None:
        relays = [r for r in transfer.relays if r.region in relay_gbps] if relay_gbps else []
    rate = direct_gbps + sum(relay_gbps.values())
    out_use = in_use = egress_usd_gbps = 0.0
    if direct and direct_gbps:
        out_use = in_use = direct_gbps / direct.pair_gbps
        egress_usd_gbps = direct_gbps * direct.usd_per_gb
    for relay in relays:
        flow = relay_gbps[relay.region]
        out_use += flow / relay.in_gbps
        in_use += flow / relay.out_gbps
        egress_usd_gbps += flow * relay.usd_per_gb
    out_use = max(out_use, rate / src.cap_gbps)
    in_use = max(in_use, rate / dst.cap_gbps)
    src_vms, dst_vms = whole_vms(out_use), whole_vms(in_use)
    load = max(out_use / src_vms, in_use / dst_vms)
    vm_usd_per_h = src_vms * src.vm_usd_per_h + dst_vms * dst.vm_usd_per_h
    relay_vms = {}
    for relay in relays:
        vms = relay_gbps[relay.region] / relay.vm_gbps
        relay_vms[relay.region] = whole = whole_vms(vms)
        load = max(load, vms / whole)
        vm_usd_per_h += whole * relay.vm_usd_per_h
    egress_usd = egress_usd_gbps * transfer.volume_gb / rate
    if stretch and load < 1:
        rate, direct_gbps = rate / load, direct_gbps / load
        relay_gbps = {region: flow / load for region, flow in relay_gbps.items()}
    hours = transfer.gbps_h / rate + transfer.vm_start_s / S_PER_H
    return Allocation(
        rate, direct_gbps, relay_gbps, src_vms, dst_vms, relay_vms, egress_usd, vm_usd_per_h * hours
    )


def relevant_relays(
    transfer: TransferProblem, rate_limit_gbps: float = inf, relays: Sequence[Relay] | None = None
) -> list[Relay]:
    """Return the relays, of all or of those given, that an optimal allocation can need.

    The cheapest comes first.

    A relay k dominates r if it is no dearer (fee and VM) and no slower (either link and VM). While
    k has room, flow moves from r to k at no loss; so r is needed only once *all* that dominate it
    are full, and if filling them already exhausts a connection budget or the rate, r is never
    needed. The direct path has no quota of its own: domination by it is enough. Dropping whatever
    is dominated by a single relay would lose optima.
    """
    candidates = transfer.relays if relays is None else relays
    direct = transfer.direct
    src_quota, dst_quota = transfer.src.quota, transfer.dst.quota
    direct_gbps = direct.pair_gbps if direct else 0.0
    direct_fee = direct.usd_per_gb if direct else inf
    ordered = [
        r
        for r in candidates
        if r.vm_gbps > 0
        and r.quota > 0
        and (direct_fee > r.usd_per_gb or direct_gbps < r.in_gbps or direct_gbps < r.out_gbps)
    ]
    ordered.sort(key=lambda r: (r.usd_per_gb, -r.in_gbps, -r.out_gbps, r.vm_usd_per_h, r.region))
    kept: list[Relay] = []
    for r in ordered:
        a, b, u, price = r.in_gbps, r.out_gbps, r.vm_gbps, r.vm_usd_per_h
        src_use = dst_use = rate = 0.0
        for k in kept:
            if k.in_gbps >= a and k.out_gbps >= b and k.vm_gbps >= u and k.vm_usd_per_h <= price:
                full = k.quota * k.vm_gbps
                src_use += full / k.in_gbps
                dst_use += full / k.out_gbps
                rate += full
                if src_use >= src_quota or dst_use >= dst_quota or rate >= rate_limit_gbps:
                    break
        else:
            kept.append(r)
    return kept
