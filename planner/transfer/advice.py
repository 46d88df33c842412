"""Remedies that cost less than a relay, the cheapest first."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

from planner.model.answer import Advice
from planner.model.catalogue import Catalogue
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.throughput import MBIT_PER_MB
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, S_PER_H, gbps_text
from planner.transfer.bottlenecks import Bottlenecks
from planner.transfer.decision import Decider, Decision
from planner.transfer.single_path import best_on_path

WORTH_ADVISING = 1.05  # do not advise what gains less than five percent
UNLUCKY_SHARE = 0.85  # of the VM type's cap, reached by none of a VM's links
LINKS_TO_JUDGE_A_VM = 3
WORTH_A_CHANGE = 1.5  # of VM type
PROBE_S = 10.0
MOST_MORE_VMS = 7
LEAST_SAVED_BY_VM_S = 5.0  # starting a VM to save less is not worthwhile


class Adviser:
    """Finds remedies for one decision."""

    def __init__(
        self, decider: Decider, decision: Decision, catalogue: Catalogue | None = None
    ) -> None:
        self.decider = decider
        self.decision = decision
        self.request = decision.request
        self.network = decider.network
        self.regions = decider.regions
        self.catalogue = catalogue
        self.bottlenecks = Bottlenecks(decider)

    def advice(self) -> tuple[Advice, ...]:
        """Return what would help, the cheapest remedy first."""
        found: list[Advice] = []
        if self.decision.transfer.direct:
            found += self._more_connections_or_window()
            found += self._unlucky_vm()
            found += self._more_vms()
            found += self._other_vm_type()
        found += self._measure()
        return tuple(sorted(found, key=lambda advice: advice.cost_usd))

    def _more_connections_or_window(self) -> list[Advice]:
        src, dst = self.request.src, self.request.dst
        link = self.network.link(src, dst)
        rate, what = self.bottlenecks.binding(src, dst)
        if what != "connections":
            return []
        possible = min(
            link.aggregate_gbps.expected,
            self.network.sites[src].egress_gbps.expected,
            self.network.sites[dst].ingress_gbps.expected,
        )
        if possible < rate * WORTH_ADVISING:
            return []
        flow_gbps = link.per_flow_mbps.expected / MBPS_PER_GBPS
        connections = ceil(possible / flow_gbps)
        window_mb = (
            possible
            * MBPS_PER_GBPS
            / self.request.connections
            * link.rtt_ms.expected
            / 1000.0
            / MBIT_PER_MB
        )
        effect = f"{gbps_text(possible)} instead of {gbps_text(rate)} Gbit/s a VM pair"
        return [
            Advice(
                f"Open {connections} connections a VM instead of {self.request.connections}",
                effect,
                0.0,
            ),
            Advice(
                f"Or raise the TCP receive window at {dst} to {window_mb:.1f} MB "
                f"(net.ipv4.tcp_rmem)",
                effect,
                0.0,
            ),
        ]

    def _more_vms(self) -> list[Advice]:
        """Advise the fewest more VMs that make the direct path faster than the plan."""
        transfer, direct, chosen = (
            self.decision.transfer,
            self.decision.direct,
            self.decision.chosen,
        )
        if direct is None:
            return []
        used = direct.allocation
        for added in range(1, MOST_MORE_VMS + 1):
            more = replace(
                transfer,
                src=replace(transfer.src, quota=used.src_vms + added),
                dst=replace(transfer.dst, quota=used.dst_vms + added),
                relays=(),
            )
            faster = best_on_path(more, None, time_value_usd_per_h=inf)
            if faster is None:
                return []
            saved_s = chosen.duration_s - self.decider.option(faster).duration_s
            if (
                saved_s >= LEAST_SAVED_BY_VM_S
                and faster.rate_gbps >= chosen.allocation.rate_gbps * WORTH_ADVISING
            ):
                break
        else:
            return []
        grown = []
        if faster.src_vms > used.src_vms:
            grown.append(f"{faster.src_vms} VMs at {self.request.src}")
        if faster.dst_vms > used.dst_vms:
            grown.append(f"{faster.dst_vms} VMs at {self.request.dst}")
        return [
            Advice(
                f"Use {' and '.join(grown)}, direct",
                f"{gbps_text(faster.rate_gbps)} Gbit/s, {saved_s:.0f} s sooner",
                faster.cost_usd - chosen.allocation.cost_usd,
            )
        ]

    def _other_vm_type(self) -> list[Advice]:
        if self.catalogue is None or self.decision.direct is None:
            return []
        src, dst = self.request.src, self.request.dst
        rate, what = self.bottlenecks.binding(src, dst)
        end = {"egress cap": src, "ingress cap": dst}.get(what)
        if end is None:
            return []
        site = self.network.sites[end]
        now = self.catalogue.vm_types.get(site.vm_type)
        if now is None:
            return []
        cap = "egress_gbps" if end == src else "ingress_gbps"
        larger = [
            vm
            for vm in self.catalogue.vm_types.values()
            if vm.provider == now.provider
            and not vm.burstable
            and getattr(vm, cap) >= rate * WORTH_A_CHANGE
        ]
        if not larger:
            return []
        vm = min(larger, key=lambda vm: vm.price_usd_per_h)
        sooner = rate / min(getattr(vm, cap), inf)
        hours = self.decision.direct.duration_s / S_PER_H
        vms = self.decision.direct.allocation.src_vms
        cost = vms * hours * (vm.price_usd_per_h * sooner - now.price_usd_per_h)
        return [
            Advice(
                f"Use {vm.id} instead of {now.id} at {end}",
                f"up to {gbps_text(getattr(vm, cap))} instead of {gbps_text(rate)} Gbit/s a VM",
                cost,
            )
        ]

    def _unlucky_vm(self) -> list[Advice]:
        """Advise another VM if no measured link comes near the type's cap (GLOBECOM 2015, V)."""
        if self.catalogue is None:
            return []
        src = self.request.src
        site = self.network.sites[src]
        vm = self.catalogue.vm_types.get(site.vm_type)
        cap = vm.egress_gbps if vm else 0.0
        measured = []
        for link in self.network.links[src].values():
            if link.aggregate_gbps.source == "measured":
                measured.append(link.aggregate_gbps.high)
                if measured[-1] >= UNLUCKY_SHARE * cap:
                    return []  # the usual case, most often by the first link
        if len(measured) < LINKS_TO_JUDGE_A_VM:
            return []
        return [
            Advice(
                f"Recreate the VM at {src}",
                f"it reaches {gbps_text(max(measured))} Gbit/s at best, where a "
                f"{site.vm_type} reaches {gbps_text(cap)}",
                0.0,
            )
        ]

    def _measure(self) -> list[Advice]:
        """Advise which link to measure where the bounds leave the verdict open."""
        decision = self.decision
        gain = decision.gain
        threshold = 1 + self.request.margin
        if gain is None or not gain.low < threshold <= gain.high:
            return []
        src, dst = self.request.src, self.request.dst
        pairs = [(src, dst)]
        for relay in decision.optimum.relays:
            pairs += [(src, self.regions[relay]), (self.regions[relay], dst)]
        widest = max(pairs, key=lambda pair: self.bottlenecks.deciding(*pair).relative_width)
        return [to_measure(*widest, self.network, self.decider.prices, self.request.connections)]


def to_measure(src: str, dst: str, network: Network, prices: Prices, connections: int) -> Advice:
    """Return the advice to measure the link whose bounds decide most."""
    volume_gb = network.link(src, dst).rate_gbps(connections) * PROBE_S / BITS_PER_BYTE
    return Advice(
        f"Measure {src} -> {dst}",
        f"the widest bounds in this decision; {volume_gb:.1f} GB in {PROBE_S:.0f} s would tighten "
        "it",
        volume_gb * prices.egress_usd_per_gb(src, dst, volume_gb),
    )
