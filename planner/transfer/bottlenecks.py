"""The constraints that bind a path or a plan."""

from __future__ import annotations

from dataclasses import replace

from planner.model.answer import Bottleneck
from planner.model.estimate import Estimate
from planner.model.units import MBPS_PER_GBPS, gbps_text
from planner.transfer.decision import Decider, Decision
from planner.transfer.optimum import rate_duals  # where there are relays

MARGINAL = 1e-6
PER_VM = "Gbit/s per VM"


class Bottlenecks:
    """Binding constraints of links, paths and plans of one request."""

    def __init__(self, decider: Decider) -> None:
        self.request = decider.request
        self.network = decider.network
        self.regions = decider.regions

    def binding(self, src: str, dst: str) -> tuple[float, str]:
        """Return what limits one VM pair on a link, and its figure."""
        link = self.network.link(src, dst)
        saturated = link.aggregate_gbps.expected
        flows = self.request.connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        egress = self.network.sites[src].egress(link.address).expected
        ingress = self.network.sites[dst].ingress(link.address).expected
        # An aggregate that the caps made is a matter of caps.
        limits = [(egress, "egress cap"), (ingress, "ingress cap")]
        limits.append((saturated * (1 + MARGINAL), "path"))
        limits.append((flows * (1 + 2 * MARGINAL), "connections"))
        return min(limits)

    def deciding(self, src: str, dst: str) -> Estimate:
        """Return the estimate of a link that its rate rests on."""
        link = self.network.link(src, dst)
        flows = self.request.connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        if flows < link.aggregate_gbps.expected:
            return link.per_flow_mbps
        return link.aggregate_gbps

    def of_path(self, relay: int | None) -> str:
        """Return the constraint that binds one path."""
        src, dst = self.request.src, self.request.dst
        if relay is None:
            return self._named(*self.binding(src, dst), src, dst)
        via = self.regions[relay]
        first = (*self.binding(src, via), src, via)
        second = (*self.binding(via, dst), via, dst)
        return self._named(*min(first, second))

    def _named(self, rate: float, what: str, src: str, dst: str) -> str:
        return {
            "egress cap": f"egress cap of {src} ({gbps_text(rate)} Gbit/s a VM)",
            "ingress cap": f"ingress cap of {dst} ({gbps_text(rate)} Gbit/s a VM)",
            "connections": f"{self.request.connections} connections {src} -> {dst} "
            f"({gbps_text(rate)} Gbit/s a VM pair)",
            "path": f"path {src} -> {dst} ({gbps_text(rate)} Gbit/s a VM pair)",
        }[what]

    def of_plan(self, decision: Decision) -> tuple[Bottleneck, ...]:
        """Return the binding constraints of the plan, most valuable first."""
        allocation = decision.chosen.allocation
        src, dst = self.request.src, self.request.dst
        if not allocation.relay_gbps:
            rate, what = self.binding(src, dst)
            if what == "connections":
                flow = self.network.link(src, dst).per_flow_mbps.expected / MBPS_PER_GBPS
                return (Bottleneck(what, f"{src} -> {dst}", flow, "Gbit/s per connection"),)
            region = {"egress cap": src, "ingress cap": dst}.get(what, f"{src} -> {dst}")
            return (Bottleneck(what, region, rate, PER_VM),)
        whole = decision.transfer
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
        limits, names = rate_duals(used), self.regions
        found = [
            Bottleneck("connections", src, limits.src_connections_gbps, PER_VM),
            Bottleneck("connections", dst, limits.dst_connections_gbps, PER_VM),
            Bottleneck("egress cap", src, limits.src_cap_gbps, PER_VM),
            Bottleneck("ingress cap", dst, limits.dst_cap_gbps, PER_VM),
            *([self._of_link(src, dst, limits.direct_gbps)] if limits.direct_gbps else []),
            *(self._of_link(src, names[k], gain) for k, gain in limits.relay_in_gbps.items()),
            *(self._of_link(names[k], dst, gain) for k, gain in limits.relay_out_gbps.items()),
            *(
                Bottleneck("relay VM", names[k], gain, PER_VM)
                for k, gain in limits.relay_vm_gbps.items()
            ),
        ]
        binding = [b for b in found if b.gain_per_unit > MARGINAL]
        return tuple(sorted(binding, key=lambda b: -b.gain_per_unit))

    def _of_link(self, src: str, dst: str, gain: float) -> Bottleneck:
        """Return the limit of one link: its path, or the connections of one VM on it."""
        flows_decide = self.deciding(src, dst) is self.network.link(src, dst).per_flow_mbps
        what = "connections" if flows_decide else "path"
        return Bottleneck(what, f"{src} -> {dst}", gain, PER_VM)
