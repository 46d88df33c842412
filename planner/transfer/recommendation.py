"""Recommends a plan for one transfer: from a request, a network and prices."""

from __future__ import annotations

from functools import cached_property
from math import ceil

from planner.model.answer import Cost, identified
from planner.model.catalogue import Catalogue
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.rate_cuts.averages import with_first_rates
from planner.transfer import readings, vm_count
from planner.transfer.advice import Adviser
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.bottlenecks import Bottlenecks
from planner.transfer.decision import Decider, Decision
from planner.transfer.explanation import Explanation
from planner.transfer.leases.leased_paths import leased_paths
from planner.transfer.optimum import cost_time_frontier
from planner.transfer.options import Option
from planner.transfer.plan import (
    DirectOption,
    FrontierPoint,
    LeasedPath,
    OneVmOption,
    PathPlan,
    Plan,
    RelayOption,
    Verdict,
)
from planner.transfer.repeated.exploring import explored
from planner.transfer.request import TransferRequest


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
        decider, decision, widest = vm_count.decide(request, network, prices)
    except InfeasibleError as fault:
        raise vm_count.or_raise_quotas(fault, request, network, prices) from None
    exploration, why = None, ""
    beware: tuple[str, ...] = ()
    if request.explore:
        decision, exploration, why, beware = explored(decider, decision, now_s)
    explanation = Explanation(decider, decision, catalogue, now_s)
    chosen = decision.chosen
    allocation = chosen.allocation
    low = decider.rate_at(allocation, "low")
    high = decider.rate_at(allocation, "high")
    builder = _PlanBuilder(decider, decision.fastest_direct, widest)
    adviser = Adviser(decider, decision, catalogue, widest)
    paths, vms = builder.paths(allocation), decider.vms(allocation)
    assumed = readings.warnings(paths, vms, network) if request.connections > 1 else []
    limited = vm_count.quota_warnings(request, network, prices, chosen, vms)
    plan = Plan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        verdict=verdict_of(allocation),
        reason=why or explanation.reason(),
        throughput_gbps=allocation.rate_gbps,
        throughput_gbps_low=low,
        throughput_gbps_high=high,
        duration_s=chosen.duration_s,
        cost_usd=Cost.of(allocation.egress_usd, allocation.vm_usd),
        paths=paths,
        vms=vms,
        direct=builder.direct(decision.direct),
        best_relay=builder.relay(decision.best_relay) if decision.best_relay else None,
        alternatives=tuple(builder.relay(option) for option in decision.alternatives),
        bottlenecks=builder.bottlenecks.of_plan(decision),
        advice=adviser.advice(),
        warnings=(*notes, *beware, *limited, *assumed, *explanation.warnings()),
        confidence=explanation.confidence(low, high),
        frontier=builder.frontier() if request.frontier else (),
        measure_first=adviser.measure_first(),
        one_vm=builder.one_vm(decision),
        exploration=exploration,
        leases=_leases(request, network, prices, chosen),
    )
    verification = explanation.verification()
    lasting = [warning for warning in plan.warnings if warning not in verification]
    return identified(plan, lasting, *explanation.evidence(), without=("warnings", "confidence"))


def _leases(
    request: TransferRequest, network: Network, prices: Prices, chosen: Option
) -> tuple[LeasedPath, ...]:
    if not request.leases:
        return ()
    return leased_paths(request, network, prices, chosen)


def verdict_of(allocation: Allocation) -> Verdict:
    """Return what an allocation amounts to."""
    if not allocation.relay_gbps:
        return "direct"
    return "split" if allocation.direct_gbps or len(allocation.relay_gbps) > 1 else "relay"


class _PlanBuilder:
    """Builds the parts of a plan: turns positions and flows into names and paths."""

    def __init__(self, decider: Decider, fastest_direct: Option | None, widest: Decider) -> None:
        self.decider = decider
        self.fastest_direct = fastest_direct
        self.widest = widest
        self.request = decider.request
        self.regions = decider.regions
        self.bottlenecks = Bottlenecks(decider)

    def paths(self, allocation: Allocation) -> tuple[PathPlan, ...]:
        flows: list[tuple[int | None, float]] = sorted(
            allocation.relay_gbps.items(), key=lambda item: -item[1]
        )
        if allocation.direct_gbps:
            flows.insert(0, (None, allocation.direct_gbps))
        counts = self._path_connections(flows, allocation)
        fees = self.decider.fees.usd_per_gb(allocation)
        between = {relay: () if relay is None else (self.regions[relay],) for relay, _ in flows}
        return tuple(
            PathPlan(
                (self.request.src, *between[relay], self.request.dst),
                flow_gbps,
                flow_gbps / allocation.rate_gbps,
                connections,
                self.decider.path_rtt_ms(relay),
                fees[relay],
                self.bottlenecks.of_path(relay),
                addresses=self.decider.network.addresses(
                    (self.request.src, *between[relay], self.request.dst)
                ),
            )
            for (relay, flow_gbps), connections in zip(flows, counts, strict=True)
        )

    def _path_connections(
        self, flows: list[tuple[int | None, float]], allocation: Allocation
    ) -> list[int]:
        """Return how many connections each path opens on each of its links.

        As many as its rate needs. As long as VMs have connections to spare, each path gets its
        share of those that its rate was measured with: single ones may be slow.
        """
        if len(flows) == 1:
            return [self._connections(allocation)]
        each, network = self.request.connections, self.decider.network
        needs, extras = [], []
        for relay, flow in flows:
            links = [network.link(a, b) for a, b in self.decider.fees.links(relay)]
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

    def direct(self, option: Option | None) -> DirectOption:
        shown = option or self.fastest_direct
        if shown is None:
            state = self.decider.network.states.get((self.request.src, self.request.dst))
            reason = f"the link is down since {state.since}" if state else "nothing is known of it"
            return DirectOption(False, None, None, None, None, reason)
        allocation = shown.allocation
        return DirectOption(
            option is not None,
            allocation.rate_gbps,
            shown.duration_s,
            Cost.of(allocation.egress_usd, allocation.vm_usd),
            self.decider.path_rtt_ms(None),
            "" if option else "does not meet the request's limits",
            self.decider.rate_at(allocation, "low"),
            self._direct_gbps_high,
            self._connections(allocation),
            self.decider.vms(allocation),
        )

    @cached_property
    def _direct_gbps_high(self) -> float:
        assert self.fastest_direct is not None
        return self.decider.rate_at(self.fastest_direct.allocation, "high")

    def relay(self, option: Option) -> RelayOption:
        (relay,) = option.relays
        direct = self.fastest_direct
        allocation = option.allocation
        low = self.decider.rate_at(allocation, "low")
        gain = gain_low = gain_high = probability = ratio = None
        if direct:
            gain, gain_low, gain_high = self.decider.comparison.faster(option, direct)
            probability = self.decider.comparison.probability(option, direct)
            if direct.allocation.cost_usd > 0:
                ratio = allocation.cost_usd / direct.allocation.cost_usd
        return RelayOption(
            self.regions[relay],
            allocation.rate_gbps,
            gain,
            gain_low,
            option.duration_s,
            Cost.of(allocation.egress_usd, allocation.vm_usd),
            ratio,
            self.decider.path_rtt_ms(relay),
            low,
            self.decider.rate_at(allocation, "high"),
            self._connections(allocation),
            self.decider.vms(allocation),
            gain_high,
            probability,
        )

    def one_vm(self, decision: Decision) -> OneVmOption | None:
        if self.request.vms is not None:
            return None
        several = max(decision.chosen.vms) > 1
        found = vm_count.with_one_vm(self.widest) if several else decision.chosen
        if found is None:
            return None
        allocation = found.allocation
        return OneVmOption(
            verdict_of(allocation),
            tuple(self.regions[relay] for relay in found.relays),
            allocation.rate_gbps,
            found.duration_s,
            Cost.of(allocation.egress_usd, allocation.vm_usd),
        )

    def frontier(self) -> tuple[FrontierPoint, ...]:
        points = []
        for allocation in cost_time_frontier(self.widest.transfer, fees=self.widest.fees):
            option = self.decider.option(allocation)
            points.append(
                FrontierPoint(
                    allocation.rate_gbps,
                    option.duration_s,
                    Cost.of(allocation.egress_usd, allocation.vm_usd),
                    verdict_of(allocation),
                    tuple(self.regions[relay] for relay in option.relays),
                    self.decider.vms(allocation),
                )
            )
        return tuple(points)
