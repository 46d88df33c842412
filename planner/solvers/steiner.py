"""Steiner trees: the cheapest way from a root to some terminals, over any nodes between.

Exact by dynamic programming over sets of terminals (Dreyfus and Wagner, *Networks* 1, 1971), whose
effort triples with every terminal: ``3^k n + 2^k n^2`` for k terminals among n nodes. Beyond
:data:`EXACT_TERMINALS`, a good tree by shortest paths (Takahashi and Matsuyama 1980) and a bound
that no tree beats by dual ascent (Wong, *Mathematical Programming* 28, 1984), which also says over
which arcs to look for the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np

from planner.model.shared_resources import Floats, Integers

Arc: TypeAlias = tuple[int, int]
Arcs: TypeAlias = tuple[Arc, ...]

EXACT_TERMINALS = 10
# Cost of an arc on top of its weight, as a share of the mean weight: of equals, fewer hops win.
HOP = 1e-9
SAME = 1e-9


@dataclass(frozen=True)
class Closure:
    """Shortest paths between all nodes."""

    distance: Floats  # shape (n, n): infinite where there is no path
    last: Integers  # shape (n, n): the node before the end of the path; -1 where there is no path

    def path(self, start: int, end: int) -> list[Arc]:
        """Return the arcs of the shortest path, from its end to its start."""
        arcs: list[Arc] = []
        while end != start:
            before = int(self.last[start, end])
            assert before >= 0
            assert len(arcs) <= len(self.last)
            arcs.append((before, end))
            end = before
        return arcs


def closure(weights: Floats) -> Closure:
    """Return shortest paths (Floyd and Warshall).

    Parameters
    ----------
    weights : array, shape (n, n)
        0 or more; infinite where there is no arc. The diagonal is ignored.
    """
    n = len(weights)
    distance = weights.copy()
    np.fill_diagonal(distance, 0.0)
    last = np.where(np.isfinite(distance), np.arange(n)[:, None], -1)
    for k in range(n):
        through = distance[:, k, None] + distance[k]
        better = through < distance
        if better.any():
            np.copyto(distance, through, where=better)
            np.copyto(last, np.broadcast_to(last[k], (n, n)), where=better)
    return Closure(distance, last)


def least_tree(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[Arcs, float]:
    """Return a tree from the root to all terminals, and a lower bound on any tree's weight.

    The tree is a lightest one, and the bound its weight, for up to :data:`EXACT_TERMINALS`; beyond,
    it is good, and the bound is below it. Its arcs are in an order in which each starts where an
    earlier one has been.

    Parameters
    ----------
    weights : array, shape (n, n)
        0 or more; infinite where there is no arc.
    terminals : sequence of int
        Distinct, without the root, and each of them in reach.
    """
    priced, hop = _with_hops(weights)
    shortest = closure(priced)
    if len(terminals) <= EXACT_TERMINALS:
        arcs, weight = _by_subsets(shortest, root, terminals)
        bound = max(0.0, weight - hop * len(weights))
    else:
        bound, tight = _dual_ascent(weights, root, terminals)
        found = [*near_trees(weights, root, terminals), *near_trees(tight, root, terminals)]
        arcs = min(found, key=lambda tree: weight_of(weights, tree))
    return as_tree(arcs, root, terminals), bound


def near_trees(weights: Floats, root: int, terminals: Sequence[int]) -> list[Arcs]:
    """Return a few light trees, found quickly: terminals join by their shortest path one by one.

    The nearest first; the farthest first; and each to the root alone.
    """
    shortest = closure(_with_hops(weights)[0])
    trees = []
    for nearest_first in (True, False):
        reach = shortest.distance[root].copy()
        join = np.full(len(weights), root)
        left = list(terminals)
        arcs: list[Arc] = []
        while left:
            distances = reach[left]
            chosen = left.pop(int(distances.argmin() if nearest_first else distances.argmax()))
            path = shortest.path(int(join[chosen]), chosen)[::-1]
            arcs += path
            for _, node in path:
                nearer = shortest.distance[node] < reach
                reach[nearer] = shortest.distance[node][nearer]
                join[nearer] = node
        trees.append(as_tree(arcs, root, terminals))
    arcs = [arc for terminal in terminals for arc in shortest.path(root, terminal)[::-1]]
    trees.append(as_tree(arcs, root, terminals))
    return list(dict.fromkeys(trees))


def weight_of(weights: Floats, arcs: Arcs) -> float:
    """Return the sum of a tree's weights."""
    return float(sum(weights[arc] for arc in arcs))


def as_tree(arcs: Iterable[Arc], root: int, terminals: Sequence[int]) -> Arcs:
    """Return the arcs of a tree within some arcs: each node is entered once, no leaf is useless."""
    onward: dict[int, list[int]] = {}
    for tail, head in dict.fromkeys(arcs):
        onward.setdefault(tail, []).append(head)
    found: list[Arc] = []
    seen = {root}
    reached = [root]
    for node in reached:
        for head in onward.get(node, ()):
            if head not in seen:
                seen.add(head)
                reached.append(head)
                found.append((node, head))
    assert seen.issuperset(terminals)
    needed = set(terminals)
    kept = []
    for tail, head in reversed(found):
        if head in needed:
            needed.add(tail)
            kept.append((tail, head))
    return tuple(reversed(kept))


def _with_hops(weights: Floats) -> tuple[Floats, float]:
    known = np.isfinite(weights)
    mean = float(weights[known].mean()) if known.any() else 0.0
    hop = HOP * (mean or 1.0)
    return weights + hop, hop


# ---- exact ---------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _levels(count: int) -> tuple[tuple[Integers, Integers], ...]:
    """Return, for each size of subset from 2, the subsets and the parts to split them into.

    Subsets are bit masks, shape (subsets,); parts have shape (splits, subsets), one of each pair.
    """
    levels = []
    for size in range(2, count + 1):
        bits = 1 << np.array(list(combinations(range(count), size)), dtype=np.int64)
        # Parts with the lowest bit, which leaves out the mirror image of each split.
        patterns = np.arange(1, 2**size - 1, 2)
        chosen = (patterns[:, None] >> np.arange(size)) & 1
        levels.append((bits.sum(axis=1), chosen @ bits.T))
    return tuple(levels)


def _by_subsets(shortest: Closure, root: int, terminals: Sequence[int]) -> tuple[Arcs, float]:
    """Return a lightest tree: sets of terminals are joined at every node, the smallest first."""
    distance = shortest.distance
    n, count = len(distance), len(terminals)
    # By subset: the lightest tree from each node; and the lightest that branches at each node.
    whole = np.full((2**count, n), np.inf)
    branched = np.full((2**count, n), np.inf)
    for bit, terminal in enumerate(terminals):
        whole[1 << bit] = distance[:, terminal]
    for subsets, parts in _levels(count):
        joined = (whole[parts] + whole[subsets - parts]).min(axis=0)
        branched[subsets] = joined
        if len(subsets) > 1 or count == 1:
            # From any node to where it branches, one branching node after another.
            best = joined[:, :1] + distance[:, 0]
            for node in range(1, n):
                np.minimum(best, joined[:, node, None] + distance[:, node], out=best)
            whole[subsets] = best
        else:
            whole[subsets, root] = (joined + distance[root]).min(axis=1)
    everything = 2**count - 1
    arcs: list[Arc] = []
    open_parts = [(root, everything)]
    while open_parts:
        node, subset = open_parts.pop()
        if subset.bit_count() == 1:
            arcs += shortest.path(node, terminals[subset.bit_length() - 1])
            continue
        branch = int((branched[subset] + distance[node]).argmin())
        arcs += shortest.path(node, branch)
        size = subset.bit_count()
        subsets, parts = _levels(count)[size - 2]
        splits = parts[:, int(np.nonzero(subsets == subset)[0][0])]
        part = int(splits[(whole[splits, branch] + whole[subset - splits, branch]).argmin()])
        open_parts += [(branch, part), (branch, subset - part)]
    return tuple(arcs), float(whole[everything, root])


# ---- bound ---------------------------------------------------------------------------------------


def _dual_ascent(weights: Floats, root: int, terminals: Sequence[int]) -> tuple[float, Floats]:
    """Return a bound on the weight of any tree, and weights, infinite where arcs have some left.

    Whatever the tree, an arc of it enters every set of nodes that holds a terminal and not the
    root. Sets that reach their terminal at no weight take the least weight that enters them off all
    their entering arcs, until the root reaches every terminal at none. A tree of arcs with none
    left, one of which enters each of these sets, weighs as much as the bound.
    """
    left = weights.copy()
    np.fill_diagonal(left, np.inf)
    bound = 0.0
    floor = SAME * float(left[np.isfinite(left)].mean())
    # By terminal, the nodes that reach it over arcs of no weight.
    sets = np.zeros((len(terminals), len(weights)), dtype=np.float32)
    sets[range(len(terminals)), sorted(terminals)] = 1.0
    while True:
        free = (left <= floor).astype(np.float32)
        while (grown := np.minimum(sets + sets @ free.T, 1.0)).sum() > sets.sum():
            sets = grown
        sets = sets[sets[:, root] == 0]
        if not len(sets):
            return bound, np.where(left <= floor, weights, np.inf)
        inside = sets[sets.sum(axis=1).argmin()] > 0
        entering = left[np.ix_(~inside, inside)]
        least = float(entering.min())
        left[np.ix_(~inside, inside)] = entering - least
        bound += least
