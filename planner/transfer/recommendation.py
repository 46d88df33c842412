"""Recommends a plan for one transfer, and says what limits it."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Literal

from planner.model.answer import Bottleneck, identified
from planner.model.catalogue import Catalogue
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.rate_cuts import with_first_rates
from planner.model.units import MBPS_PER_GBPS, gbps_text
from planner.transfer import readings, wording
from planner.transfer.advice import Adviser
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.decision import decide, or_raise_quotas, quota_warnings, with_one_vm
from planner.transfer.exploring import explored
from planner.transfer.leased_paths import leased_paths
from planner.transfer.optimum import cost_time_frontier, rate_duals
from planner.transfer.options import MARGINAL, Option, OptionEvaluator
from planner.transfer.plan import (
    DirectOption,
    Exploration,
    FrontierPoint,
    OneVmOption,
    PathPlan,
    Plan,
    RelayOption,
    Verdict,
)
from planner.transfer.request import TransferRequest
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
    at_ends = {
        "src connections": ("connections", src),
        "dst connections": ("connections", dst),
        "src cap": ("egress cap", src),
        "dst cap": ("ingress cap", dst),
    }
    found = []
    for (resource, relay), gain in rate_duals(used)[1].items():
        via = "" if relay is None else figures.regions[relay]
        what, where = at_ends.get(resource, ("relay VM", via))
        if resource.startswith("path") or resource == "direct path":
            link = {"path into": (src, via), "path out of": (via, dst)}.get(resource, (src, dst))
            flows_decide = figures.deciding(*link) is figures.network.link(*link).per_flow_mbps
            what, where = "connections" if flows_decide else "path", " -> ".join(link)
        found.append(Bottleneck(what, where, gain, PER_VM))
    binding = [b for b in found if b.gain_per_unit > MARGINAL]
    return tuple(sorted(binding, key=lambda b: -b.gain_per_unit))


BOTH_BOUNDS: tuple[Literal["low"], Literal["high"]] = ("low", "high")


def recommend(
    request: TransferRequest,
    network: Network,
    prices: Prices,
    *,
    catalogue: Catalogue | None = None,
    now_s: float | None = None,
    notes: tuple[str, ...] = (),
    begins: bool = True,
) -> Plan:
    """Return the recommended plan for one transfer.

    Parameters
    ----------
    request, network, prices
    catalogue : Catalogue, optional
        Lets the advice compare VM types.
    now_s : float, optional
        The time, seconds since 1970, to say how old the measurements are.
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.
    begins : bool
        Whether the transfer begins now; one in progress has spent what links carry at first.

    Raises
    ------
    InfeasibleError
        If no plan meets the request's limits, or quotas leave an end no VM; says which limit and
        what would do.
    DataError
        If nothing is known of any permitted path.
    """
    refuse_without_vms(network, (request.src, request.dst), request.vms_in)
    if begins:
        network = with_first_rates(network, request.src, request.dst, request.volume_gb)
    try:
        decision = decide(request, network, prices)
    except InfeasibleError as fault:
        raise or_raise_quotas(fault, request, network, prices) from None
    exploration: Exploration | None = None
    beware: tuple[str, ...] = ()
    if request.explore:
        decision, exploration, why, beware = explored(decision, now_s)
    else:
        why = wording.Reason(decision).text()
    builder = _PlanBuilder(decision, catalogue, now_s)
    return builder.plan(why, (*notes, *beware), exploration)


def verdict_of(allocation: Allocation) -> Verdict:
    """Return the verdict of an allocation."""
    if not allocation.relay_gbps:
        return "direct"
    return "split" if allocation.direct_gbps or len(allocation.relay_gbps) > 1 else "relay"


class _PlanBuilder:
    """Builds the parts of a plan: turns positions and flows into names and paths."""

    def __init__(
        self, decision: Decision, catalogue: Catalogue | None, now_s: float | None
    ) -> None:
        self.decision, self.request = decision, decision.request
        self.figures = decision.search.figures
        self.catalogue, self.now_s = catalogue, now_s

    def plan(self, reason: str, warnings: tuple[str, ...], exploration: Exploration | None) -> Plan:
        """Return the plan; its warnings begin with those given."""
        decision, request, figures, now_s = self.decision, self.request, self.figures, self.now_s
        chosen, network = decision.chosen, figures.network
        adviser = Adviser(decision, self.catalogue)
        allocation = chosen.allocation
        low, high = (figures.rate_at(allocation, bound) for bound in BOTH_BOUNDS)
        paths, vms = self.paths(allocation), figures.vms(allocation)
        assumed = readings.warnings(paths, vms, network) if request.connections > 1 else []
        vm_types = self.catalogue.vm_types if self.catalogue else {}
        of_decision = wording.warnings(decision, vm_types, now_s)
        plan = Plan(
            plan_id="",
            snapshot=network.snapshot,
            request=request.described(),
            verdict=verdict_of(allocation),
            reason=reason,
            throughput_gbps=allocation.rate_gbps,
            throughput_gbps_low=low,
            throughput_gbps_high=high,
            duration_s=chosen.duration_s,
            cost_usd=chosen.cost,
            paths=paths,
            vms=vms,
            direct=self.direct(),
            best_relay=self.relay(decision.best_relay) if decision.best_relay else None,
            alternatives=tuple(map(self.relay, decision.alternatives)),
            bottlenecks=bottlenecks_of(decision),
            advice=adviser.advice(),
            warnings=(*warnings, *quota_warnings(decision), *assumed, *of_decision),
            confidence=wording.confidence(decision, low, high, now_s),
            frontier=self.frontier() if request.frontier else (),
            measure_first=adviser.measure_first(),
            one_vm=self.one_vm() if request.vms is None else None,
            exploration=exploration,
            leases=leased_paths(decision),
        )
        verification = wording.verification(decision, now_s)
        lasting = [warning for warning in plan.warnings if warning not in verification]
        evidence = wording.evidence(decision)
        return identified(plan, lasting, *evidence, without=("warnings", "confidence"))

    def paths(self, allocation: Allocation) -> tuple[PathPlan, ...]:
        figures = self.figures
        flows: list[tuple[int | None, float]] = sorted(
            allocation.relay_gbps.items(), key=lambda item: -item[1]
        )
        if allocation.direct_gbps:
            flows.insert(0, (None, allocation.direct_gbps))
        counts = self._path_connections(flows, allocation)
        fees = figures.fees.usd_per_gb(allocation)
        found = []
        for (relay, flow_gbps), connections in zip(flows, counts, strict=True):
            regions = (self.request.src, *(dst for _, dst in figures.pairs_of(relay)))
            found.append(
                PathPlan(
                    regions,
                    flow_gbps,
                    flow_gbps / allocation.rate_gbps,
                    connections,
                    figures.path_rtt_ms(relay),
                    fees[relay],
                    bottleneck_of_path(figures, relay),
                    addresses=figures.network.addresses(regions),
                )
            )
        return tuple(found)

    def _path_connections(
        self, flows: list[tuple[int | None, float]], allocation: Allocation
    ) -> list[int]:
        """Return the connections that each path opens on each of its links.

        As many as its rate needs. As long as VMs have connections to spare, each path gets its
        share of those that its rate was measured with: single ones may be slow.
        """
        if len(flows) == 1:
            return [self._connections(allocation)]
        each, network = self.request.connections, self.figures.network
        needs, extras = [], []
        for relay, flow in flows:
            links = [network.link(a, b) for a, b in self.figures.pairs_of(relay)]
            slowest_flow_gbps = min(link.rate_gbps(1) for link in links)
            pair_gbps = min(link.rate_gbps(each) for link in links)
            needs.append(ceil(flow / slowest_flow_gbps * (1 - EQUAL)))
            extras.append(max(0, round(each * flow / pair_gbps) - needs[-1]))
        spare = each * min(allocation.src_vms, allocation.dst_vms) - sum(needs)
        granted = min(1.0, max(0, spare) / (sum(extras) or 1))
        return [need + int(extra * granted) for need, extra in zip(needs, extras, strict=True)]

    def _connections(self, allocation: Allocation) -> int:
        """Return the connections of a plan over one path: all that the VMs of a link can open."""
        src, dst = allocation.src_vms, allocation.dst_vms
        pairs = min(src, dst)
        for relay in allocation.relay_vms.values():
            pairs = max(min(src, relay), min(relay, dst))
        return self.request.connections * pairs

    def direct(self) -> DirectOption:
        option = self.decision.direct
        shown = option or self.decision.fastest_direct
        if shown is None:
            state = self.figures.network.states.get((self.request.src, self.request.dst))
            reason = f"the link is down since {state.since}" if state else "nothing is known of it"
            return DirectOption(False, None, None, None, None, reason)
        return DirectOption(
            feasible=option is not None,
            rtt_ms=self.figures.path_rtt_ms(None),
            reason="" if option else "does not meet the request's limits",
            **self._shown(shown),
        )

    def relay(self, option: Option) -> RelayOption:
        (relay,) = option.relays
        direct, figures = self.decision.fastest_direct, self.figures
        gain = gain_low = gain_high = probability = ratio = None
        if direct:
            gain, gain_low, gain_high = figures.faster(option, direct)
            probability = figures.probability(option, direct)
            if direct.allocation.cost_usd > 0:
                ratio = option.allocation.cost_usd / direct.allocation.cost_usd
        return RelayOption(
            relay=self.figures.regions[relay],
            gain=gain,
            gain_low=gain_low,
            gain_high=gain_high,
            probability=probability,
            cost_ratio=ratio,
            rtt_ms=self.figures.path_rtt_ms(relay),
            **self._shown(option),
        )

    def _shown(self, option: Option) -> dict[str, Any]:
        """Return the figures that an answer gives of an option over one path."""
        allocation = option.allocation
        low, high = (self.figures.rate_at(allocation, bound) for bound in BOTH_BOUNDS)
        return {
            "throughput_gbps": allocation.rate_gbps,
            "throughput_gbps_low": low,
            "throughput_gbps_high": high,
            "duration_s": option.duration_s,
            "cost_usd": option.cost,
            "connections": self._connections(allocation),
            "vms": self.figures.vms(allocation),
        }

    def _outlined(self, option: Option) -> dict[str, Any]:
        """Return the figures that an answer gives of an option over any paths."""
        return {
            "verdict": verdict_of(option.allocation),
            "relays": tuple(self.figures.regions[relay] for relay in option.relays),
            "throughput_gbps": option.allocation.rate_gbps,
            "duration_s": option.duration_s,
            "cost_usd": option.cost,
        }

    def one_vm(self) -> OneVmOption | None:
        found = with_one_vm(self.decision)
        return OneVmOption(**self._outlined(found)) if found else None

    def frontier(self) -> tuple[FrontierPoint, ...]:
        figures = self.figures
        found = cost_time_frontier(self.decision.widest.transfer, fees=figures.fees)
        return tuple(
            FrontierPoint(
                vms=figures.vms(allocation),
                **self._outlined(figures.option(allocation, self.request.hour_usd)),
            )
            for allocation in found
        )
