"""One volume to many destinations: the trees to send over, and the VMs to use.

A source that sends every copy itself pays and waits for each. Destinations, and relays, may forward
what arrives: a copy then pays egress once per link, and each VM's caps and connections are shared
by all that it sends and receives. :mod:`planner.broadcast.search` finds the best trees and proves
how good they are. The plan that it prefers is recommended if it has the least expected regret at
the margin and the attitude to risk (:mod:`planner.shared_vms.drawn_times`), over direct and over
forwarding by destinations alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from planner.broadcast.packing import Packing, PackingProgram, Trees
from planner.broadcast.plan import (
    BroadcastOption,
    BroadcastPlan,
    BroadcastPoint,
    BroadcastVerdict,
    Delivery,
    TreeLink,
    TreePlan,
)
from planner.broadcast.problem import BroadcastProblem, broadcast_problem
from planner.broadcast.request import BroadcastRequest
from planner.broadcast.search import BroadcastCandidate, Search, candidate_of
from planner.model.answer import Advice, identified
from planner.model.errors import DataError
from planner.model.link import Link
from planner.model.link_array import KINDS
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import above_quotas, limited_texts
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE, duration_text, more_usd_text, rate_text
from planner.model.vm_limits import BINDING, SAME_TIME, bottlenecks_of_rows, too_late, widenings
from planner.shared_vms.candidates import with_decided_vms
from planner.shared_vms.connections import connections_by_region
from planner.shared_vms.explanation import OpenedConnections, ramps, sending_warnings
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.solvers.joint import Gain
from planner.transfer.advice import LEAST_SAVED_BY_VM_S, WORTH_ADVISING, to_measure
from planner.transfer.wording import not_worth

SITES_SHOWN = 2


class BroadcastDecision:
    """The decision on one broadcast with some numbers of VMs by region.

    Raises InfeasibleError if no plan meets the deadline; DataError if a destination can't be
    reached, or no region may forward to one without a direct link.

    Attributes
    ----------
    optimum : BroadcastCandidate
        The best by expected figures, chosen or not.
    gap : float
        Of the optimum over the proven bound.
    over_direct : Gain | None
        Of the optimum over direct; None if direct is missing or too late.
    """

    def __init__(
        self,
        request: BroadcastRequest,
        network: Network,
        prices: Prices,
        problem: BroadcastProblem,
        vms: Mapping[str, float],
    ) -> None:
        self.request, self.problem, self._vms = request, problem.with_vms(vms), vms
        self.network, self.prices, self.regions = network, prices, problem.regions
        self.search = Search(request, self.problem)
        star = self.search.star
        if request.relays == "none":
            if star is None:
                raise DataError("A destination has no direct link, and no region may forward.")
            optimum, bound = star, star.value  # the only plan
        elif request.hour_usd == inf:
            optimum, bound = self.search.least_duration(), self.search.bound_s
        else:
            optimum, bound = self._least_value()
        if self._late(optimum) and request.relays != "none":
            in_time = (quick for quick in self._quickest() if not self._late(quick))
            optimum = next(in_time, optimum)
        if self._late(optimum):
            fastest = self.search.least_duration() if request.relays != "none" else optimum
            if self._late(fastest):
                limit = self.problem.fullest_row(fastest.links_gbit, fastest.vms)
                most_s, needed_s = self.search.most_s, fastest.duration_s
                raise too_late(most_s, needed_s, fastest.vm_start_s, *limit)
        own = self._without_relays(request) if optimum.relays else None
        if own and own.value <= optimum.value:  # a separate search, which may get further
            optimum, own = own, None
        direct = star if star and not self._late(star) else None
        self.optimum, self.chosen = optimum, optimum
        self.gap = max(0.0, optimum.value / bound - 1) if bound > 0 else 0.0
        self.over_direct = self._gain(optimum, direct) if direct else None
        # The simplest that the optimum does not beat by enough: direct; then destinations that
        # forward; then relays, which need their own VMs.
        for plain in (direct, own):
            if plain and plain is not optimum and not self._gain(optimum, plain).worth:
                self.chosen = plain
                break

    def _least_value(self) -> tuple[BroadcastCandidate, float]:
        """Return the best candidate found, and a lower bound on the value of any plan.

        Fees depend on metered volumes, so the search is repeated at the fees of the plan found.
        """
        best: BroadcastCandidate | None = None
        searched, bound = self.search, 0.0
        for _ in range(ROUNDS):
            found, proven = searched.least_value()
            bound = max(bound, proven)
            candidate = found or searched.least_duration()
            if best is None or candidate.value < best.value:
                best, self.search = candidate, searched
            fees = self.problem.fees.usd_per_gbit(candidate.links_gbit, missing=inf)
            if same_fees(fees, searched.problem.usd_per_gbit):
                break
            searched = Search(self.request, replace(self.problem, usd_per_gbit=fees))
        assert best
        return best, bound

    def _gain(self, candidate: BroadcastCandidate, over: BroadcastCandidate) -> Gain:
        request = self.request
        return candidate.gain(over, request, self.network, request.margin, request.risk)

    def _quickest(self) -> Iterator[BroadcastCandidate]:
        """Yield candidates of least time, for a deadline that no others meet."""
        plain = replace(self.request, objective="time", deadline_s=None)
        # Trees already found steer the search, so search again without them.
        quick = Search(plain, self.problem).least_duration()
        yield self.search.candidate(Packing(quick.trees, quick.shares), quick.transfer_s)
        if own := self._without_relays(plain):
            yield own
        if self.search.star:
            yield self.search.star

    def _without_relays(self, request: BroadcastRequest) -> BroadcastCandidate | None:
        """Return the best candidate in which only destinations forward, if any keeps the limits."""
        own = replace(request, relays="ends")
        try:
            problem = broadcast_problem(own, self.network, self.prices).with_vms(self._vms)
        except DataError:
            return None
        search = Search(own, problem)
        quickest = request.hour_usd == inf
        found = search.least_duration() if quickest else search.least_value()[0]
        if found is None or self._late(found):
            return None
        sites = [self.problem.regions.index(region) for region in problem.regions]
        trees = tuple(tuple((sites[u], sites[v]) for u, v in arcs) for arcs in found.trees)
        return self.search.candidate(Packing(trees, found.shares), found.transfer_s)

    def _late(self, candidate: BroadcastCandidate) -> bool:
        return candidate.duration_s > self.search.most_s * (1 + SAME_TIME)

    # ---- the answer --------------------------------------------------------------------------

    def trees(self, counts: Sequence[int]) -> tuple[TreePlan, ...]:
        """Return the chosen trees, the largest first, whose links open these connections."""
        problem, chosen, left = self.problem, self.chosen, iter(counts)
        usd_per_gb = problem.fees.usd_per_gbit(chosen.links_gbit) * BITS_PER_BYTE
        found = []
        for arcs, share in zip(chosen.trees, chosen.shares.tolist(), strict=True):
            rate, links = problem.volume_gbit / chosen.transfer_s * share, []
            for arc in arcs:
                src, dst = (self.regions[end] for end in arc)
                fee, address = float(usd_per_gb[arc]), self.network.link(src, dst).address
                links.append(TreeLink(src, dst, rate, next(left), fee, address))
            relays = tuple(self.regions[head] for _, head in arcs if problem.is_relay[head])
            found.append(TreePlan(share, rate, relays, tuple(links)))
        return tuple(sorted(found, key=lambda tree: -tree.share))

    def reason(self) -> str:
        """Explain the choice of this plan in plain sentences."""
        star, chosen, request = self.search.star, self.chosen, self.request
        kind, region = self.problem.fullest_row(chosen.links_gbit, chosen.vms)
        limit = f"The bottleneck is {kind} at {region}."
        own = len(chosen.forwarding) - len(chosen.relays)
        parts = [f"{own} destination{'s forward' if own > 1 else ' forwards'}"] if own else []
        if chosen.relays:
            verb = "relay" if len(chosen.relays) > 1 else "relays"
            parts.append(f"{' and '.join(chosen.relays)} {verb}")
        who = (" and ".join(parts) or "No region forwards") + "."
        if request.relays == "none":
            return f"Only the source may send. {limit}"
        if star is None:
            return f"Some destinations have no direct link. {who} {limit}"
        if self.over_direct is None:
            took = duration_text(star.duration_s)
            return f"Direct takes {took} and misses the deadline. {who} {limit}"
        terms: str = request.objective
        if terms == "value":
            terms = f"cost plus time at ${request.time_value_usd_per_h:g}/h"
        if chosen is star:
            if self.optimum is star:
                return f"Forwarding is not better in {terms}. {limit}"
            margin, risk = request.margin, request.risk
            return f"{not_worth('Forwarding', self.over_direct, terms, margin, risk)} {limit}"
        gain = self._gain(chosen, star)
        return (
            f"{who} This is {gain.expected:.2f}x better in {terms} than sending each copy direct "
            f"({gain.low:.2f}x to {gain.high:.2f}x): "
            f"{star.duration_s / chosen.duration_s:.2f}x as fast, "
            f"{more_usd_text(chosen.cost.total - star.cost.total)}. {limit}"
        )

    def worth_s(self) -> Floats:
        """Return the marginal saving of one more VM of each row that decides the duration, in s."""
        levels = self.problem.levels_s(self.chosen.links_gbit, self.chosen.vms)
        vms = np.maximum(self.chosen.vms[self.problem.resources.row_sites], 1.0)
        return np.where(levels >= levels.max() * (1 - BINDING), levels / vms, 0.0)

    def advice(self) -> tuple[Advice, ...]:
        """Return remedies, the cheapest first."""
        found = [*self._more_connections(), *self._more_vms(), *self._measure()]
        return tuple(sorted(found, key=lambda advice: advice.cost_usd))

    def _more_connections(self) -> list[Advice]:
        problem, links, resources = self.problem, self.chosen.links_gbit, self.problem.resources
        wider = replace(
            resources,
            rate_gbps=problem.most_gbps,
            connections_gbps=np.full_like(problem.most_gbps, np.inf),
        )
        time_s = wider.time_with_s(links, np.maximum(self.chosen.vms, 1.0))
        if self.chosen.transfer_s < time_s * WORTH_ADVISING:
            return []
        most, rates = self.request.connections, links / time_s
        counts = connections_by_region(resources, self.regions, rates, self.chosen.vms, most)
        if (needed := max(counts.values())) <= most:
            return []
        rate, saved_s = rate_text(problem.volume_gbit / time_s), self.chosen.transfer_s - time_s
        effect = f"{rate} to each destination, {duration_text(saved_s)} sooner"
        return [Advice(f"Open up to {needed} connections a VM instead of {most}", effect, 0.0)]

    def _more_vms(self) -> list[Advice]:
        """Advise one more VM at the tightest sites, with its least saving over known trees."""
        chosen, problem = self.chosen, self.problem
        allowed = ~problem.is_relay | (chosen.links_gbit.sum(axis=0) > 0)
        known = [t.arcs for t in self.search.trees.found if not t.entered[~allowed].any()]
        resources = replace(problem.resources, vms=np.maximum(chosen.vms, 1.0))
        places = widenings(resources, self.regions, self.worth_s(), 0.0)
        found = []
        for sites, place in list(places.items())[:SITES_SHOWN]:
            vms = resources.with_vm_at(*sites).vms
            wider = replace(problem, resources=replace(problem.resources, vms=vms))
            packing = PackingProgram(Trees(wider, known)).solve()
            faster = candidate_of(self.request, wider, packing)
            saved_s = chosen.duration_s - faster.duration_s
            if self.request.vms is None and faster.value >= chosen.value:
                continue  # the number of VMs was left to the plan
            enough = chosen.duration_s >= faster.duration_s * WORTH_ADVISING
            if enough and saved_s >= LEAST_SAVED_BY_VM_S:
                where = f"each end of {place}" if len(sites) > 1 else place
                more = {self.regions[site]: int(vms[site]) for site in sites}
                asked = limited_texts(self.network, above_quotas(self.network, more))
                effect = "; ".join([f"at least {duration_text(saved_s)} sooner", *asked])
                usd = faster.cost.total - chosen.cost.total
                found.append(Advice(f"Use {vms[sites[0]]:.0f} VMs at {where}", effect, usd))
        return found

    def _measure(self) -> list[Advice]:
        """Advise which link to measure where the bounds leave the verdict open."""
        star = self.search.star
        if star is None or self.chosen is self.optimum:
            return []
        links = [link for one in (self.optimum, star) for link in self._links(one)]
        widest = max(links, key=lambda link: link.aggregate_gbps.relative_width)
        if widest.aggregate_gbps.relative_width <= 0:
            return []
        of = self.network, self.prices, self.request.connections
        return [to_measure(widest.src, widest.dst, *of)]

    def _links(self, candidate: BroadcastCandidate) -> list[Link]:
        """Return the links of all trees, in their order."""
        arcs = dict.fromkeys(arc for arcs in candidate.trees for arc in arcs)
        return [self.network.link(self.regions[u], self.regions[v]) for u, v in arcs]

    def confidence(self) -> str:
        """Describe the sources of the estimates in a sentence."""
        links = self._links(self.chosen)
        counts = Counter(link.aggregate_gbps.source for link in links)
        parts = [f"{counts[kind]} {kind}" for kind in KINDS if kind in counts]
        return f"Rests on {', '.join(parts)} link{'s' if len(links) > 1 else ''}."


def recommend_broadcast(
    request: BroadcastRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> BroadcastPlan:
    """Return the recommended plan for one volume to several destinations.

    Raises InfeasibleError if no plan meets the deadline; names one that can be met. Raises
    DataError if a destination can't be reached over known links.

    Parameters
    ----------
    notes : tuple of str
        How the request's names were understood; goes first among the warnings.
    """
    problem = broadcast_problem(request, network, prices)
    regions, root = problem.regions, problem.root
    # To begin with, as if the source sent one copy in all: forwarding divides the work.
    links = np.zeros_like(problem.rtt_ms)
    links[root, list(problem.terminals)] = problem.volume_gbit / len(problem.terminals)
    known = bool((problem.resources.rate_gbps[links > 0] > 0).all())
    decision = with_decided_vms(
        request,
        problem,
        request.hour_usd,
        request.deadline_s,
        links if known else None,
        lambda vms: BroadcastDecision(request, network, prices, problem, vms),
    )
    problem, chosen, search = decision.problem, decision.chosen, decision.search
    gain, volume_gbit = decision.over_direct, problem.volume_gbit
    streams = problem.streams(chosen.trees, chosen.shares / chosen.transfer_s)
    of = problem.resources, regions, streams, chosen.vms, request.connections
    opened = OpenedConnections(network, *of)
    used = chosen.links_gbit, chosen.vms, chosen.duration_s
    low_s, high_s = problem.range_s(*used, chosen.lead_s)
    volumes_gb = {(request.src, dst): request.volume_gb for dst in request.destinations}
    warnings = [*notes, *sending_warnings(request, network, volumes_gb, chosen, opened)]
    if request.relays != "none" and decision.gap > 0.01:
        known_to = f"the best plan known is proven only to within {decision.gap:.0%}"
        warnings.append(f"{known_to} of the optimum")
    # Direct links that forwarding replaces, the slowest first.
    direct_gbps = problem.resources.rate_gbps[root]
    missed = (chosen.links_gbit[root] < volume_gbit * (1 - BINDING)) & (direct_gbps > 0)
    replaced = sorted((t for t in problem.terminals if missed[t]), key=lambda t: direct_gbps[t])
    avoided = [(request.src, regions[t]) for t in replaced]
    with_vm = replace(problem.resources, vms=np.maximum(chosen.vms, 1.0))
    verdict: BroadcastVerdict = "tree" if len(chosen.trees) == 1 else "trees"
    plan = BroadcastPlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        fees=problem.fee_lines(*used),
        verdict=verdict if chosen.forwarding else "direct",
        reason=decision.reason(),
        throughput_gbps=volume_gbit / chosen.transfer_s,
        throughput_gbps_low=volume_gbit / (high_s - chosen.lead_s),
        throughput_gbps_high=volume_gbit / (low_s - chosen.lead_s),
        duration_s=chosen.duration_s,
        duration_s_low=low_s,
        duration_s_high=high_s,
        bound_s=search.bound_s,
        bound_usd=search.bound_usd,
        gap=decision.gap,
        volume_gb=request.volume_gb,
        cost_usd=chosen.cost,
        trees=decision.trees(opened.counts),
        destinations=tuple(
            Delivery(regions[site], chosen.transfer_s + chosen.vm_start_s + ramp_s)
            for site, ramp_s in chosen.ramps_s.items()
        ),
        vms=chosen.vms_in_order(),
        direct=_option(search.star),
        best_relay=_option(search.best_relay),
        optimum=_option(decision.optimum if decision.optimum is not chosen else None),
        gain=gain.expected if gain else None,
        gain_low=gain.low if gain else None,
        gain_high=gain.high if gain else None,
        probability=gain.probability if gain else None,
        connections=opened.by_region,
        measure_first=ramps(network, prices, avoided, request.connections),
        bottlenecks=bottlenecks_of_rows(with_vm, regions, decision.worth_s(), chosen.transfer_s),
        advice=decision.advice(),
        warnings=tuple(warnings),
        confidence=decision.confidence(),
        frontier=tuple(
            BroadcastPoint(p.duration_s, p.cost, p.relays, len(p.trees), p.vms_in_order())
            for p in (search.frontier() if request.frontier else ())
        ),
        vm_start_s=chosen.vm_start_s,
    )
    return identified(plan)


def _option(candidate: BroadcastCandidate | None) -> BroadcastOption | None:
    if candidate is None:
        return None
    rate = candidate.figures.volume_gbit / candidate.transfer_s
    return BroadcastOption(candidate.forwarding, rate, candidate.duration_s, candidate.cost)
