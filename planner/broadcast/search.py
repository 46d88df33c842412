"""Searches for the best way to run a broadcast, and proves how good it is.

Where caps do not bind, the Steiner tree of least fees is the answer, and one tree shows it. Where
they do, trees are packed (:mod:`planner.broadcast.packing`): for least time directly; for cost and
value by branch and bound over the duration. On an interval of durations, what is sent fits the
longest one's caps, and VMs are paid at least for the shortest: both bound every plan in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import inf

import numpy as np

from planner.broadcast.packing import (
    GAP,
    Deadline,
    Packing,
    PackingProgram,
    Trees,
    fewer_trees,
    least_time,
)
from planner.broadcast.problem import BroadcastProblem
from planner.broadcast.request import BroadcastRequest
from planner.broadcast.shallow import pack_by_depth, pack_within
from planner.model.answer import Cost
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H
from planner.solvers.shallow_tree import is_small
from planner.solvers.steiner import (
    EXACT_TERMINALS,
    Arcs,
    closure,
    least_tree,
    near_trees,
    weight_of,
)

# The search ends when proven this near to the optimum, as estimates are good to several percent;
# after some intervals, the second figure is enough.
ENOUGH, GOOD = 5e-3, 1e-2
INTERVALS, MOST_INTERVALS = 12, 36
CLOSE = 1.5e-3
ROUNDS = 40
# Share of the duration from which getting up to speed justifies a search for shallower trees;
# weights of round trips against prices of links in it; number of depths tried.
RAMP_MATTERS = 5e-3
MIXES = (0.1, 0.3, 1.0, 3.0)
DEPTHS = 6
# Up to this many destinations, the neighbours of shallow trees are searched, in so many rounds.
FEW_TERMINALS = 6
SHALLOW_ROUNDS = 8
# Durations this close count as equal.
AS_FAST = 3e-3
FRONTIER_POINTS = 6
# Rounds of bounding metered volumes, each at the fees that the last one gave.
CHARGED_ROUNDS = 3


@dataclass(frozen=True)
class BroadcastCandidate:
    """Trees that carry shares of the volume, with their time, VMs and cost.

    Attributes
    ----------
    trees : tuple of Arcs
    shares : array
        Of the volume; their sum is 1.
    links_gbit : array, shape (n, n)
    transfer_s : float
        Until the last destination has everything, without getting up to speed.
    ramps_s : dict
        By destination, the time that getting up to speed adds: 8.5 round trips for each link of its
        longest path.
    vms : array, length n
    cost : Cost
    value : float
        Under the request's objective, the less the better: USD, or s where time alone counts.
    """

    trees: tuple[Arcs, ...]
    shares: Floats
    links_gbit: Floats
    transfer_s: float
    ramps_s: dict[int, float]
    vms: Floats
    cost: Cost
    value: float

    @cached_property
    def ramp_s(self) -> float:
        """The time that getting up to speed adds for the last destination."""
        return max(self.ramps_s.values())

    @property
    def duration_s(self) -> float:
        """Until the last destination has everything."""
        return self.transfer_s + self.ramp_s


def best_of(candidates: Sequence[BroadcastCandidate]) -> BroadcastCandidate:
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
        resources = problem.resources
        self.ends = [problem.root, *problem.terminals]
        root, volume = problem.root, problem.volume_gbit
        # VM-seconds that receiving (at the source: sending) the whole volume takes.
        fastest = resources.vm_gbps[1].copy()
        fastest[root] = resources.vm_gbps[0][root]
        self.least_busy_s = np.divide(
            volume, fastest, out=np.zeros(len(fastest)), where=fastest > 0
        )
        # The least time by the ends' caps, connections and paths alone.
        self.ends_transfer_s = float((self.least_busy_s / resources.vms)[self.ends].max())
        nearest_ms = closure(problem.rtt_ms).distance[root, list(problem.terminals)]
        self.least_ramp_s = ramp_up_s(float(nearest_ms.max()))
        self.found: list[BroadcastCandidate] = []
        self.least_transfer_s = self.ends_transfer_s
        self._fastest: Packing | None = None
        self._least_s = 0.0
        self._cheapest: dict[float, tuple[Arcs, float]] = {}
        star = self._star_tree()
        self.star = self.of_tree(star) if star else None
        single = [self.of_tree(arcs) for arcs in self._trees_through_one()]
        self.best_relay = best_of(self._in_time(single) or single) if single else None
        for candidate in (self.star, self.best_relay):
            if candidate:
                self.note(candidate)

    @property
    def bound_s(self) -> float:
        """No plan ends sooner."""
        return max(self._least_s, self.least_transfer_s + self.least_ramp_s)

    @property
    def bound_usd(self) -> float:
        """No plan costs less."""
        at_s = self.ends_transfer_s
        beside_usd = self._beside_usd(at_s)
        known_usd = min((c.cost.total for c in self.found), default=inf) + beside_usd
        return self._charged(self.cheapest_tree(at_s)[1], known_usd) - beside_usd

    def note(self, candidate: BroadcastCandidate) -> None:
        """Keep a candidate if it meets the deadline; add its trees to those for packings."""
        for arcs in candidate.trees:
            self.trees.add(arcs)
        self.found += self._in_time([candidate])

    def _in_time(self, candidates: list[BroadcastCandidate]) -> list[BroadcastCandidate]:
        most_s = self.request.deadline_s or inf
        return [c for c in candidates if c.duration_s <= most_s * (1 + 1e-12)]

    # ---- candidates ------------------------------------------------------------------------

    def candidate(self, packing: Packing, in_s: float = 0.0) -> BroadcastCandidate:
        """Return a packing with the fewest VMs that meet a time, or else its own least time."""
        problem, resources = self.problem, self.problem.resources
        links = self.trees.links_gbit(packing.trees, packing.shares)
        vms = problem.fewest_vms(links, max(in_s, resources.time_s(links)))
        time_s = resources.time_with_s(links, np.maximum(vms, 1.0))
        ramps = dict.fromkeys(problem.terminals, 0.0)
        for arcs in packing.trees:
            for terminal, ramp_s in self._ramps_s(arcs).items():
                ramps[terminal] = max(ramps[terminal], ramp_s)
        cost = problem.cost(links, vms, time_s + max(ramps.values()))
        return BroadcastCandidate(
            packing.trees,
            packing.shares,
            links,
            time_s,
            ramps,
            vms,
            cost,
            self._value(cost, time_s + max(ramps.values())),
        )

    def of_tree(self, arcs: Arcs, in_s: float = 0.0) -> BroadcastCandidate:
        """Return a single tree as a candidate."""
        return self.candidate(Packing((arcs,), np.ones(1)), in_s)

    def tree_ramp_s(self, arcs: Arcs) -> float:
        """Return the time that getting up to speed adds on a tree."""
        return max(self._ramps_s(arcs).values())

    def _ramps_s(self, arcs: Arcs) -> dict[int, float]:
        rtt_ms = {self.problem.root: 0.0}
        for tail, head in arcs:
            rtt_ms[head] = rtt_ms[tail] + float(self.problem.rtt_ms[tail, head])
        return {t: ramp_up_s(rtt_ms[t]) for t in self.problem.terminals}

    def _value(self, cost: Cost, duration_s: float) -> float:
        hour_usd = self.request.hour_usd
        return duration_s if hour_usd == inf else cost.total + hour_usd * duration_s / S_PER_H

    def value_of(self, candidate: BroadcastCandidate, duration_s: float) -> float:
        """Return the value of a candidate if it took another time."""
        vm_usd = float(self.problem.vm_usd(candidate.vms, duration_s))
        return self._value(Cost.of(candidate.cost.egress, vm_usd), duration_s)

    def _star_tree(self) -> Arcs | None:
        """Return the tree in which the source sends to each destination; None without a link."""
        root, terminals = self.problem.root, self.problem.terminals
        arcs = tuple((root, terminal) for terminal in terminals)
        return arcs if all(self.problem.resources.rate_gbps[arc] > 0 for arc in arcs) else None

    def _trees_through_one(self) -> list[Arcs]:
        """Return the trees in which one region forwards to others, pure and mixed with direct.

        Pure: the source sends one copy, to the relay. Mixed: a destination whose direct link has
        the lower fee gets its copy from the source.
        """
        problem = self.problem
        rate, fees, root = problem.resources.rate_gbps, problem.usd_per_gbit, problem.root
        found: list[Arcs] = []
        if self.request.relays == "none":
            return found
        for relay in range(len(problem.regions)):
            others = [t for t in problem.terminals if t != relay]
            if relay == root or rate[root, relay] <= 0 or not others:
                continue
            through = {t for t in others if rate[relay, t] > 0}
            cheaper = {t for t in others if rate[root, t] > 0 and fees[root, t] < fees[relay, t]}
            for own in (set(others) - through, cheaper | (set(others) - through)):
                if own == set(others) or any(rate[root, t] <= 0 for t in own):
                    continue
                arcs = [(root, relay)]
                arcs += [(root if t in own else relay, t) for t in others]
                found.append(tuple(arcs))
        return list(dict.fromkeys(found))

    # ---- least time --------------------------------------------------------------------------

    def fastest(self) -> Packing:
        """Return the packing of least time."""
        if self._fastest is None:
            problem = self.problem
            even = np.ones(len(problem.resources.rows))
            for arcs in near_trees(self._at(even), problem.root, problem.terminals):
                self.trees.add(arcs)
            self._fastest = least_time(self.trees, 0.5 * GAP)
            self.least_transfer_s = max(self.least_transfer_s, self._fastest.bound)
        return self._fastest

    def least_duration(self) -> BroadcastCandidate:
        """Return a candidate of least duration, the cheapest among equally fast ones."""
        fast = self.fastest()
        found = [self.candidate(fast)]
        found.append(self.candidate(fewer_trees(self.trees, fast)))
        if (cheap := self._cheapest_in(fast.objective * (1 + GAP))) is not None:
            found.append(cheap)
        if found[0].ramp_s > RAMP_MATTERS * found[0].duration_s:
            found += self._shallow()
        plain = [c for c in (self.star, self.best_relay) if c]
        at_most_s = min((c.duration_s for c in plain), default=inf)
        least_s = min(c.duration_s for c in (*found, *plain))
        as_fast = [
            c
            for c in (*plain, *found)
            if c.duration_s <= min(at_most_s, least_s * (1 + AS_FAST)) or c.duration_s == least_s
        ]
        for candidate in found:
            self.note(candidate)
        return min(as_fast, key=lambda c: (c.cost.total, c.duration_s))

    def _shallow(self) -> list[BroadcastCandidate]:
        """Return fast candidates whose trees get up to speed soon."""
        problem, fast = self.problem, self.fastest()
        if is_small(len(problem.regions), len(problem.terminals)):
            packings, self._least_s = pack_by_depth(self.trees, self.tree_ramp_s, fast, AS_FAST)
            return [self.candidate(packing) for packing in packings]
        prices = self._at(np.maximum(fast.row_prices, 1e-3 * fast.row_prices.max(initial=1e-9)))
        known = np.isfinite(prices)
        round_trips = problem.rtt_ms * (prices[known].mean() / problem.rtt_ms[known].mean())
        for mix in MIXES:
            for arcs in near_trees(prices + mix * round_trips, problem.root, problem.terminals):
                self.trees.add(arcs)
        program = PackingProgram(self.trees, None)
        depths = np.unique(np.quantile(self._known_ramps_s(), np.linspace(0, 1, DEPTHS + 1)[:-1]))
        found = [self._within(program, depth) for depth in depths.tolist()]
        if len(problem.terminals) > FEW_TERMINALS:
            return found
        # Again near the best, at the depths of the trees found meanwhile.
        best = min(found, key=lambda candidate: candidate.duration_s)
        ramps = np.unique(self._known_ramps_s())
        at = int(np.searchsorted(ramps, best.ramp_s))
        tried = {candidate.ramp_s for candidate in found}
        near = ramps[max(0, at - DEPTHS // 2) : at + DEPTHS // 2]
        found += [self._within(program, depth) for depth in near.tolist() if depth not in tried]
        return found

    def _known_ramps_s(self) -> Floats:
        return np.array([self.tree_ramp_s(arcs) for arcs in self.trees.found])

    def _within(self, program: PackingProgram, depth_s: float) -> BroadcastCandidate:
        few = len(self.problem.terminals) <= FEW_TERMINALS
        found = pack_within(program, self.tree_ramp_s, depth_s, SHALLOW_ROUNDS if few else 0)
        return self.candidate(found)

    def _at(self, row_prices: Floats) -> Floats:
        return np.asarray(self.problem.resources.link_prices(row_prices))

    # ---- least cost and value ----------------------------------------------------------------

    def _paid_s(self, transfer_s: float) -> float:
        return transfer_s + self.least_ramp_s + self.request.vm_start_s

    def _beside_usd(self, transfer_s: float) -> float:
        """Return the cost of the time itself."""
        hour_usd = self.request.hour_usd if self.request.hour_usd < inf else 0.0
        return hour_usd * (transfer_s + self.least_ramp_s) / S_PER_H

    def cheapest_tree(self, transfer_s: float) -> tuple[Arcs, float]:
        """Return the tree of least fees and VM cost, and a bound on all plans of that duration."""
        if transfer_s not in self._cheapest:
            self._cheapest[transfer_s] = self._tree_at(transfer_s, self.problem.usd_per_gbit)
        return self._cheapest[transfer_s]

    def _tree_at(self, transfer_s: float, usd_per_gbit: Floats) -> tuple[Arcs, float]:
        """Return the same at other fees."""
        problem = self.problem
        busy_s = np.maximum(transfer_s, self.least_busy_s)
        vm_usd = problem.vm_usd_per_h * self._paid_s(0.0) / S_PER_H
        vm_usd = vm_usd + problem.vm_usd_per_h * busy_s / S_PER_H
        weights = usd_per_gbit * problem.volume_gbit
        weights = weights + np.where(self.trees.is_relay, vm_usd, 0.0)
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

    def least_value(self) -> tuple[BroadcastCandidate | None, float]:
        """Return the candidate of least value, and a lower bound on the value of any plan.

        None where no plan meets the deadline.
        """
        found, bound = self._least_value_at_fees()
        return found, self._charged(bound, found.value if found else inf)

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
                    rest_usd = self._tree_at(
                        at_s, np.where(np.isfinite(problem.usd_per_gbit), besides, inf)
                    )[1]
                    most_gbit[number] = min(
                        most_gbit[number], max(0.0, known_usd - rest_usd) / lowest
                    )
        return min(part * bound, known_usd)

    def _least_value_at_fees(self) -> tuple[BroadcastCandidate | None, float]:
        most_s = (self.request.deadline_s or inf) - self.least_ramp_s
        arcs, bound = self.cheapest_tree(self.least_transfer_s)
        slow = self.of_tree(arcs)
        self.note(slow)
        if self.found and self._good_enough(bound):
            return best_of(self.found), bound
        # A tree that is slow on one VM a site, and cheap: nothing slower is of interest.
        slowest_s = self._slowest_s(arcs)
        self.note(self.of_tree(arcs, min(slowest_s, max(slow.transfer_s, most_s))))
        self.note(self.least_duration())
        start_s = self.fastest().objective
        if start_s > most_s:
            return (best_of(self.found) if self.found else None), bound
        slowest_s = min(max(slowest_s, start_s * (1 + GAP)), most_s)
        beyond = self.cheapest_tree(slowest_s)[1] if slowest_s < most_s else inf
        bound = max(bound, min(self._branch(start_s, slowest_s), beyond))
        return (best_of(self.found) if self.found else None), bound

    def _slowest_s(self, arcs: Arcs) -> float:
        """Return the time of a tree with a single VM at every site."""
        links = self.trees.links_gbit([arcs], np.ones(1))
        return float(self.problem.resources.loads(links).max())

    def _good_enough(self, bound: float) -> bool:
        return best_of(self.found).value <= bound * (1 + ENOUGH)

    def _branch(self, start_s: float, end_s: float) -> float:
        """Note candidates between two durations; return a lower bound on plans there."""
        open_intervals: list[tuple[float, float, float]] = []
        count = 0
        closed = inf
        # Problems too large to solve exactly get no better bounds from more intervals.
        most = MOST_INTERVALS if len(self.problem.terminals) <= EXACT_TERMINALS else INTERVALS // 2

        def add(least_s: float, most_s: float) -> None:
            nonlocal count
            count += 1
            bound = self._at_duration(least_s, most_s)
            heappush(open_intervals, (bound, least_s, most_s))

        # The least time is known to a gap: a little more, so that its packing fits.
        first_s = max(start_s * (1 + GAP), start_s)
        middle_s = max((first_s * end_s) ** 0.5, min(first_s, end_s))
        add(self.least_transfer_s, middle_s)
        if end_s > middle_s:
            add(middle_s, end_s)
        while open_intervals:
            bound, least_s, most_s = heappop(open_intervals)
            gap = best_of(self.found).value / bound - 1 if self.found and bound > 0 else inf
            if gap <= ENOUGH or count >= most or (count >= INTERVALS and gap <= GOOD):
                closed = min(closed, bound)
                break
            if most_s <= least_s * (1 + ENOUGH):  # too short to matter
                closed = min(closed, bound)
                continue
            middle_s = (least_s * most_s) ** 0.5
            add(least_s, middle_s)
            add(middle_s, most_s)
        return min([closed, *(bound for bound, _, _ in open_intervals)])

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
            late_s = candidate.duration_s - (self.request.deadline_s or inf)
            if late_s > 0:  # getting up to speed takes part of the time allowed
                sooner_s = (candidate.transfer_s - late_s) * (1 - 1e-9)
                if sooner_s >= self.fastest().objective:
                    shorter = self._cheapest_in(sooner_s)
                    if shorter is not None:
                        self.note(shorter)
            self.note(candidate)
        return max(packing.bound + beside_usd, self.cheapest_tree(least_s)[1])

    def frontier(self) -> list[BroadcastCandidate]:
        """Return candidates from the fastest to the cheapest, none beaten in time and cost."""
        found = [c for c in (self.star,) if c] if self.request.relays == "none" else self._points()
        kept: list[BroadcastCandidate] = []
        for candidate in sorted(found, key=lambda c: (c.duration_s, c.cost.total)):
            if not kept or candidate.cost.total < kept[-1].cost.total * (1 - GAP):
                kept.append(candidate)
        return kept

    def _points(self) -> list[BroadcastCandidate]:
        quick = self.least_duration()
        arcs, _ = self.cheapest_tree(quick.transfer_s)
        cheap = self.of_tree(arcs, self._slowest_s(arcs))
        plain = [c for c in (self.star, self.best_relay) if c]
        found = [quick, cheap, self.of_tree(arcs), *plain, *self.found]
        start_s, end_s = self.fastest().objective, cheap.transfer_s
        for step in range(1, FRONTIER_POINTS):
            between = start_s * (end_s / start_s) ** (step / FRONTIER_POINTS)
            if between > start_s * (1 + GAP) and (point := self._cheapest_in(between)):
                found.append(point)
        return found
