"""Fast packings of trees that get up to speed soon, exactly, for small problems.

Trees are packed within several limits of depth. The lightest tree within one is found as those of
any depth are (:mod:`planner.solvers.steiner`), but each node keeps all trees of a set of terminals
that none is both lighter and shallower than (labels, as for constrained shortest paths: Desrochers
and Soumis 1988).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import chain, product
from math import inf

import numpy as np

from planner.broadcast.packing import Packing, PackingProgram, Trees
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.solvers.steiner import Arcs, as_tree, closure

MOST_SITES, MOST_TERMINALS = 8, 6
"""Limits of small problems: some ten milliseconds a tree. With 16 sites, it may take seconds."""
# A tree this much lighter than those in use is worth adding.
WORTH = 1e-4
EQUAL = 1e-9
# Depths tried, and trees added for each.
MOST_DEPTHS, MOST_ROUNDS = 20, 60


def pack_by_depth(trees: Trees, fastest: Packing, enough: float) -> tuple[list[Packing], float]:
    """Return packings of different depths, and the least duration of any, by branch and bound.

    With ``T(h)`` the least time of packings no deeper than ``h``, a plan deeper than ``a``, and no
    deeper than ``b``, takes ``a + T(b)`` at least.

    Parameters
    ----------
    trees : Trees
        Gets those found.
    fastest : Packing
        Of any depth.
    enough : float
        Share of the bound within which the search ends.
    """
    problem = trees.problem
    delays_s = ramp_up_s(1.0) * problem.rtt_ms
    shallowest = _soonest(delays_s, problem.root, problem.terminals)
    trees.add(shallowest)
    program = PackingProgram(trees)
    found: list[Packing] = []

    def depth_s(*of: Arcs) -> float:
        return max(max(problem.ramps_s(arcs).values()) for arcs in of)

    def least_within_s(most_s: float) -> float:
        """Note the fastest packing of trees up to speed in a time; return a bound on its time."""
        most_s *= 1 + EQUAL
        program.allow(lambda arcs: depth_s(arcs) <= most_s)
        for _ in range(MOST_ROUNDS):
            packing = program.solve()
            prices, tree_price = program.prices()
            weights, below = program.link_weights(prices), tree_price * (1 - WORTH)
            ends = problem.root, problem.terminals
            tree = lightest_within(weights, delays_s, *ends, most_s, below)
            if tree is None or not program.welcome([tree]):
                found.append(packing)
                return packing.objective * (1 - WORTH)
        found.append(packing)
        return 0.0

    found.append(fastest)
    least_s, deepest_s = depth_s(shallowest), depth_s(*fastest.trees)
    least_within_s(least_s)
    # The bound, and the least and greatest depth.
    waiting = [(least_s + fastest.bound, least_s, deepest_s)]
    best_s = inf
    for _ in range(MOST_DEPTHS):
        best_s = min(packing.objective + depth_s(*packing.trees) for packing in found)
        bound_s, above_s, most_s = waiting[0]
        if bound_s * (1 + enough) >= best_s:
            break
        heappop(waiting)
        middle_s = (above_s + most_s) / 2
        heappush(waiting, (above_s + least_within_s(middle_s), above_s, middle_s))
        heappush(waiting, (bound_s + middle_s - above_s, middle_s, most_s))
    return found, min(waiting[0][0], best_s)


def lightest_within(
    weights: Floats,
    delays: Floats,
    root: int,
    terminals: tuple[int, ...],
    most_delay: float,
    below: float,
) -> Arcs | None:
    """Return a lightest tree that reaches all terminals in time, or None if none is light enough.

    Parameters
    ----------
    weights, delays : arrays, shape (n, n)
        0 or more; infinite where there is no arc.
    most_delay : float
        From the root to any terminal.
    below : float
        What it has to weigh less than.
    """
    n, everything = len(weights), 2 ** len(terminals) - 1
    to_weight, to_delay = (closure(one).distance[root].tolist() for one in (weights, delays))
    usable = (weights < below) & (delays <= most_delay) & ~np.eye(n, dtype=bool)
    into = [
        [(u, float(weights[u, v]), float(delays[u, v])) for u in tails.nonzero()[0].tolist()]
        for v, tails in enumerate(usable.T)
    ]
    # By set of terminals and node: weight, depth and arcs of trees from that node.
    labels: dict[tuple[int, int], list[tuple[float, float, Arcs]]] = {}
    for subset in range(1, everything + 1):
        waiting: list[tuple[float, float, int, Arcs]] = []
        if subset.bit_count() == 1:
            waiting.append((0.0, 0.0, terminals[subset.bit_length() - 1], ()))
        # One part of each split of the set in two: the one with its lowest member.
        lowest = subset & -subset
        for part in (p for p in range(1, subset) if p & ~subset == 0 and p & lowest):
            for v in range(n):
                for one, other in product(labels[part, v], labels[subset - part, v]):
                    weight, depth = one[0] + other[0], max(one[1], other[1])
                    if weight + to_weight[v] < below:
                        waiting.append((weight, depth, v, one[2] + other[2]))
        heapify(waiting)
        labels |= {(subset, v): [] for v in range(n)}
        while waiting:
            weight, depth, v, arcs = heappop(waiting)
            if any(other <= depth for _, other, _ in labels[subset, v]):
                continue  # those are no heavier
            labels[subset, v].append((weight, depth, arcs))
            if subset == everything and v == root:
                of_tree = np.full_like(delays, inf)
                used = tuple(np.array(arcs).T)
                of_tree[used] = delays[used]
                return _soonest(of_tree, root, terminals)
            for u, arc_weight, delay in into[v]:
                longer = weight + arc_weight, depth + delay
                if longer[0] + to_weight[u] < below and longer[1] + to_delay[u] <= most_delay:
                    heappush(waiting, (*longer, u, (*arcs, (u, v))))
    return None


def _soonest(delays: Floats, root: int, terminals: tuple[int, ...]) -> Arcs:
    """Return the tree in which each terminal is reached soonest."""
    soonest = closure(delays)
    paths = (soonest.path(root, terminal)[::-1] for terminal in terminals)
    return as_tree(chain.from_iterable(paths), root, terminals)
