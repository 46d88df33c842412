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


# Not frozen: a plan makes many, and freezing triples the time of that.
@dataclass(slots=True)
class Allocation:
    """Flows and VMs, with their cost; not changed once made.

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
    # Loads are in VMs: connections are added up, what limits a link alone is not.
    out_use = in_use = egress_usd_gbps = 0.0
    out_load, in_load = rate / src.cap_gbps, rate / dst.cap_gbps
    if direct and direct_gbps:
        out_use = in_use = direct_gbps / direct.connections_gbps
        load = direct_gbps / direct.pair_gbps
        out_load, in_load = max(out_load, load), max(in_load, load)
        egress_usd_gbps = direct_gbps * direct.usd_per_gb
    for relay in relays:
        flow = relay_gbps[relay.region]
        out_use += flow / relay.in_connections_gbps
        in_use += flow / relay.out_connections_gbps
        out_load = max(out_load, flow / relay.in_gbps)
        in_load = max(in_load, flow / relay.out_gbps)
        egress_usd_gbps += flow * relay.usd_per_gb
    out_load, in_load = max(out_load, out_use), max(in_load, in_use)
    src_vms, dst_vms = whole_vms(out_load), whole_vms(in_load)
    load = max(out_load / src_vms, in_load / dst_vms)
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


def connections_suffice(transfer: TransferProblem, found: Allocation) -> bool:
    """Return whether an allocation's VMs have the connections that its flows need."""
    out_use = in_use = 0.0
    if transfer.direct and found.direct_gbps:
        out_use = in_use = found.direct_gbps / transfer.direct.connections_gbps
    for relay in transfer.relays:
        if flow := found.relay_gbps.get(relay.region):
            out_use += flow / relay.in_connections_gbps
            in_use += flow / relay.out_connections_gbps
    most = 1 + ROUNDING
    return out_use <= found.src_vms * most and in_use <= found.dst_vms * most


def relevant_relays(transfer: TransferProblem, rate_limit_gbps: float = inf) -> list[Relay]:
    """Return the relays that an optimal allocation can need, the cheapest first.

    A relay k dominates r if it is no dearer (fee and VM), forwards no less with one VM, and needs
    no more connections on either link, where connections can bind at all. While k has room, flow
    moves from r to k at no loss, by shares of a VM that k has in use or by whole VMs; as neither
    link of k is slower than its VM, k then carries at least ``u_k min(n_s, n_d, N_k)``. The direct
    path dominates in the same way, and carries ``P min(n_s, n_d)``. So r is never needed if all
    that dominate it *together* carry the rate, or all that the caps of the ends let through,
    whatever the numbers of VMs at the ends. Dropping whatever is dominated by a single path would
    lose optima: each path has a limit of its own.
    """
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    src_scarce, dst_scarce = scarce_connections(transfer, transfer.relays)
    # With n VMs at the end that has fewer, caps let through at most `cap_gbps` n.
    most_vms = max(1, min(src.quota, dst.quota))
    cap_gbps = max(
        min(src.cap_gbps, dst.cap_gbps * dst.quota), min(src.cap_gbps * src.quota, dst.cap_gbps)
    )
    least_vms = 1
    if rate_limit_gbps < inf:
        least_vms = min(whole_vms(rate_limit_gbps / end.cap_gbps) for end in (src, dst))
    kept: list[Relay] = []
    usable = [relay for relay in transfer.relays if relay.vm_gbps > 0 and relay.quota > 0]
    for r in sorted(usable, key=lambda r: (r.usd_per_gb, -r.vm_gbps, r.vm_usd_per_h, r.region)):
        a = r.in_connections_gbps if src_scarce else 0.0
        b = r.out_connections_gbps if dst_scarce else 0.0
        # What those that dominate it carry for each VM at the ends, and with the least VMs.
        by_vm = by_rate = 0.0
        if direct and direct.usd_per_gb <= r.usd_per_gb and direct.connections_gbps >= max(a, b):
            by_vm, by_rate = direct.pair_gbps, direct.pair_gbps * least_vms
        for k in kept:
            if by_vm >= cap_gbps or by_rate >= rate_limit_gbps:
                break
            is_no_dearer = k.vm_gbps >= r.vm_gbps and k.vm_usd_per_h <= r.vm_usd_per_h
            if is_no_dearer and k.in_connections_gbps >= a and k.out_connections_gbps >= b:
                by_vm += k.vm_gbps * min(1.0, k.quota / most_vms)
                by_rate += k.vm_gbps * min(least_vms, k.quota)
        if by_vm < cap_gbps and by_rate < rate_limit_gbps:
            kept.append(r)
    return kept


def scarce_connections(transfer: TransferProblem, relays: Sequence[Relay]) -> tuple[bool, bool]:
    """Say whether connections can run out at the source, and at the destination.

    They can't where on every path they carry as much as a VM's cap lets through.
    """
    direct = transfer.direct
    direct_gbps = direct.connections_gbps if direct and direct.pair_gbps > 0 else inf
    out_gbps = min([direct_gbps, *[relay.in_connections_gbps for relay in relays]])
    in_gbps = min([direct_gbps, *[relay.out_connections_gbps for relay in relays]])
    return out_gbps < transfer.src.cap_gbps, in_gbps < transfer.dst.cap_gbps


def relay_limit_gbps(relay: Relay, src_vms: int, dst_vms: int) -> float:
    """Return the greatest rate of a relay path with these VMs at the ends and all of the relay."""
    return min(relay.in_gbps * src_vms, relay.out_gbps * dst_vms, relay.vm_gbps * relay.quota)


def rate_bound_gbps(transfer: TransferProblem, relays: Sequence[Relay]) -> float:
    """Return a rate that nothing exceeds: the greatest, where connections cannot run out."""
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    paths_gbps = direct.pair_gbps * min(src.quota, dst.quota) if direct else 0.0
    paths_gbps += sum([relay_limit_gbps(relay, src.quota, dst.quota) for relay in relays])
    direct_gbps = direct.connections_gbps if direct else 0.0
    most_out = max([direct_gbps, *[relay.in_connections_gbps for relay in relays]])
    most_in = max([direct_gbps, *[relay.out_connections_gbps for relay in relays]])
    return min(
        paths_gbps, src.quota * min(src.cap_gbps, most_out), dst.quota * min(dst.cap_gbps, most_in)
    )
