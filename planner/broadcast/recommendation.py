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
from collections.abc import Iterator, Mapping
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
from planner.broadcast.search import BroadcastCandidate, Search, candidate_of, value_of
from planner.model.answer import Advice, Bottleneck, Cost, identified
from planner.model.errors import DataError
from planner.model.link_array import KINDS
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import above_quotas, limited_texts
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE, duration_text, more_usd_text, rate_text
from planner.model.vm_limits import (
    BINDING,
    SAME_TIME,
    bottlenecks_of_rows,
    too_late,
    vms_by_region,
    widenings,
)
from planner.shared_vms.connections import connections_by_region
from planner.shared_vms.explanation import OpenedConnections, ramps, untested_text, vm_warnings
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.shared_vms.vm_count import with_decided_vms
from planner.solvers.joint import Gain, compared
from planner.transfer.advice import LEAST_SAVED_BY_VM_S, WORTH_ADVISING, to_measure
from planner.transfer.plan import MeasureFirst
from planner.transfer.wording import not_worth, plain_copy


class BroadcastDecision:
    """The decision on one broadcast with some numbers of VMs by region.

    Attributes
    ----------
    optimum : BroadcastCandidate
        The best by expected figures, chosen or not.
    gap : float
        Of the optimum over the proven bound.
    over_direct : Gain | None
        Of the optimum over direct; None if direct is missing or too late.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline.
    DataError
        If a destination can't be reached, or no region may forward to one without a direct link.
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
        self._network, self._prices = network, prices
        self.search = Search(request, self.problem)
        self._drawn = self.problem.drawn_times(network, request.connections)
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
        own = self._without_relays(request) if self.relays(optimum) else None
        if own and own.value <= optimum.value:  # a separate search, which may get further
            optimum, own = own, None
        direct = star if star and not self._late(star) else None
        self.optimum, self.chosen = optimum, optimum
        self.gap = max(0.0, optimum.value / bound - 1) if bound > 0 else 0.0
        self.over_direct = self.gain(optimum, direct) if direct else None
        # The simplest that the optimum does not beat by enough: direct; then destinations that
        # forward; then relays, which need their own VMs.
        for plain in (direct, own):
            if plain and plain is not optimum and not self.gain(optimum, plain).worth:
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

    def gain(self, candidate: BroadcastCandidate, over: BroadcastCandidate) -> Gain:
        """Return the gain of one candidate over another, in shared draws."""
        worse, better = self._values(over), self._values(candidate)
        ratios = np.divide(worse, better, out=np.ones_like(worse), where=better > 0)
        expected = over.value / candidate.value if candidate.value > 0 else 1.0
        return compared(expected, ratios, self.request.margin, self.request.risk)

    def _values(self, candidate: BroadcastCandidate) -> Floats:
        """Return a candidate's value in each draw."""
        of = candidate.links_gbit, candidate.vms
        longer = self.problem.rounding(*of, candidate.transfer_s)
        busy_s = self._drawn.times_s(*of) * longer + candidate.ramp_s
        vms_usd = self.problem.vm_usd(candidate.vms, busy_s).tolist()
        costs = [Cost.of(candidate.cost.egress, usd) for usd in vms_usd]
        times_s = (busy_s + candidate.vm_start_s).tolist()
        values = map(value_of, [self.request] * len(costs), costs, times_s)
        return np.array(list(values))

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
            problem = broadcast_problem(own, self._network, self._prices).with_vms(self._vms)
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

    def relays(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that only forward."""
        entered = candidate.links_gbit.sum(axis=0) > 0
        return self._named(entered & self.problem.is_relay)

    def forwarding(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that send on what they receive."""
        sends = candidate.links_gbit.sum(axis=1) > 0
        sends[self.problem.root] = False
        return self._named(sends)

    def _named(self, which: np.ndarray) -> tuple[str, ...]:
        return tuple(self.problem.regions[site] for site in np.nonzero(which)[0].tolist())


SITES_SHOWN = 2


def recommend_broadcast(
    request: BroadcastRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> BroadcastPlan:
    """Return the recommended plan for one volume to several destinations.

    Parameters
    ----------
    notes : tuple of str
        How the request's names were understood; goes first among the warnings.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline; names one that can be met.
    DataError
        If a destination can't be reached over known links.
    """
    problem = broadcast_problem(request, network, prices)
    # To begin with, as if the source sent one copy in all: forwarding divides the work.
    links = np.zeros_like(problem.rtt_ms)
    links[problem.root, list(problem.terminals)] = problem.volume_gbit / len(problem.terminals)
    known = bool((problem.resources.rate_gbps[links > 0] > 0).all())
    decision = with_decided_vms(
        request,
        problem,
        request.hour_usd,
        links if known else None,
        lambda vms: BroadcastDecision(request, network, prices, problem, vms),
    )
    problem, chosen, search = decision.problem, decision.chosen, decision.search
    gain = decision.over_direct
    answer = _BroadcastAnswer(decision, network, prices)
    low_s, high_s = problem.range_s(chosen.links_gbit, chosen.vms, chosen.duration_s, chosen.lead_s)
    rate = problem.volume_gbit / chosen.transfer_s
    plan = BroadcastPlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        fees=problem.fee_lines(chosen.links_gbit, chosen.vms, chosen.duration_s),
        verdict=answer.verdict(),
        reason=answer.reason(),
        throughput_gbps=rate,
        throughput_gbps_low=problem.volume_gbit / (high_s - chosen.lead_s),
        throughput_gbps_high=problem.volume_gbit / (low_s - chosen.lead_s),
        duration_s=chosen.duration_s,
        duration_s_low=low_s,
        duration_s_high=high_s,
        bound_s=search.bound_s,
        bound_usd=search.bound_usd,
        gap=decision.gap,
        volume_gb=request.volume_gb,
        cost_usd=chosen.cost,
        trees=answer.trees(),
        destinations=tuple(
            Delivery(problem.regions[site], chosen.transfer_s + chosen.vm_start_s + ramp_s)
            for site, ramp_s in chosen.ramps_s.items()
        ),
        vms=answer.vms(chosen),
        direct=answer.option(search.star),
        best_relay=answer.option(search.best_relay),
        optimum=answer.option(decision.optimum) if decision.optimum is not chosen else None,
        gain=gain.expected if gain else None,
        gain_low=gain.low if gain else None,
        gain_high=gain.high if gain else None,
        probability=gain.probability if gain else None,
        connections=answer.opened.by_region,
        measure_first=answer.measure_first(),
        bottlenecks=answer.bottlenecks(),
        advice=answer.advice(),
        warnings=notes + answer.warnings(),
        confidence=answer.confidence(),
        frontier=answer.frontier() if request.frontier else (),
        vm_start_s=chosen.vm_start_s,
    )
    return identified(plan)


class _BroadcastAnswer:
    """Turns a decision into names and rates, and explains it."""

    def __init__(self, decision: BroadcastDecision, network: Network, prices: Prices) -> None:
        self.decision, self.network, self.prices = decision, network, prices
        self.request, self.problem = decision.request, decision.problem
        self.chosen = decision.chosen
        rates = self.chosen.shares / self.chosen.transfer_s
        streams, most = self.problem.streams(self.chosen.trees, rates), self.request.connections
        of = self.problem.resources, self.problem.regions, streams, self.chosen.vms, most
        self.opened = OpenedConnections(network, *of)

    def verdict(self) -> BroadcastVerdict:
        if not self.decision.forwarding(self.chosen):
            return "direct"
        return "tree" if len(self.chosen.trees) == 1 else "trees"

    def trees(self) -> tuple[TreePlan, ...]:
        problem, chosen, regions = self.problem, self.chosen, self.problem.regions
        usd_per_gb = problem.fees.usd_per_gbit(chosen.links_gbit) * BITS_PER_BYTE
        found, counts = [], iter(self.opened.counts)
        for arcs, share in zip(chosen.trees, chosen.shares.tolist(), strict=True):
            rate, links = problem.volume_gbit / chosen.transfer_s * share, []
            for arc in arcs:
                src, dst = (regions[end] for end in arc)
                fee, address = float(usd_per_gb[arc]), self.network.link(src, dst).address
                links.append(TreeLink(src, dst, rate, next(counts), fee, address))
            relays = tuple(regions[head] for _, head in arcs if problem.is_relay[head])
            found.append(TreePlan(share, rate, relays, tuple(links)))
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
        rate, relays = self.problem.volume_gbit / candidate.transfer_s, self.decision.forwarding
        return BroadcastOption(relays(candidate), rate, candidate.duration_s, candidate.cost)

    def frontier(self) -> tuple[BroadcastPoint, ...]:
        relays = self.decision.relays
        return tuple(
            BroadcastPoint(one.duration_s, one.cost, relays(one), len(one.trees), self.vms(one))
            for one in self.decision.search.frontier()
        )

    # ---- why ---------------------------------------------------------------------------------

    def reason(self) -> str:
        """Explain the choice of this plan in plain sentences."""
        kind, region = self.problem.fullest_row(self.chosen.links_gbit, self.chosen.vms)
        limit = f"The bottleneck is {kind} at {region}."
        star, chosen, decision = self.decision.search.star, self.chosen, self.decision
        who = self._who(chosen)
        if self.request.relays == "none":
            return f"Only the source may send. {limit}"
        if star is None:
            return f"Some destinations have no direct link. {who} {limit}"
        if decision.over_direct is None:
            took = duration_text(star.duration_s)
            return f"Direct takes {took} and misses the deadline. {who} {limit}"
        terms: str = self.request.objective
        if terms == "value":
            terms = f"cost plus time at ${self.request.time_value_usd_per_h:g}/h"
        if chosen is star:
            if decision.optimum is star:
                return f"Forwarding is not better in {terms}. {limit}"
            margin, risk = self.request.margin, self.request.risk
            why = not_worth("Forwarding", decision.over_direct, terms, margin, risk)
            return f"{why} {limit}"
        gain = self.decision.gain(chosen, star)
        return (
            f"{who} This is {gain.expected:.2f}x better in {terms} than sending each copy direct "
            f"({gain.low:.2f}x to {gain.high:.2f}x): "
            f"{star.duration_s / chosen.duration_s:.2f}x as fast, "
            f"{more_usd_text(chosen.cost.total - star.cost.total)}. {limit}"
        )

    def _who(self, candidate: BroadcastCandidate) -> str:
        forwarding = self.decision.forwarding(candidate)
        relays = self.decision.relays(candidate)
        own = len(forwarding) - len(relays)
        parts = []
        if own:
            parts.append(f"{own} destination{'s forward' if own > 1 else ' forwards'}")
        if relays:
            verb = "relay" if len(relays) > 1 else "relays"
            parts.append(f"{' and '.join(relays)} {verb}")
        return (" and ".join(parts) or "No region forwards") + "."

    # ---- limits ------------------------------------------------------------------------------

    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        """Return the rows that decide the duration, and the most that extra VMs there save."""
        resources = replace(self.problem.resources, vms=np.maximum(self.chosen.vms, 1.0))
        of = self._worth_s(), self.chosen.transfer_s
        return bottlenecks_of_rows(resources, self.problem.regions, *of)

    def _worth_s(self) -> Floats:
        levels = self.problem.levels_s(self.chosen.links_gbit, self.chosen.vms)
        resources = self.problem.resources
        vms = np.maximum(self.chosen.vms[resources.row_sites], 1.0)
        return np.where(levels >= levels.max() * (1 - BINDING), levels / vms, 0.0)

    def advice(self) -> tuple[Advice, ...]:
        """Return remedies, the cheapest first."""
        found = [*self._more_connections(), *self._more_vms(), *self._measure()]
        return tuple(sorted(found, key=lambda advice: advice.cost_usd))

    def _more_connections(self) -> list[Advice]:
        problem, links = self.problem, self.chosen.links_gbit
        wider = replace(
            problem.resources,
            rate_gbps=problem.most_gbps,
            connections_gbps=np.full_like(problem.most_gbps, np.inf),
        )
        time_s = wider.time_with_s(links, np.maximum(self.chosen.vms, 1.0))
        if self.chosen.transfer_s < time_s * WORTH_ADVISING:
            return []
        most, of = self.request.connections, (problem.resources, problem.regions)
        counts = connections_by_region(*of, links / time_s, self.chosen.vms, most)
        if (needed := max(counts.values())) <= most:
            return []
        rate, saved_s = rate_text(problem.volume_gbit / time_s), self.chosen.transfer_s - time_s
        effect = f"{rate} to each destination, {duration_text(saved_s)} sooner"
        return [Advice(f"Open up to {needed} connections a VM instead of {most}", effect, 0.0)]

    def measure_first(self) -> tuple[MeasureFirst, ...]:
        """Return ramp tests of the direct links that forwarding replaces, the slowest first."""
        problem, root = self.problem, self.problem.root
        direct = problem.resources.rate_gbps[root]
        missed = self.chosen.links_gbit[root] < problem.volume_gbit * (1 - BINDING)
        ends = [site for site in problem.terminals if missed[site] and direct[site] > 0]
        order = sorted(ends, key=lambda site: direct[site])
        links = [(problem.regions[root], problem.regions[site]) for site in order]
        return ramps(self.network, self.prices, links, self.request.connections)

    def _more_vms(self) -> list[Advice]:
        """Advise one more VM at the tightest sites, with its least saving over known trees."""
        chosen, known = self.chosen, self.decision.search.trees.found
        used = self.decision.relays(chosen)
        allowed = np.isin(self.problem.regions, used) | ~self.problem.is_relay
        resources = replace(self.problem.resources, vms=np.maximum(chosen.vms, 1.0))
        places = widenings(resources, self.problem.regions, self._worth_s(), 0.0)
        found = []
        for sites, place in list(places.items())[:SITES_SHOWN]:
            vms = resources.with_vm_at(*sites).vms
            wider = replace(self.problem, resources=replace(self.problem.resources, vms=vms))
            trees = Trees(wider, (t.arcs for t in known if not t.entered[~allowed].any()))
            faster = candidate_of(self.request, wider, PackingProgram(trees).solve())
            saved_s = chosen.duration_s - faster.duration_s
            if self.request.vms is None and faster.value >= chosen.value:
                continue  # the number of VMs was left to the plan
            enough = chosen.duration_s >= faster.duration_s * WORTH_ADVISING
            if enough and saved_s >= LEAST_SAVED_BY_VM_S:
                where = f"each end of {place}" if len(sites) > 1 else place
                more = {self.problem.regions[site]: int(vms[site]) for site in sites}
                asked = limited_texts(self.network, above_quotas(self.network, more))
                effect = "; ".join([f"at least {duration_text(saved_s)} sooner", *asked])
                usd = faster.cost.total - chosen.cost.total
                found.append(Advice(f"Use {vms[sites[0]]:.0f} VMs at {where}", effect, usd))
        return found

    def _measure(self) -> list[Advice]:
        """Advise which link to measure where the bounds leave the verdict open."""
        decision, star = self.decision, self.decision.search.star
        if star is None or decision.chosen is decision.optimum:
            return []
        pairs = [arc for c in (decision.optimum, star) for arcs in c.trees for arc in arcs]
        named = [(self.problem.regions[tail], self.problem.regions[head]) for tail, head in pairs]
        links = [self.network.link(*pair) for pair in named]
        widest = max(links, key=lambda link: link.aggregate_gbps.relative_width)
        if widest.aggregate_gbps.relative_width <= 0:
            return []
        ends = widest.src, widest.dst
        return [to_measure(*ends, self.network, self.prices, self.request.connections)]

    # ---- how sure ----------------------------------------------------------------------------

    def confidence(self) -> str:
        """Describe the sources of the estimates in a sentence."""
        regions, used = self.problem.regions, np.argwhere(self.chosen.links_gbit).tolist()
        links = [self.network.link(regions[tail], regions[head]) for tail, head in used]
        counts = Counter(link.aggregate_gbps.source for link in links)
        parts = [f"{counts[kind]} {kind}" for kind in KINDS if kind in counts]
        return f"Rests on {', '.join(parts)} link{'s' if len(links) > 1 else ''}."

    def warnings(self) -> tuple[str, ...]:
        """Return the assumptions behind the rates; and that plain copies do, where they do."""
        request, opened, chosen = self.request, self.opened, self.chosen
        links = self.network.links.get(request.src, {})
        pairs = [(links.get(dst), request.volume_gb) for dst in request.destinations]
        vms = vms_by_region(self.problem.regions, chosen.vms)
        of = request, self.network, vms, request.ends, opened.by_region
        copies = plain_copy(pairs, chosen.vm_start_s)
        found = [*([copies] if copies else []), *untested_text(self.problem, chosen.links_gbit)]
        found += vm_warnings(*of, opened=opened)
        if request.relays != "none" and self.decision.gap > 0.01:
            known = f"the best plan known is proven only to within {self.decision.gap:.0%}"
            found.append(f"{known} of the optimum")
        return tuple(found)
