"""Why: the reason in a sentence or two, what binds, what would help, and how sure it all is."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

from planner.catalogue import Catalogue, VmType
from planner.decision import Decider, Decision, Option
from planner.network import SECONDS_PER_DAY, Estimate
from planner.plan import Advice, Bottleneck
from planner.single_path import best_on_path
from planner.throughput import MBIT_PER_MB
from planner.transfer import Transfer
from planner.unicast import rate_limits
from planner.units import MBPS_PER_GBPS, S_PER_H

WORTH_SAYING = 1.05  # an effect below five percent is no advice
UNLUCKY_SHARE = 0.85  # of the VM type's cap, reached by none of a VM's legs
LEGS_TO_JUDGE_A_VM = 3
WORTH_A_CHANGE = 1.5  # of VM type
PROBE_S = 10.0
WORTH_A_VM_S = 5.0  # to save less, nobody starts a VM
MARGINAL = 1e-6


class Explanation:
    """Puts one decision into words and figures."""

    def __init__(
        self,
        decider: Decider,
        decision: Decision,
        catalogue: Catalogue | None = None,
        now_s: float | None = None,
    ) -> None:
        self.decider = decider
        self.decision = decision
        self.request = decision.request
        self.network = decider.network
        self.catalogue = catalogue
        self.now_s = now_s
        self.regions = list(decider.network.sites)

    # ---- reason --------------------------------------------------------------------------

    def reason(self) -> str:
        """Return why this plan and no other, in plain sentences."""
        decision = self.decision
        chosen, direct = decision.chosen, decision.direct
        if direct is None:
            return self._why_not_direct() + f" {self._through(chosen)} does."
        if chosen is not direct:
            return self._why_relay(chosen, direct)
        if decision.optimum is not direct and decision.gain:
            gain = decision.gain
            return (
                f"{self._through(decision.optimum)} may be {gain.expected:.2f}x better in "
                f"{self._terms()}, but the bounds say {gain.low:.2f}x to {gain.high:.2f}x, which "
                f"does not surely beat the margin of {self.request.margin:.0%}."
            )
        return self._why_direct(direct)

    def _why_direct(self, direct: Option) -> str:
        best = self.decision.best_relay
        if self.request.relays == "none":
            return "Only the direct path was asked for."
        if best is None:
            return "No relay path is known or permitted."
        if self.request.objective == "latency":
            (relay,) = best.relays
            return (
                f"No relay lowers the round-trip time: the nearest way, via "
                f"{self.regions[relay]}, takes {self.decider.path_rtt_ms(relay):.0f} ms against "
                f"{self.decider.path_rtt_ms(None):.0f} ms."
            )
        gain = best.allocation.rate_gbps / direct.allocation.rate_gbps
        ratio = best.allocation.cost_usd / max(direct.allocation.cost_usd, 1e-12)
        via = self.regions[best.relays[0]]
        if gain <= WORTH_SAYING:
            return (
                f"{self._limit_of_direct()} No relay is faster: the best, {via}, carries "
                f"{gain:.2f}x and costs {ratio:.1f}x."
            )
        if self.request.hour_usd == inf:
            return (
                f"{self._limit_of_direct()} The best relay, {via}, carries {gain:.2f}x, but "
                f"getting up to speed over two legs takes longer than it saves."
            )
        worth = (
            "which does not lower the cost"
            if self.request.hour_usd == 0
            else f"which does not pay at {self.request.hour_usd:g} USD an hour"
        )
        return (
            f"{self._limit_of_direct()} The best relay, {via}, carries {gain:.2f}x but costs "
            f"{ratio:.1f}x, {worth}."
        )

    def _why_relay(self, chosen: Option, direct: Option) -> str:
        if self.request.objective == "latency":
            (relay,) = chosen.relays
            return (
                f"{self._through(chosen)} takes {self.decider.path_rtt_ms(relay):.0f} ms where "
                f"direct takes {self.decider.path_rtt_ms(None):.0f} ms."
            )
        gain = self.decision.gain
        sure = f" (at least {gain.low:.2f}x better in {self._terms()})" if gain else ""
        ratio = chosen.allocation.cost_usd / max(direct.allocation.cost_usd, 1e-12)
        return (
            f"{self._through(chosen)} carries {chosen.allocation.rate_gbps:.2f} Gbit/s where "
            f"direct carries {direct.allocation.rate_gbps:.2f}{sure}, for {ratio:.2f}x the cost. "
            f"{self._limit_of_direct()}"
        )

    def _why_not_direct(self) -> str:
        transfer = self.decision.transfer
        if transfer.direct is None:
            return "Nothing is known of the direct path."
        limits = []
        if self.request.min_throughput_gbps:
            limits.append(f"{self.request.min_throughput_gbps:g} Gbit/s")
        if self.request.deadline_s:
            limits.append(f"the deadline of {self.request.deadline_s:g} s")
        if self.request.budget_usd:
            limits.append(f"the budget of {self.request.budget_usd:g} USD")
        most = best_on_path(transfer, None, time_value_usd_per_h=inf)
        reached = f" ({most.rate_gbps:.2f} Gbit/s at most)" if most else ""
        return f"The direct path cannot meet {' and '.join(limits)}{reached}."

    def _through(self, option: Option) -> str:
        names = [self.regions[relay] for relay in option.relays]
        if not names:
            return "The direct path"
        via = "A relay at " + " and ".join(names)
        return f"A split over the direct path and {' and '.join(names)}" if (
            option.allocation.direct_gbps
        ) else via  # fmt: skip

    def _terms(self) -> str:
        return {
            "time": "time",
            "cost": "cost",
            "latency": "round-trip time",
            "value": f"cost plus time at {self.request.time_value_usd_per_h:g} USD/h",
        }[self.request.objective]

    def _limit_of_direct(self) -> str:
        if self.decision.transfer.direct is None:
            return ""
        src, dst = self.request.src, self.request.dst
        rate, what = self._binding(src, dst)
        return {
            "egress cap": f"{src} VMs send at most {rate:.2f} Gbit/s each to anywhere.",
            "ingress cap": f"{dst} VMs receive at most {rate:.2f} Gbit/s each from anywhere.",
            "connections": f"{self._connections()} {rate:.2f} Gbit/s between one VM pair "
            "(window / RTT each).",
            "path": f"One VM pair reaches {rate:.2f} Gbit/s on the direct path.",
        }[what]

    def _connections(self) -> str:
        count = self.request.connections
        return "One connection carries" if count == 1 else f"{count} connections carry"

    def _binding(self, src: str, dst: str) -> tuple[float, str]:
        """Return what limits one VM pair on a leg, and its figure."""
        leg = self.network.leg(src, dst)
        saturated = leg.aggregate_gbps.expected
        flows = self.request.connections * leg.per_flow_mbps.expected / MBPS_PER_GBPS
        egress = self.network.sites[src].egress_gbps.expected
        ingress = self.network.sites[dst].ingress_gbps.expected
        # An aggregate that the caps made is a matter of caps.
        limits = [(egress, "egress cap"), (ingress, "ingress cap")]
        limits.append((saturated * (1 + MARGINAL), "path"))
        limits.append((flows * (1 + 2 * MARGINAL), "connections"))
        return min(limits)

    # ---- bottlenecks ---------------------------------------------------------------------

    def path_bottleneck(self, relay: int | None) -> str:
        """Return what keeps one path from carrying more."""
        src, dst = self.request.src, self.request.dst
        if relay is None:
            return self._named(*self._binding(src, dst), src, dst)
        via = self.regions[relay]
        first = (*self._binding(src, via), src, via)
        second = (*self._binding(via, dst), via, dst)
        return self._named(*min(first, second))

    def _named(self, rate: float, what: str, src: str, dst: str) -> str:
        return {
            "egress cap": f"egress cap of {src} ({rate:.2f} Gbit/s a VM)",
            "ingress cap": f"ingress cap of {dst} ({rate:.2f} Gbit/s a VM)",
            "connections": f"{self.request.connections} connections {src} -> {dst} "
            f"({rate:.2f} Gbit/s a VM pair)",
            "path": f"path {src} -> {dst} ({rate:.2f} Gbit/s a VM pair)",
        }[what]

    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        """Return the binding constraints of the plan, most valuable first."""
        allocation = self.decision.chosen.allocation
        src, dst = self.request.src, self.request.dst
        if not allocation.relay_gbps:
            rate, what = self._binding(src, dst)
            if what == "connections":
                flow = self.network.leg(src, dst).per_flow_mbps.expected / MBPS_PER_GBPS
                return (Bottleneck(what, f"{src} -> {dst}", flow, "Gbit/s per connection"),)
            region = {"egress cap": src, "ingress cap": dst}.get(what, f"{src} -> {dst}")
            return (Bottleneck(what, region, rate, "Gbit/s per VM"),)
        whole = self.decision.transfer
        used = Transfer(
            whole.volume_gb,
            replace(whole.src, quota=allocation.src_vms),
            replace(whole.dst, quota=allocation.dst_vms),
            whole.direct if allocation.direct_gbps else None,
            [
                replace(relay, quota=allocation.relay_vms[relay.region])
                for relay in whole.relays
                if relay.region in allocation.relay_vms
            ],
            whole.vm_start_s,
        )
        limits = rate_limits(used)
        found = [
            Bottleneck("connections", src, limits.src_connections_gbps, "Gbit/s per VM"),
            Bottleneck("connections", dst, limits.dst_connections_gbps, "Gbit/s per VM"),
            Bottleneck("egress cap", src, limits.src_cap_gbps, "Gbit/s per VM"),
            Bottleneck("ingress cap", dst, limits.dst_cap_gbps, "Gbit/s per VM"),
            *(
                Bottleneck("relay VM", self.regions[relay], gain, "Gbit/s per VM")
                for relay, gain in (limits.relay_vm_gbps or {}).items()
            ),
        ]
        binding = [b for b in found if b.gain_per_unit > MARGINAL]
        return tuple(sorted(binding, key=lambda b: -b.gain_per_unit))

    # ---- advice --------------------------------------------------------------------------

    def advice(self) -> tuple[Advice, ...]:
        """Return what would help, the cheapest remedy first: a relay comes after all of them."""
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
        leg = self.network.leg(src, dst)
        rate, what = self._binding(src, dst)
        if what != "connections":
            return []
        possible = min(
            leg.aggregate_gbps.expected,
            self.network.sites[src].egress_gbps.expected,
            self.network.sites[dst].ingress_gbps.expected,
        )
        if possible < rate * WORTH_SAYING:
            return []
        flow_gbps = leg.per_flow_mbps.expected / MBPS_PER_GBPS
        connections = ceil(possible / flow_gbps)
        window_mb = (
            possible * MBPS_PER_GBPS / self.request.connections
            * leg.rtt_ms.expected / 1000.0 / MBIT_PER_MB
        )  # fmt: skip
        effect = f"{possible:.2f} instead of {rate:.2f} Gbit/s a VM pair"
        return [
            Advice(f"Open {connections} connections a VM instead of "
                   f"{self.request.connections}", effect, 0.0),
            Advice(f"Or raise the TCP receive window at {dst} to {window_mb:.1f} MB "
                   f"(net.ipv4.tcp_rmem)", effect, 0.0),
        ]  # fmt: skip

    def _more_vms(self) -> list[Advice]:
        transfer, direct = self.decision.transfer, self.decision.direct
        if direct is None:
            return []
        more = replace(
            transfer,
            src=replace(transfer.src, quota=direct.allocation.src_vms + 1),
            dst=replace(transfer.dst, quota=direct.allocation.dst_vms + 1),
        )
        faster = best_on_path(more, None, time_value_usd_per_h=inf)
        if faster is None or faster.rate_gbps < direct.allocation.rate_gbps * WORTH_SAYING:
            return []
        saved_s = direct.duration_s - self.decider.option(faster).duration_s
        if saved_s < WORTH_A_VM_S:
            return []
        grown = []
        if faster.src_vms > direct.allocation.src_vms:
            grown.append(f"{faster.src_vms} VMs at {self.request.src}")
        if faster.dst_vms > direct.allocation.dst_vms:
            grown.append(f"{faster.dst_vms} VMs at {self.request.dst}")
        return [
            Advice(
                f"Use {' and '.join(grown)}, direct",
                f"{faster.rate_gbps:.2f} Gbit/s, {saved_s:.0f} s sooner",
                faster.cost_usd - direct.allocation.cost_usd,
            )
        ]

    def _other_vm_type(self) -> list[Advice]:
        if self.catalogue is None or self.decision.direct is None:
            return []
        src, dst = self.request.src, self.request.dst
        rate, what = self._binding(src, dst)
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
                f"up to {getattr(vm, cap):.2f} instead of {rate:.2f} Gbit/s a VM",
                cost,
            )
        ]

    def _unlucky_vm(self) -> list[Advice]:
        """Say when no measured leg of a VM comes near its type's cap (GLOBECOM 2015, section V)."""
        if self.catalogue is None:
            return []
        found = []
        for end in (self.request.src, self.request.dst):
            site = self.network.sites[end]
            outwards = end == self.request.src
            legs = (
                list(self.network.legs[end].values())
                if outwards
                else [row[end] for row in self.network.legs.values() if end in row]
            )
            measured = [
                leg.aggregate_gbps.high for leg in legs if leg.aggregate_gbps.source == "measured"
            ]
            vm = self.catalogue.vm_types.get(site.vm_type)
            cap = (vm.egress_gbps if outwards else vm.ingress_gbps) if vm else 0.0
            if outwards and len(measured) >= LEGS_TO_JUDGE_A_VM and (
                max(measured) < UNLUCKY_SHARE * cap
            ):  # fmt: skip
                found.append(
                    Advice(
                        f"Recreate the VM at {end}",
                        f"it reaches {max(measured):.2f} Gbit/s at best, where a {site.vm_type} "
                        f"reaches {cap:.2f}",
                        0.0,
                    )
                )
        return found

    def _measure(self) -> list[Advice]:
        """Say which leg to measure where the bounds leave the verdict open."""
        decision = self.decision
        gain = decision.gain
        threshold = 1 + self.request.margin
        if gain is None or not gain.low < threshold <= gain.high:
            return []
        src, dst = self.request.src, self.request.dst
        pairs = [(src, dst)]
        for relay in decision.optimum.relays:
            pairs += [(src, self.regions[relay]), (self.regions[relay], dst)]
        widest = max(pairs, key=lambda pair: self._doubt(*pair))
        rate = self.network.leg(*widest).rate_gbps(self.request.connections)
        volume_gb = rate * PROBE_S / 8
        cost = volume_gb * self.decider.prices.egress_usd_per_gb(*widest, volume_gb)
        return [
            Advice(
                f"Measure {widest[0]} -> {widest[1]}",
                f"the widest bounds in this decision; {volume_gb:.1f} GB in {PROBE_S:.0f} s "
                "would tighten it",
                cost,
            )
        ]

    def _doubt(self, src: str, dst: str) -> float:
        estimate = self.deciding(src, dst)
        return (estimate.high - estimate.low) / estimate.expected if estimate.expected else inf

    def deciding(self, src: str, dst: str) -> Estimate:
        """Return the estimate of a leg that its rate rests on."""
        leg = self.network.leg(src, dst)
        flows = self.request.connections * leg.per_flow_mbps.expected / MBPS_PER_GBPS
        if flows < leg.aggregate_gbps.expected:
            return leg.per_flow_mbps
        return leg.aggregate_gbps

    # ---- confidence ----------------------------------------------------------------------

    def confidence(self, low_gbps: float, high_gbps: float) -> str:
        """Return how sure the figures are and how old, in a sentence."""
        src, dst = self.request.src, self.request.dst
        allocation = self.decision.chosen.allocation
        pairs = [(src, dst)] if allocation.direct_gbps else []
        for relay in allocation.relay_gbps:
            pairs += [(src, self.regions[relay]), (self.regions[relay], dst)]
        estimates = [self.deciding(*pair) for pair in pairs]
        counts = {
            source: sum(estimate.source == source for estimate in estimates)
            for source in ("measured", "inferred", "baseline")
        }
        rests = " and ".join(
            f"{n} {source} leg{'s' if n > 1 else ''}" for source, n in counts.items() if n
        )
        text = f"Rests on {rests}: {low_gbps:.2f} to {high_gbps:.2f} Gbit/s"
        times = [e.measured_at_s for e in estimates if e.measured_at_s is not None]
        if times and self.now_s is not None:
            days = max(0.0, (self.now_s - min(times)) / SECONDS_PER_DAY)
            text += f", oldest measurement {_age(days)}"
        if counts["baseline"]:
            text += "; baseline figures come from models, not from measuring these VMs"
        return text + "."

    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know beside the plan."""
        found = []
        loss = [
            (leg.src, leg.dst, leg.loss_pct)
            for pair in self._used_pairs()
            if (leg := self.network.leg(*pair)).loss_pct and leg.loss_pct >= 1.0
        ]
        found += [f"{src} -> {dst} loses {pct:.1f} % of packets." for src, dst, pct in loss]
        for end in (self.request.src, self.request.dst):
            vm = self._vm_type(end)
            if vm and vm.burstable:
                found.append(
                    f"{vm.id} at {end} is burstable: its caps hold only while credits last."
                )
        if self.request.connections > 1 and not self.request.may_split:
            found.append(
                f"{self.request.connections} connections are too few to divide over paths: only "
                "plans over one path were considered."
            )
        return tuple(found)

    def _vm_type(self, region: str) -> VmType | None:
        if self.catalogue is None:
            return None
        return self.catalogue.vm_types.get(self.network.sites[region].vm_type)

    def _used_pairs(self) -> list[tuple[str, str]]:
        src, dst = self.request.src, self.request.dst
        allocation = self.decision.chosen.allocation
        pairs = [(src, dst)] if allocation.direct_gbps else []
        for relay in allocation.relay_gbps:
            pairs += [(src, self.regions[relay]), (self.regions[relay], dst)]
        return pairs


def _age(days: float) -> str:
    if days < 1:
        return "less than a day old"
    if days < 90:
        return f"{days:.0f} day{'s' if days >= 1.5 else ''} old"
    return f"{days / 30.44:.0f} months old" if days < 730 else f"{days / 365.25:.1f} years old"
