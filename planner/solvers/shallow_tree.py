"""A lightest tree of those in which every terminal is reached within a delay.

For small problems, exactly: sets of terminals are joined at every node, the smallest first, as for
trees of any depth (:mod:`planner.solvers.steiner`), but each node keeps all trees of a set that
none is both lighter and shallower than (labels, as for constrained shortest paths: Desrochers and
Soumis 1988).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.model.shared_resources import Floats
from planner.solvers.steiner import Arcs, as_tree, closure

MOST_SITES, MOST_TERMINALS = 8, 6
"""Limits of small problems: some ten milliseconds a tree. With 16 sites, it may take seconds."""

# The label that a tree grew from, with the node it is at; or the two that were joined.
Parts: TypeAlias = "tuple[tuple[int, _Label], ...]"


class _Label(NamedTuple):
    """A tree from a node to a set of terminals."""

    weight: float
    depth: float
    parts: Parts


def is_small(sites: int, terminals: int) -> bool:
    """Return whether the problem is small enough to solve exactly in a short time."""
    return sites <= MOST_SITES and terminals <= MOST_TERMINALS


def lightest_within(
    weights: Floats,
    delays: Floats,
    root: int,
    terminals: Sequence[int],
    most_delay: float,
    below: float,
) -> Arcs | None:
    """Return a lightest tree that reaches all terminals in time, or None if none is light enough.

    Parameters
    ----------
    weights, delays : arrays, shape (n, n)
        0 or more; infinite where there is no arc.
    root : int
    terminals : sequence of int
    most_delay : float
        From the root to any terminal.
    below : float
        What it has to weigh less than.
    """
    n, count = len(weights), len(terminals)
    to_weight, to_delay = (closure(one).distance[root].tolist() for one in (weights, delays))
    usable = (weights < below) & (delays <= most_delay) & ~np.eye(n, dtype=bool)
    into = [
        [(u, float(weights[u, v]), float(delays[u, v])) for u in tails.nonzero()[0].tolist()]
        for v, tails in enumerate(usable.T)
    ]

    def promising(node: int, weight: float, depth: float) -> bool:
        return bool(weight + to_weight[node] < below and depth + to_delay[node] <= most_delay)

    labels: list[list[list[_Label]]] = [[[] for _ in range(n)] for _ in range(2**count)]
    for subset in range(1, 2**count):
        waiting: list[tuple[float, float, int, int, Parts]] = []
        if subset.bit_count() == 1:
            waiting.append((0.0, 0.0, 0, terminals[subset.bit_length() - 1], ()))
        for part in _parts(subset):
            for node in range(n):
                for one, other in product(labels[part][node], labels[subset - part][node]):
                    weight, depth = one.weight + other.weight, max(one.depth, other.depth)
                    if promising(node, weight, depth):
                        joined = ((node, one), (node, other))
                        waiting.append((weight, depth, len(waiting), node, joined))
        heapify(waiting)
        number, found = len(waiting), labels[subset]
        while waiting:
            weight, depth, _, node, parts = heappop(waiting)
            if any(label.depth <= depth for label in found[node]):
                continue  # those are no heavier
            label = _Label(weight, depth, parts)
            found[node].append(label)
            if subset == 2**count - 1 and node == root:
                return _tree(root, label, delays, terminals)
            for tail, arc_weight, delay in into[node]:
                if promising(tail, weight + arc_weight, depth + delay):
                    number += 1
                    longer = weight + arc_weight, depth + delay
                    heappush(waiting, (*longer, number, tail, ((node, label),)))
    return None


def _parts(subset: int) -> Iterator[int]:
    """Yield one part of each split of a set in two: the one with its lowest member."""
    lowest = subset & -subset
    rest = part = subset - lowest
    while part:
        part = (part - 1) & rest
        yield part | lowest


def _tree(root: int, label: _Label, delays: Floats, terminals: Sequence[int]) -> Arcs:
    """Return the tree of a label: where its branches meet again, each node's soonest way."""
    arcs: list[tuple[int, int]] = []
    grown = [(root, label)]
    for node, of in grown:
        arcs += [(node, child) for child, _ in of.parts if child != node]
        grown += of.parts
    soonest, parent = {root: 0.0}, dict[int, int]()
    waiting = [(0.0, root)]
    while waiting:
        delay, node = heappop(waiting)
        for tail, head in arcs:
            reached = delay + float(delays[tail, head])
            if tail == node and reached < soonest.get(head, float("inf")):
                soonest[head], parent[head] = reached, tail
                heappush(waiting, (reached, head))
    return as_tree(((tail, head) for head, tail in parent.items()), root, terminals)
