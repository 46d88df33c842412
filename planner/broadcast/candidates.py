"""Candidate plans of a broadcast: the time, VMs and cost of trees and their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from planner.broadcast.packing import Packing, Trees
from planner.broadcast.problem import BroadcastProblem
from planner.broadcast.request import BroadcastRequest
from planner.model.answer import Cost
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H
from planner.solvers.steiner import Arcs, closure


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
        By destination, what getting up to speed adds: 8.5 round trips for each link of its longest
        path.
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
        """What getting up to speed adds for the last destination."""
        return max(self.ramps_s.values())

    @property
    def duration_s(self) -> float:
        """Until the last destination has everything."""
        return self.transfer_s + self.ramp_s


class Evaluator:
    """Turns trees and shares into candidates, and bounds what any can achieve."""

    def __init__(self, request: BroadcastRequest, problem: BroadcastProblem, trees: Trees) -> None:
        self.request, self.problem, self.trees = request, problem, trees
        resources = problem.resources
        self.ends = [problem.root, *problem.terminals]
        root, volume = problem.root, problem.volume_gbit
        # What a VM that takes in (the source: sends) the whole volume needs, however many share it.
        fastest = resources.vm_gbps[1].copy()
        fastest[root] = resources.vm_gbps[0][root]
        self.least_busy_s = np.divide(
            volume, fastest, out=np.zeros(len(fastest)), where=fastest > 0
        )
        self.least_transfer_s = float((self.least_busy_s / resources.vms)[self.ends].max())
        """What the ends' caps, connections and paths alone demand."""
        nearest_ms = closure(problem.rtt_ms).distance[root, list(problem.terminals)]
        self.least_ramp_s = ramp_up_s(float(nearest_ms.max()))

    def candidate(self, packing: Packing, in_s: float = 0.0) -> BroadcastCandidate:
        """Return a packing with the fewest VMs that do it in a time, or as fast as it can be."""
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
        return self.candidate(Packing((arcs,), np.ones(1), 0.0, 0.0, np.zeros(0)), in_s)

    def tree_ramp_s(self, arcs: Arcs) -> float:
        """Return what getting up to speed adds on a tree."""
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
        """Return what a candidate is worth if it takes another time."""
        vm_usd = float(self.problem.vm_usd(candidate.vms, duration_s))
        return self._value(Cost.of(candidate.cost.egress, vm_usd), duration_s)

    # ---- simple trees ----------------------------------------------------------------------

    def star(self) -> Arcs | None:
        """Return the tree in which the source sends to each destination; None without a link."""
        root, terminals = self.problem.root, self.problem.terminals
        arcs = tuple((root, terminal) for terminal in terminals)
        return arcs if all(self.problem.resources.rate_gbps[arc] > 0 for arc in arcs) else None

    def through_one(self) -> list[Arcs]:
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


def best_of(candidates: Sequence[BroadcastCandidate]) -> BroadcastCandidate:
    """Return the candidate of the best value; the simpler of equals, then the first."""
    return min(candidates, key=lambda c: (c.value, len(c.trees)))
