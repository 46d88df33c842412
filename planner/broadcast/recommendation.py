"""One volume to many destinations: who sends to whom, over which trees, with how many VMs.

A source that sends every copy itself pays and waits for each. Destinations, and relays, may forward
what arrives: a copy then pays egress once per link, and each VM's caps and connections are shared
by all that it sends and receives. :mod:`planner.broadcast.search` finds the best trees and proves
how good they are, :mod:`planner.broadcast.decision` whether forwarding is worth recommending; here,
the answer is put together.
"""

from __future__ import annotations

import numpy as np

from planner.broadcast.advice import BroadcastAdviser
from planner.broadcast.candidates import BroadcastCandidate
from planner.broadcast.decision import BroadcastDecider
from planner.broadcast.plan import (
    BroadcastOption,
    BroadcastPlan,
    BroadcastPoint,
    BroadcastVerdict,
    Delivery,
    TreeLink,
    TreePlan,
)
from planner.broadcast.problem import broadcast_problem
from planner.broadcast.request import BroadcastRequest
from planner.model.answer import identified
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import BITS_PER_BYTE
from planner.shared_vms.explanation import OpenedConnections


def recommend_broadcast(
    request: BroadcastRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> BroadcastPlan:
    """Return the recommended plan for one volume to several destinations.

    Parameters
    ----------
    request, network, prices
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline; says what would do.
    DataError
        If a destination can't be reached over known links.
    """
    problem = broadcast_problem(request, network, prices)
    decider = BroadcastDecider(request, problem, network)
    decision = decider.decide()
    chosen = decision.chosen
    builder = _BroadcastPlanBuilder(decider)
    adviser = BroadcastAdviser(decider, decision, network, prices)
    low_s, high_s = problem.range_s(chosen.links_gbit, chosen.vms, chosen.duration_s, chosen.ramp_s)
    rate = problem.volume_gbit / chosen.transfer_s
    search = decider.search
    plan = BroadcastPlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        verdict=builder.verdict(chosen),
        reason=adviser.reason(),
        throughput_gbps=rate,
        throughput_gbps_low=problem.volume_gbit / (high_s - chosen.ramp_s),
        throughput_gbps_high=problem.volume_gbit / (low_s - chosen.ramp_s),
        duration_s=chosen.duration_s,
        duration_s_low=low_s,
        duration_s_high=high_s,
        bound_s=search.bound_s,
        bound_usd=search.bound_usd,
        gap=decision.gap,
        volume_gb=request.volume_gb,
        cost_usd=chosen.cost,
        trees=builder.trees(chosen, adviser.opened, network),
        destinations=tuple(
            Delivery(problem.regions[site], chosen.transfer_s + ramp_s)
            for site, ramp_s in chosen.ramps_s.items()
        ),
        vms=builder.vms(chosen),
        direct=builder.option(search.star),
        best_relay=builder.option(search.best_relay),
        optimum=builder.option(decision.optimum) if decision.optimum is not chosen else None,
        gain=decision.gain.expected if decision.gain else None,
        gain_low=decision.gain.low if decision.gain else None,
        gain_high=decision.gain.high if decision.gain else None,
        probability=decision.gain.probability if decision.gain else None,
        connections=adviser.opened.by_region,
        measure_first=adviser.measure_first(),
        bottlenecks=adviser.bottlenecks(),
        advice=adviser.advice(),
        warnings=notes + adviser.warnings(),
        confidence=adviser.confidence(),
        frontier=builder.frontier() if request.frontier else (),
    )
    return identified(plan)


class _BroadcastPlanBuilder:
    """Builds the parts of a plan: turns positions and volumes into names and rates."""

    def __init__(self, decider: BroadcastDecider) -> None:
        self.decider = decider
        self.problem, self.request = decider.problem, decider.request

    def verdict(self, candidate: BroadcastCandidate) -> BroadcastVerdict:
        if not self.decider.forwarding(candidate):
            return "direct"
        return "tree" if len(candidate.trees) == 1 else "trees"

    def trees(
        self, candidate: BroadcastCandidate, opened: OpenedConnections, network: Network
    ) -> tuple[TreePlan, ...]:
        problem, regions = self.problem, self.problem.regions
        usd_per_gbit = problem.fees.usd_per_gbit(candidate.links_gbit)
        rate = problem.volume_gbit / candidate.transfer_s
        is_relay = problem.is_relay
        found = []
        for arcs, share in zip(candidate.trees, candidate.shares.tolist(), strict=True):
            links = []
            for tail, head in arcs:
                links.append(
                    TreeLink(
                        regions[tail],
                        regions[head],
                        rate * share,
                        opened.count(rate * share, (tail, head)),
                        float(usd_per_gbit[tail, head]) * BITS_PER_BYTE,
                        network.link(regions[tail], regions[head]).address,
                    )
                )
            relays = tuple(regions[head] for _, head in arcs if is_relay[head])
            found.append(TreePlan(share, rate * share, relays, tuple(links)))
        return tuple(sorted(found, key=lambda tree: -tree.share))

    def vms(self, candidate: BroadcastCandidate) -> dict[str, int]:
        """Return the VMs of each region: the source, the destinations as asked, then relays."""
        problem = self.problem
        sites = [problem.root, *problem.terminals]
        sites += [site for site in np.nonzero(candidate.vms)[0].tolist() if site not in sites]
        return {problem.regions[site]: int(candidate.vms[site]) for site in sites}

    def option(self, candidate: BroadcastCandidate | None) -> BroadcastOption | None:
        if candidate is None:
            return None
        return BroadcastOption(
            self.decider.forwarding(candidate),
            self.problem.volume_gbit / candidate.transfer_s,
            candidate.duration_s,
            candidate.cost,
        )

    def frontier(self) -> tuple[BroadcastPoint, ...]:
        return tuple(
            BroadcastPoint(
                point.duration_s,
                point.cost,
                self.decider.relays(point),
                len(point.trees),
                self.vms(point),
            )
            for point in self.decider.search.frontier()
        )
