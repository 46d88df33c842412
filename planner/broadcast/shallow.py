"""Fast packings of trees that get up to speed soon.

A broadcast takes the time of its packing and that of its deepest tree to get up to speed. Lightest
trees at prices of links know nothing of depth, so here trees no deeper than a limit are packed, for
several limits; better ones are looked for among their neighbours, in which one region receives from
another one. It is a local search: what it finds is a plan, and no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from planner.broadcast.packing import Packing, PackingProgram, Trees
from planner.model.shared_resources import Floats
from planner.solvers.steiner import Arcs, as_tree, weight_of

FRESH_A_ROUND = 12
# Regions that are not in a tree yet that each of its own may receive through: the lightest.
RELAYS = 4
# A tree this much lighter than those in use is worth adding.
WORTH = 1e-4


def pack_within(
    trees: Trees, ramp_s: Callable[[Arcs], float], most_s: float, rounds: int
) -> Packing:
    """Return the fastest packing found of trees that are up to speed in a time.

    Parameters
    ----------
    trees : Trees
        Some of them within the limit; gets those found.
    ramp_s : callable
        What getting up to speed adds on a tree.
    most_s : float
    rounds : int
        How often to look for better trees.
    """
    chosen = [i for i, arcs in enumerate(trees.found) if ramp_s(arcs) <= most_s]
    program = PackingProgram(trees, None, chosen)
    packing = program.solve(1.0, 0)
    for _ in range(rounds):
        prices, tree_price = program.prices()
        weights = program.link_weights(prices)
        lighter: dict[Arcs, float] = {}
        # First around the trees in use, then around all: there is more to choose from.
        for tried in (packing.trees, [trees.found[i] for i in program.known()]):
            for arcs in (near for tree in tried for near in _neighbours(tree, weights, trees)):
                weight = weight_of(weights, arcs)
                if weight < tree_price * (1 - WORTH) and ramp_s(arcs) <= most_s:
                    lighter[arcs] = weight
            if lighter:
                break
        if not program.welcome(sorted(lighter, key=lambda arcs: lighter[arcs])[:FRESH_A_ROUND]):
            break
        packing = program.solve(1.0, 0)
    return packing


def _neighbours(arcs: Arcs, weights: Floats, trees: Trees) -> Iterator[Arcs]:
    """Yield the trees in which one region receives from another one, or through one more."""
    root, terminals = trees.problem.root, trees.problem.terminals
    parent = {head: tail for tail, head in arcs}
    inside = [root, *parent]
    known = np.isfinite(weights)
    for head in parent:
        below = _below(head, parent)
        beyond = [u for u in np.argsort(weights[:, head]).tolist() if u not in parent and u != root]
        for tail in [*inside, *beyond[:RELAYS]]:
            if tail in below or tail == parent[head] or not known[tail, head]:
                continue
            changed = {**parent, head: tail}
            if tail not in parent and tail != root:
                feeders = [u for u in inside if u not in below and known[u, tail]]
                if not feeders:
                    continue
                changed[tail] = min(feeders, key=lambda u: weights[u, tail])
            yield as_tree(((tail, head) for head, tail in changed.items()), root, terminals)


def _below(node: int, parent: dict[int, int]) -> set[int]:
    """Return a node and all that receive through it."""
    below = {node}
    while True:
        more = {head for head, tail in parent.items() if tail in below} - below
        if not more:
            return below
        below |= more
