"""Searches for the best way to run a broadcast, and proves how good it is.

Where caps do not bind, the Steiner tree of least fees is the answer, and one tree shows it. Where
they do, trees are packed (:mod:`planner.broadcast.packing`): for least time directly; for cost and
value by branch and bound over the duration. On an interval of durations, what is sent fits the
longest one's caps, and VMs are paid at least for the shortest: both bound every plan in it.

A broadcast takes the time of its packing plus the time that its deepest tree needs to get up to
speed. Lightest trees at prices of links ignore depth, so trees are also packed within several
limits of depth: small problems exactly (:func:`planner.broadcast.packing.pack_by_depth`); for
others, trees are looked for at prices that count round trips, which gives a plan, but no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import inf

import numpy as np

from planner.broadcast.packing import (
    GAP,
    MOST_ROUNDS,
    MOST_SITES,
    MOST_TERMINALS,
    Deadline,
    Packing,
    PackingProgram,
    Trees,
    fewer_trees,
    pack_by_depth,
)
from planner.broadcast.problem import BroadcastProblem
from planner.broadcast.request import BroadcastRequest
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H
from planner.shared_vms.candidates import Candidate, unbeaten, value_of
from planner.solvers.steiner import Arcs, closure, least_tree, near_trees, weight_of

# The search ends when proven this near to the optimum, as estimates are good to several percent;
# after some intervals, the second figure is enough.
ENOUGH, GOOD = 5e-3, 1e-2
INTERVALS, MOST_INTERVALS = 12, 36
CLOSE = 1.5e-3
ROUNDS = 40
# Share of the duration from which getting up to speed justifies a search for shallower trees;
# weights of round trips against prices of links in it; number of depths tried; rounds at each.
RAMP_MATTERS = 5e-3
MIXES = (0.1, 0.3, 1.0, 3.0)
DEPTHS = 12
SHALLOW_ROUNDS = 8
# Durations this close count as equal.
AS_SOON = 3e-3
FRONTIER_POINTS = 6
# Rounds of bounding metered volumes, each at the fees that the last one gave.
CHARGED_ROUNDS = 3


@dataclass(frozen=True)
class BroadcastCandidate(Candidate):
    """Trees that carry shares of the volume, with their time, VMs and cost."""

    figures: BroadcastProblem
    trees: tuple[Arcs, ...]
    shares: Floats  # of the volume; their sum is 1
    # By destination, the time that getting up to speed adds: 8.5 round trips for each link of its
    # longest path
    ramps_s: dict[int, float]

    @property
    def relays(self) -> tuple[str, ...]:
        """Regions that only forward."""
        return self._named((self.links_gbit.sum(axis=0) > 0) & self.figures.is_relay)

    @property
    def forwarding(self) -> tuple[str, ...]:
        """Regions that send on what they receive."""
        sends = self.links_gbit.sum(axis=1) > 0
        sends[self.figures.root] = False
        return self._named(sends)

    def _named(self, which: np.ndarray) -> tuple[str, ...]:
        return tuple(self.figures.regions[site] for site in np.flatnonzero(which).tolist())

    def vms_in_order(self) -> dict[str, int]:
        """Return the VMs of each region: the source, the destinations as asked, then relays."""
        of = self.figures
        sites = dict.fromkeys([of.root, *of.terminals, *np.flatnonzero(self.vms).tolist()])
        return {of.regions[site]: int(self.vms[site]) for site in sites}


def candidate_of(
    request: BroadcastRequest, problem: BroadcastProblem, packing: Packing, in_s: float = 0.0
) -> BroadcastCandidate:
    """Return a packing with the fewest VMs that meet a time, or else its own least time.

    Of fewer trees where VMs can't open a connection for each link of each.
    """
    streams = problem.streams(packing.trees, packing.shares)
    links = problem.links_gbit(streams)
    vms = problem.fewest_vms(links, max(in_s, problem.resources.time_s(links)))
    time_s = problem.resources.time_with_s(links, np.maximum(vms, 1.0))
    whole_s = streams.whole_s(problem.resources, request.connections, vms, time_s)
    if whole_s == inf and len(packing.trees) > 1:
        order = np.argsort(-packing.shares, kind="stable")[:-1]
        shares = packing.shares[order] / packing.shares[order].sum()
        fewer = Packing(tuple(packing.trees[at] for at in order.tolist()), shares)
        return candidate_of(request, problem, fewer, in_s)
    time_s = whole_s if whole_s < inf else time_s  # else connections take turns
    ramps = [problem.ramps_s(arcs) for arcs in packing.trees]
    longest = {t: max(of[t] for of in ramps) for t in problem.terminals}
    busy_s, start_s = time_s + max(longest.values()), problem.start_s(vms)
    cost = problem.cost(links, vms, busy_s)
    value = value_of(request, cost.total, start_s + busy_s)
    of = links, time_s, start_s, max(longest.values()), vms, cost, value
    return BroadcastCandidate(problem, *of, packing.trees, packing.shares, longest)


def best_of(candidates: Iterable[BroadcastCandidate]) -> BroadcastCandidate:
    """Return the candidate of the best value; the simpler of equals, then the first."""
    return min(candidates, key=lambda c: (c.value, len(c.trees)))


class Search:
    """Finds candidates for one broadcast.

    Attributes
    ----------
    star : BroadcastCandidate | None
        The source sends to each destination.
    best_relay : BroadcastCandidate | None
        The best of the trees through one region.
    found : list of BroadcastCandidate
        Every candidate that meets the deadline.
    """

    def __init__(self, request: BroadcastRequest, problem: BroadcastProblem) -> None:
        self.request, self.problem = request, problem
        self.trees = Trees(problem)
        self._cheapest: dict[float, tuple[Arcs, float]] = {}
        self.most_s = inf if request.deadline_s is None else request.deadline_s
        self.ends = [problem.root, *problem.terminals]
        # VM-seconds that receiving (at the source: sending) the whole volume takes.
        fastest = problem.resources.vm_gbps[1].copy()
        fastest[problem.root] = problem.resources.vm_gbps[0][problem.root]
        self.least_busy_s = np.divide(
            problem.volume_gbit, fastest, out=np.zeros(len(fastest)), where=fastest > 0
        )
        # The least time by the ends' caps, connections and paths alone.
        self.ends_transfer_s = float((self.least_busy_s / problem.resources.vms)[self.ends].max())
        nearest_ms = closure(problem.rtt_ms).distance[problem.root, list(problem.terminals)]
        self.least_ramp_s = ramp_up_s(float(nearest_ms.max()))
        self.least_lead_s = float(problem.vm_start_s[self.ends].max()) + self.least_ramp_s
        self.found: list[BroadcastCandidate] = []
        self.least_transfer_s = self.ends_transfer_s
        self._least_s = 0.0
        star = tuple((problem.root, terminal) for terminal in problem.terminals)
        known = all(problem.resources.rate_gbps[arc] > 0 for arc in star)
        self.star = self.of_tree(star) if known else None
        single = [self.of_tree(arcs) for arcs in self._trees_through_one()]
        self.best_relay = best_of(self._in_time(single) or single) if single else None
        self.plain = [c for c in (self.star, self.best_relay) if c]
        self.note(*self.plain)

    @property
    def bound_s(self) -> float:
        """No plan ends sooner."""
        return max(self._least_s, self.least_transfer_s + self.least_lead_s)

    @property
    def bound_usd(self) -> float:
        """No plan costs less."""
        at_s = self.ends_transfer_s
        beside_usd = self._beside_usd(at_s)
        known_usd = min((c.cost.total for c in self.found), default=inf) + beside_usd
        return self._charged(self.cheapest_tree(at_s)[1], known_usd) - beside_usd

    def note(self, *candidates: BroadcastCandidate) -> None:
        """Keep candidates that meet the deadline; add all their trees to those for packings."""
        for arcs in (arcs for candidate in candidates for arcs in candidate.trees):
            self.trees.add(arcs)
        self.found += self._in_time([*candidates])

    def _in_time(self, candidates: list[BroadcastCandidate]) -> list[BroadcastCandidate]:
        return [c for c in candidates if c.duration_s <= self.most_s * (1 + 1e-12)]

    def candidate(self, packing: Packing, in_s: float = 0.0) -> BroadcastCandidate:
        """Return :func:`candidate_of` this broadcast."""
        return candidate_of(self.request, self.problem, packing, in_s)

    def of_tree(self, arcs: Arcs, in_s: float = 0.0) -> BroadcastCandidate:
        """Return a single tree as a candidate."""
        return self.candidate(Packing((arcs,), np.ones(1)), in_s)

    def _trees_through_one(self) -> list[Arcs]:
        """Return the trees in which one region forwards to others, pure and mixed with direct.

        Pure: the source sends one copy, to the relay. Mixed: a destination whose direct link has
        the lower fee gets its copy from the source.
        """
        problem = self.problem
        rate, fees, root = problem.resources.rate_gbps, problem.usd_per_gbit, problem.root
        found: list[Arcs] = []
        for relay in range(len(problem.regions)) if self.request.relays != "none" else ():
            others = {t for t in problem.terminals if t != relay}
            if relay == root or rate[root, relay] <= 0 or not others:
                continue
            direct = {t for t in others if rate[relay, t] <= 0}
            cheaper = {t for t in others if rate[root, t] > 0 and fees[root, t] < fees[relay, t]}
            for own in (direct, cheaper | direct):
                if own != others and all(rate[root, t] > 0 for t in own):
                    by = [(root if t in own else relay, t) for t in problem.terminals if t != relay]
                    found.append(((root, relay), *by))
        return list(dict.fromkeys(found))

    # ---- least time --------------------------------------------------------------------------

    @cached_property
    def fastest(self) -> Packing:
        """The packing of least time."""
        problem = self.problem
        even = problem.resources.link_prices(np.ones(len(problem.resources.rows)))
        for arcs in near_trees(even, problem.root, problem.terminals):
            self.trees.add(arcs)
        found = PackingProgram(self.trees).solve(0.5 * GAP, MOST_ROUNDS)
        self.least_transfer_s = max(self.least_transfer_s, found.bound)
        return found

    def least_duration(self) -> BroadcastCandidate:
        """Return a candidate of least duration, the cheapest among equally fast ones."""
        fast = self.fastest
        found = [self.candidate(fast), self.candidate(fewer_trees(self.trees, fast))]
        if (cheap := self._cheapest_in(fast.objective * (1 + GAP))) is not None:
            found.append(cheap)
        if found[0].ramp_s > RAMP_MATTERS * found[0].duration_s:
            found += self._shallow()
        at_most_s = min((c.duration_s for c in self.plain), default=inf)
        least_s = min(c.duration_s for c in (*found, *self.plain))
        enough_s = max(least_s, min(at_most_s, least_s * (1 + AS_SOON)))
        self.note(*found)
        as_fast = [c for c in (*self.plain, *found) if c.duration_s <= enough_s]
        return min(as_fast, key=lambda c: (c.cost.total, c.duration_s))

    def _shallow(self) -> list[BroadcastCandidate]:
        """Return fast candidates whose trees get up to speed soon."""
        problem, fast = self.problem, self.fastest
        if len(problem.regions) <= MOST_SITES and len(problem.terminals) <= MOST_TERMINALS:
            packings, self._least_s = pack_by_depth(self.trees, fast, AS_SOON)
            return [self.candidate(packing) for packing in packings]
        program = PackingProgram(self.trees)
        program.solve()
        of_rows, _ = program.prices()
        prices = program.link_weights(np.maximum(of_rows, 1e-3 * of_rows.max()))
        for weights in (*self._with_round_trips(prices), problem.rtt_ms):
            program.welcome(near_trees(weights, problem.root, problem.terminals))
        depths_s = [problem.depth_s(tree.arcs) for tree in self.trees.found]
        found, parts = [], np.linspace(0, 1, DEPTHS, endpoint=False)
        for most_s in np.unique(np.quantile(depths_s, parts)).tolist():

            def shallow(arcs: Arcs, most_s: float = most_s) -> bool:
                return problem.depth_s(arcs) <= most_s

            def lighter(weights: Floats, below: float) -> list[Arcs]:
                mixes = self._with_round_trips(weights)
                near = [a for m in mixes for a in near_trees(m, problem.root, problem.terminals)]
                return [a for a in near if weight_of(weights, a) < below and shallow(a)]

            packing, _ = program.solve_among(shallow, lighter, SHALLOW_ROUNDS)
            if packing.trees:
                found.append(self.candidate(packing))
        return found

    def _with_round_trips(self, prices: Floats) -> list[Floats]:
        """Return prices of links with round trips in several proportions."""
        known = np.isfinite(prices)
        round_trips = self.problem.rtt_ms / self.problem.rtt_ms[known].mean()
        return [prices + mix * prices[known].mean() * round_trips for mix in MIXES]

    # ---- least cost and value ----------------------------------------------------------------

    def _paid_s(self, transfer_s: float) -> float:
        return transfer_s + self.least_ramp_s + float(self.problem.vm_start_s.min())

    def _beside_usd(self, transfer_s: float) -> float:
        """Return the cost of the time itself."""
        hour_usd = self.request.hour_usd if self.request.hour_usd < inf else 0.0
        return hour_usd * (transfer_s + self.least_lead_s) / S_PER_H

    def cheapest_tree(self, transfer_s: float) -> tuple[Arcs, float]:
        """Return :meth:`_tree_at` the problem's fees, found once for a duration."""
        if transfer_s not in self._cheapest:
            self._cheapest[transfer_s] = self._tree_at(transfer_s, self.problem.usd_per_gbit)
        return self._cheapest[transfer_s]

    def _tree_at(self, transfer_s: float, usd_per_gbit: Floats) -> tuple[Arcs, float]:
        """Return the tree of least fees and VM cost, and a bound on all plans of that duration."""
        problem = self.problem
        paid_s = self._paid_s(0.0) + np.maximum(transfer_s, self.least_busy_s)
        vm_usd = problem.vm_usd_per_h * paid_s / S_PER_H
        weights = usd_per_gbit * problem.volume_gbit + np.where(problem.is_relay, vm_usd, 0.0)
        arcs, least_usd = least_tree(weights, problem.root, problem.terminals)
        least_usd = min(least_usd, weight_of(weights, arcs))
        ends_usd = float(vm_usd[self.ends].sum())
        return arcs, least_usd + ends_usd + self._beside_usd(transfer_s)

    def _cheapest_in(self, transfer_s: float) -> BroadcastCandidate | None:
        deadline = Deadline(transfer_s, self._paid_s(transfer_s))
        packing = PackingProgram(self.trees, deadline).solve(CLOSE, ROUNDS)
        if packing.objective == inf:
            return None
        return self.candidate(fewer_trees(self.trees, packing, deadline), transfer_s)

    def _charged(self, bound: float, known_usd: float) -> float:
        """Correct a lower bound, proven at the problem's fees, for meters that charge less.

        Fees fall as metered volumes grow. In a plan cheaper than the best known, a meter counts at
        most the volume that can be paid for on top of the least cost of everything else.
        """
        problem, at_s = self.problem, self.ends_transfer_s
        most_gbit = np.full(problem.fees.meters, problem.most_gbit)
        for _ in range(CHARGED_ROUNDS):
            part = problem.fees.least_part(problem.usd_per_gbit, most_gbit)
            if part == 1.0 or known_usd == inf:
                break
            least = problem.fees.least_usd_per_gbit(most_gbit)
            for number in range(problem.fees.meters):
                counted = problem.fees.counted_by(number)
                if 0 < (lowest := float(least[counted].min(initial=inf))) < inf:
                    besides = np.where(counted, 0.0, least)
                    besides[~np.isfinite(problem.usd_per_gbit)] = inf
                    left_usd = max(0.0, known_usd - self._tree_at(at_s, besides)[1])
                    most_gbit[number] = min(most_gbit[number], left_usd / lowest)
        return min(part * bound, known_usd)

    def least_value(self) -> tuple[BroadcastCandidate | None, float]:
        """Return the candidate of least value, and a lower bound on the value of any plan.

        None where no plan meets the deadline.
        """
        bound = self._search_value()
        found = best_of(self.found) if self.found else None
        return found, self._charged(bound, found.value if found else inf)

    def _search_value(self) -> float:
        """Note candidates of little value; return a bound on that of any plan."""
        most_s = self.most_s - self.least_lead_s
        arcs, bound = self.cheapest_tree(self.least_transfer_s)
        slow = self.of_tree(arcs)
        self.note(slow)
        if self.found and best_of(self.found).value <= bound * (1 + ENOUGH):
            return bound
        # A tree that is slow on one VM a site, and cheap: nothing slower is of interest.
        slowest_s = self._slowest_s(arcs)
        self.note(self.of_tree(arcs, min(slowest_s, max(slow.transfer_s, most_s))))
        self.note(self.least_duration())
        start_s = self.fastest.objective
        if start_s > most_s:
            return bound
        slowest_s = min(max(slowest_s, start_s * (1 + GAP)), most_s)
        beyond = self.cheapest_tree(slowest_s)[1] if slowest_s < most_s else inf
        return max(bound, min(self._branch(start_s, slowest_s), beyond))

    def _slowest_s(self, arcs: Arcs) -> float:
        """Return the time of a tree with a single VM at every site."""
        return float(self.trees.found[self.trees.add(arcs)].loads.max())

    def _branch(self, start_s: float, end_s: float) -> float:
        """Note candidates between two durations; return a lower bound on plans there."""
        # The least time is known to a gap: a little more, so that its packing fits.
        middle_s = max((start_s * (1 + GAP) * end_s) ** 0.5, min(start_s * (1 + GAP), end_s))
        waiting = [(self.least_transfer_s, middle_s)]
        waiting += [(middle_s, end_s)] if end_s > middle_s else []
        intervals: list[tuple[float, float, float]] = []
        count, closed = 0, inf
        while True:
            for interval in waiting:
                count += 1
                heappush(intervals, (self._at_duration(*interval), *interval))
            if not intervals:
                return closed
            bound, least_s, most_s = heappop(intervals)
            gap = best_of(self.found).value / bound - 1 if self.found and bound > 0 else inf
            if gap <= ENOUGH or count >= MOST_INTERVALS or (count >= INTERVALS and gap <= GOOD):
                return min(closed, bound)
            waiting = []
            if most_s <= least_s * (1 + ENOUGH):  # too short to matter
                closed = min(closed, bound)
            else:
                middle_s = (least_s * most_s) ** 0.5
                waiting = [(least_s, middle_s), (middle_s, most_s)]

    def _at_duration(self, least_s: float, most_s: float) -> float:
        """Note the candidate that takes the longest of an interval; return the interval's bound."""
        deadline = Deadline(most_s, self._paid_s(least_s))
        beside_usd = self._beside_usd(least_s)
        best = best_of(self.found).value if self.found else inf
        enough_usd = best / (1 + ENOUGH) - beside_usd
        packing = PackingProgram(self.trees, deadline).solve(CLOSE, ROUNDS, enough_usd)
        if packing.objective == inf:
            return self.cheapest_tree(least_s)[1]
        for fitted in (packing, fewer_trees(self.trees, packing, deadline)):
            candidate = self.candidate(fitted, most_s)
            late_s = candidate.duration_s - self.most_s
            # Getting up to speed takes part of the time allowed.
            sooner_s = (candidate.transfer_s - late_s) * (1 - 1e-9)
            in_time = late_s > 0 and sooner_s >= self.fastest.objective
            if in_time and (shorter := self._cheapest_in(sooner_s)):
                self.note(shorter)
            self.note(candidate)
        return max(packing.bound + beside_usd, self.cheapest_tree(least_s)[1])

    def frontier(self) -> Sequence[BroadcastCandidate]:
        """Return candidates from the fastest to the cheapest, none beaten in time and cost."""
        found = self.plain
        if self.request.relays != "none":
            quick = self.least_duration()
            arcs, _ = self.cheapest_tree(quick.transfer_s)
            cheap = self.of_tree(arcs, self._slowest_s(arcs))
            found = [quick, cheap, self.of_tree(arcs), *self.plain, *self.found]
            start_s, end_s = self.fastest.objective, cheap.transfer_s
            for step in range(1, FRONTIER_POINTS):
                between = start_s * (end_s / start_s) ** (step / FRONTIER_POINTS)
                if between > start_s * (1 + GAP) and (point := self._cheapest_in(between)):
                    found.append(point)
        return unbeaten(found, GAP)
