"""Fast packings of trees that get up to speed soon.

A broadcast takes the time of its packing plus the time that its deepest tree needs to get up to
speed. Lightest trees at prices of links ignore depth, so this module packs trees within several
limits of depth. Small problems are solved exactly (:func:`pack_by_depth`). For others, it searches
the neighbours of known trees, in which one region receives from another one: this gives a plan, but
no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain, islice
from math import inf

import numpy as np

from planner.broadcast.packing import Packing, PackingProgram, Trees
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.solvers.shallow_tree import lightest_within
from planner.solvers.steiner import Arcs, as_tree, closure, weight_of

FRESH_A_ROUND = 12
# Relays outside a tree tried for each of its regions: those with the lightest links.
RELAYS = 4
# A tree this much lighter than those in use is worth adding.
WORTH = 1e-4
EQUAL = 1e-9
# Of the exact search: depths tried, and trees added for each.
MOST_DEPTHS, MOST_EXACT_ROUNDS = 20, 60


def pack_by_depth(
    trees: Trees, ramp_s: Callable[[Arcs], float], fastest: Packing, enough: float
) -> tuple[list[Packing], float]:
    """Return packings of different depths, and the least duration of any, by branch and bound.

    With ``T(h)`` the least time of packings no deeper than ``h``, a plan deeper than ``a``, and no
    deeper than ``b``, takes ``a + T(b)`` at least.

    Parameters
    ----------
    trees : Trees
        Gets those found.
    ramp_s : callable
        Time that getting up to speed adds on a tree.
    fastest : Packing
        Of any depth.
    enough : float
        Share of the bound within which the search ends.
    """
    problem = trees.problem
    delays_s = ramp_up_s(1.0) * problem.rtt_ms
    soonest = closure(delays_s)
    paths = [soonest.path(problem.root, terminal)[::-1] for terminal in problem.terminals]
    shallowest = as_tree(chain(*paths), problem.root, problem.terminals)
    trees.add(shallowest)
    program = PackingProgram(trees, None)
    found: list[Packing] = []
    best_s = inf

    def keep(packing: Packing) -> None:
        nonlocal best_s
        found.append(packing)
        best_s = min(best_s, packing.objective + max(map(ramp_s, packing.trees)))

    def least_within_s(most_s: float) -> float:
        packing, bound_s = _exactly_within(program, delays_s, ramp_s, most_s)
        keep(packing)
        return bound_s

    keep(fastest)
    least_s, deepest_s = ramp_s(shallowest), max(map(ramp_s, fastest.trees))
    least_within_s(least_s)
    # The bound, and the least and greatest depth.
    waiting = [(least_s + fastest.bound, least_s, deepest_s)]
    for _ in range(MOST_DEPTHS):
        bound_s, above_s, most_s = waiting[0]
        if bound_s * (1 + enough) >= best_s:
            break
        heappop(waiting)
        middle_s = (above_s + most_s) / 2
        heappush(waiting, (above_s + least_within_s(middle_s), above_s, middle_s))
        heappush(waiting, (bound_s + middle_s - above_s, middle_s, most_s))
    return found, min(waiting[0][0], best_s)


def _exactly_within(
    program: PackingProgram, delays_s: Floats, ramp_s: Callable[[Arcs], float], most_s: float
) -> tuple[Packing, float]:
    """Return the fastest packing of trees up to speed in a time, and a bound on its time."""
    problem, most_s = program.problem, most_s * (1 + EQUAL)
    program.allow(lambda arcs: ramp_s(arcs) <= most_s)
    packing = program.solve(1.0, 0)
    for _ in range(MOST_EXACT_ROUNDS):
        prices, tree_price = program.prices()
        weights, below = program.link_weights(prices), tree_price * (1 - WORTH)
        tree = lightest_within(weights, delays_s, problem.root, problem.terminals, most_s, below)
        if tree is None or not program.welcome([tree]):
            return packing, packing.objective * (1 - WORTH)
        packing = program.solve(1.0, 0)
    return packing, 0.0


def pack_within(
    program: PackingProgram, ramp_s: Callable[[Arcs], float], most_s: float, rounds: int
) -> Packing:
    """Return the fastest packing found of trees that are up to speed in a time.

    Parameters
    ----------
    program : PackingProgram
        Of least time. Some of its trees are within the limit; gets those found.
    ramp_s : callable
        Time that getting up to speed adds on a tree.
    most_s : float
    rounds : int
        How often to look for better trees.
    """
    trees = program.trees
    chosen = program.allow(lambda arcs: ramp_s(arcs) <= most_s)
    packing = program.solve(1.0, 0)
    for _ in range(rounds):
        prices, tree_price = program.prices()
        near = _Neighbourhood(trees, program.link_weights(prices))
        lighter: dict[Arcs, float] = {}
        # First around the trees in use, then around all trees.
        for tried in (packing.trees, [trees.found[i] for i in chosen]):
            for arcs in dict.fromkeys(a for of in tried for a in near.lighter(of, tree_price)):
                if ramp_s(arcs) <= most_s:
                    lighter[arcs] = weight_of(near.weights, arcs)
            if lighter:
                break
        before = len(trees.found)
        if not program.welcome(sorted(lighter, key=lambda arcs: lighter[arcs])[:FRESH_A_ROUND]):
            break
        chosen += range(before, len(trees.found))
        packing = program.solve(1.0, 0)
    return packing


class _Neighbourhood:
    """Trees that differ from a given one in a single region's sender, at weights of links."""

    def __init__(self, trees: Trees, weights: Floats) -> None:
        self.weights = weights
        self._root, self._terminals = trees.problem.root, trees.problem.terminals
        self._plain = weights.tolist()
        self._lightest_into = np.argsort(weights, axis=0).T.tolist()

    def lighter(self, arcs: Arcs, than: float) -> Iterator[Arcs]:
        """Yield the neighbours lighter than a weight; the others, nearly all, are not built.

        One region receives from another one in the tree, or through a region outside it.
        """
        most, weights = than * (1 - WORTH), self._plain
        parent = {head: tail for tail, head in arcs}
        whole = sum(weights[tail][head] for tail, head in arcs)
        for head in parent:
            below = _below(head, parent)
            feeders = [u for u in (self._root, *parent) if u not in below]
            rest = whole - self._spared(head, parent)
            for tail in feeders:
                if tail != parent[head] and rest + weights[tail][head] < most:
                    yield self._tree({**parent, head: tail})
            beyond = (u for u in self._lightest_into[head] if u not in parent and u != self._root)
            for tail in islice(beyond, RELAYS):
                feeder = min(feeders, key=lambda u: weights[u][tail])
                if rest + weights[tail][head] + weights[feeder][tail] < most:
                    yield self._tree({**parent, head: tail, tail: feeder})

    def _spared(self, head: int, parent: dict[int, int]) -> float:
        """Return the weight of the links that serve only one region."""
        spared = 0.0
        while True:
            tail = parent[head]
            spared += float(self._plain[tail][head])
            shared = sum(other == tail for other in parent.values()) > 1
            if shared or tail == self._root or tail in self._terminals:
                return spared
            head = tail

    def _tree(self, parent: dict[int, int]) -> Arcs:
        return as_tree(((u, v) for v, u in parent.items()), self._root, self._terminals)


def _below(node: int, parent: dict[int, int]) -> set[int]:
    """Return a node and all nodes that receive through it."""
    below = {node}
    while True:
        more = {head for head, tail in parent.items() if tail in below} - below
        if not more:
            return below
        below |= more
