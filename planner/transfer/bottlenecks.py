"""The constraints that bind a path or a plan."""

from __future__ import annotations

from dataclasses import replace

from planner.model.answer import Bottleneck
from planner.model.units import MBPS_PER_GBPS, gbps_text
from planner.transfer.optimum import rate_duals
from planner.transfer.options import MARGINAL, OptionEvaluator
from planner.transfer.search import Decision

PER_VM = "Gbit/s per VM"


def bottleneck_of_path(figures: OptionEvaluator, relay: int | None) -> str:
    """Return the constraint that binds one path: that of its slowest link."""
    (rate, what), src, dst = min(
        (figures.binding(*link), *link) for link in figures.pairs_of(relay)
    )
    return {
        "egress cap": f"egress cap of {src} ({gbps_text(rate)} Gbit/s a VM)",
        "ingress cap": f"ingress cap of {dst} ({gbps_text(rate)} Gbit/s a VM)",
        "connections": f"{figures.request.connections} connections {src} -> {dst} "
        f"({gbps_text(rate)} Gbit/s a VM pair)",
        "path": f"path {src} -> {dst} ({gbps_text(rate)} Gbit/s a VM pair)",
    }[what]


def bottlenecks_of(decision: Decision) -> tuple[Bottleneck, ...]:
    """Return the binding constraints of the plan, most valuable first."""
    figures, allocation = decision.search.figures, decision.chosen.allocation
    src, dst = decision.request.src, decision.request.dst
    if not allocation.relay_gbps:
        rate, what = figures.binding(src, dst)
        if what == "connections":
            flow = figures.network.link(src, dst).per_flow_mbps.expected / MBPS_PER_GBPS
            return (Bottleneck(what, f"{src} -> {dst}", flow, "Gbit/s per connection"),)
        region = {"egress cap": src, "ingress cap": dst}.get(what, f"{src} -> {dst}")
        return (Bottleneck(what, region, rate, PER_VM),)
    whole = decision.search.transfer
    used = replace(
        whole,
        src=replace(whole.src, quota=allocation.src_vms),
        dst=replace(whole.dst, quota=allocation.dst_vms),
        direct=whole.direct if allocation.direct_gbps else None,
        relays=[
            replace(relay, quota=allocation.relay_vms[relay.region])
            for relay in whole.relays
            if relay.region in allocation.relay_vms
        ],
    )
    limits, names = rate_duals(used), figures.regions

    def of_link(src: str, dst: str, gain: float) -> Bottleneck:
        flows_decide = figures.deciding(src, dst) is figures.network.link(src, dst).per_flow_mbps
        what = "connections" if flows_decide else "path"
        return Bottleneck(what, f"{src} -> {dst}", gain, PER_VM)

    found = [
        Bottleneck("connections", src, limits.src_connections_gbps, PER_VM),
        Bottleneck("connections", dst, limits.dst_connections_gbps, PER_VM),
        Bottleneck("egress cap", src, limits.src_cap_gbps, PER_VM),
        Bottleneck("ingress cap", dst, limits.dst_cap_gbps, PER_VM),
        *([of_link(src, dst, limits.direct_gbps)] if limits.direct_gbps else []),
        *(of_link(src, names[k], gain) for k, gain in limits.relay_in_gbps.items()),
        *(of_link(names[k], dst, gain) for k, gain in limits.relay_out_gbps.items()),
        *(Bottleneck("relay VM", names[k], g, PER_VM) for k, g in limits.relay_vm_gbps.items()),
    ]
    binding = [b for b in found if b.gain_per_unit > MARGINAL]
    return tuple(sorted(binding, key=lambda b: -b.gain_per_unit))
