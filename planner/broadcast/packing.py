"""Packs trees: which trees carry which shares of a broadcast, to within a proven gap.

Every tree, rooted at the source and reaching all destinations, may carry a share ``w`` of the
volume. With ``C`` the load that a tree carrying everything puts on the rows of
:mod:`planner.model.shared_resources`, ``f`` its egress fees, ``n_v`` VMs at a site, ``N_v`` the
most there may be, and ``p_v`` the price of one for as long as it is paid::

    least time:            minimise  t              subject to  C w <= N t
    least cost in a time:  minimise  f w + p n      subject to  C w <= T n,   lo <= n <= N,
                                                    share of the trees through a relay <= n_relay
    both:                  sum of w = 1,  w >= 0

Trees are far too many to write down. Prices of the rows (the dual values) make prices of links, and
the lightest tree at those prices (:mod:`planner.solvers.steiner`) is the column to add, or the
proof that none is missing: Dantzig and Wolfe 1960; for packing Steiner trees, Jain, Mahdian and
Salavatipour 2003. At any prices, the lightest tree's weight bounds the optimum from below. Prices
are smoothed towards the best so far (Wentges 1997), as vertex prices jump about.

VMs are fractions here; callers that round them up state the gap against this bound.

:func:`pack_by_depth` packs trees that get up to speed soon, exactly, for small problems: within
several limits of depth. The lightest tree within one is found as those of any depth are, but each
node keeps all trees of a set of terminals that none is both lighter and shallower than (labels, as
for constrained shortest paths: Desrochers and Soumis 1988).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import chain, product
from math import inf
from typing import Any, NamedTuple

import numpy as np

from planner.broadcast.problem import BroadcastProblem
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H
from planner.solvers.linear_solver import new_solver, status_of
from planner.solvers.steiner import Arcs, as_tree, closure, least_tree, near_trees, weight_of

GAP = 1e-3
MOST_ROUNDS = 200
# Weight of the best bound's prices in the smoothed ones.
SMOOTHING = 0.5
SAME, LATE = 1e-9, 1e-6
# Price of being late by the whole deadline, as a multiple of the dearest tree's fees.
PENALTY = 100.0
# Beyond this number of destinations the lightest tree takes longer than a few quick attempts.
QUICK_FIRST = 6
# Trees this much lighter than those in use are worth adding.
LIGHTER = 1e-4
# Share of cost or time worth giving up for fewer trees: each is one more thing to run.
SIMPLER = 3e-3
FEW = (1, 2, 3, 4, 6, 8, 12)


class Tree(NamedTuple):
    """A tree that may carry all or a part of the volume."""

    arcs: Arcs
    loads: Floats  # length rows: VM-seconds of every row that it needs, carrying the whole volume
    usd: float  # fees of the whole volume
    entered: Floats  # length n: 1 for each site on it that is not an end, else 0


class Trees:
    """The trees found so far; many programs share them.

    Attributes
    ----------
    found : list of Tree
        In the order in which they were added.
    """

    def __init__(self, problem: BroadcastProblem, trees: Iterable[Arcs] = ()) -> None:
        self.problem = problem
        self.found: list[Tree] = []
        self._position: dict[frozenset[tuple[int, int]], int] = {}
        for arcs in trees:
            self.add(arcs)

    def add(self, arcs: Arcs) -> int:
        """Return the position of a tree, adding it if it is new."""
        key, problem = frozenset(arcs), self.problem
        if key not in self._position:
            loads = problem.resources.loads(problem.links_gbit(problem.streams([arcs], np.ones(1))))
            entered = np.zeros(len(problem.regions))
            entered[[head for _, head in arcs]] = 1.0
            usd = problem.volume_gbit * weight_of(problem.usd_per_gbit, arcs)
            self._position[key] = len(self.found)
            self.found.append(Tree(arcs, loads, usd, np.where(problem.is_relay, entered, 0.0)))
        return self._position[key]


class Deadline(NamedTuple):
    """A time limit for a packing of least cost."""

    transfer_s: float  # without getting up to speed
    paid_s: float  # time that every VM is paid for


@dataclass(frozen=True)
class Packing:
    """Shares of trees, and a proven bound."""

    trees: tuple[Arcs, ...]
    shares: Floats  # above 0; their sum is 1
    objective: float = 0.0  # its value: s, or USD
    bound: float = 0.0  # that no packing can beat


def fewer_trees(trees: Trees, packing: Packing, deadline: Deadline | None = None) -> Packing:
    """Return a packing of the fewest trees that is hardly worse.

    Parameters
    ----------
    packing : Packing
        Of least time, or of least cost within `deadline`.
    """
    order = np.argsort(-packing.shares, kind="stable").tolist()
    for count in FEW:
        if count >= len(order):
            break
        chosen = [trees.add(packing.trees[i]) for i in order[:count]]
        few = PackingProgram(trees, deadline, chosen).solve()
        if few.objective <= packing.objective * (1 + SIMPLER):
            return replace(few, bound=packing.bound)
    return packing


class PackingProgram:
    """One of the two linear programs over the trees found so far, growing tree by tree."""

    def __init__(
        self, trees: Trees, deadline: Deadline | None = None, chosen: Sequence[int] | None = None
    ) -> None:
        self.trees, self.deadline = trees, deadline
        problem = self.problem = trees.problem
        resources, is_relay = problem.resources, problem.is_relay
        self.limits = resources.row_vms
        self.solver: Any = new_solver()
        many = self.solver.infinity()
        self.goal = self.solver.Objective()
        self.goal.SetMinimization()
        self.whole = self.solver.Constraint(1.0, 1.0)
        self.time = self.solver.NumVar(0.0, many, "")
        self.goal.SetCoefficient(self.time, PENALTY if deadline else 1.0)
        self.shares: dict[int, Any] = {}
        self.counts: list[Any] = []
        self.relays: list[int] = np.nonzero(is_relay)[0].tolist() if deadline else []
        # Rows of resources, made when a tree first loads them: most of paths are never needed; and
        # behind them those of relays.
        self.row_sites = np.append(resources.row_sites, np.array(self.relays, dtype=np.int64))
        behind = range(len(self.limits), len(self.row_sites))
        self.rows = {row: self.solver.Constraint(-many, 0.0) for row in behind}
        if deadline:
            self.unit_s = deadline.transfer_s
            self.vm_usd = problem.vm_usd_per_h * (deadline.paid_s / S_PER_H)
            dearest_usd = max(tree.usd for tree in trees.found)
            self.unit = max(dearest_usd, float(self.vm_usd.sum()) * SAME, SAME)
            self.least_vms = np.where(is_relay, 0.0, 1.0)
            vms = zip(self.least_vms.tolist(), resources.vms.tolist(), strict=True)
            self.counts = [self.solver.NumVar(least, most, "") for least, most in vms]
            for count, usd in zip(self.counts, self.vm_usd.tolist(), strict=True):
                self.goal.SetCoefficient(count, usd / self.unit)
            for row, site in zip(self.rows.values(), self.relays, strict=True):
                row.SetCoefficient(self.counts[site], -1.0)
        else:
            self.unit = self.unit_s = float((trees.found[0].loads / self.limits).max())
        for tree in range(len(trees.found)) if chosen is None else chosen:
            self._add_tree(tree)

    def _add_tree(self, number: int) -> None:
        tree = self.trees.found[number]
        share = self.shares[number] = self.solver.NumVar(0.0, self.solver.infinity(), "")
        self.whole.SetCoefficient(share, 1.0)
        loads = np.append(tree.loads / self.unit_s, tree.entered[self.relays])
        for position in np.nonzero(loads)[0].tolist():
            if position not in self.rows:
                row = self.rows[position] = self.solver.Constraint(-self.solver.infinity(), 0.0)
                row.SetCoefficient(self.time, -float(self.limits[position]))
                if self.deadline:
                    row.SetCoefficient(self.counts[self.row_sites[position]], -1.0)
            self.rows[position].SetCoefficient(share, float(loads[position]))
        if self.deadline:
            self.goal.SetCoefficient(share, tree.usd / self.unit)

    def solve(self, gap: float = 1.0, most_rounds: int = 0, enough: float = np.inf) -> Packing:
        """Return a packing within a gap of the best, adding trees until it is.

        Parameters
        ----------
        most_rounds : int
            With few, the packing is good but its bound may be loose; with none, it uses only the
            trees found so far.
        enough : float
            Stop when the bound, in USD, exceeds this.

        Its objective is infinite if none meets the deadline.
        """
        problem, enough = self.problem, enough / self.unit
        ends = problem.root, problem.terminals
        bound, center = 0.0, np.zeros(len(self.row_sites))
        if not self.deadline:  # limits of sites are worth the same, and those of paths nothing
            of_sites = len(self.limits) - len(problem.resources.paths[0]) or len(self.limits)
            center[:of_sites] = 1.0 / self.limits[:of_sites].sum()
        value, quick_left = self._optimum(), 2 * len(problem.terminals)
        for _ in range(most_rounds):
            if value is None:
                break
            prices, tree_price = self.prices()
            if len(problem.terminals) > QUICK_FIRST and quick_left:
                weights, most = self.link_weights(prices), tree_price - gap * abs(value)
                near = near_trees(weights, *ends)
                if self.welcome([arcs for arcs in near if weight_of(weights, arcs) < most]):
                    quick_left -= 1
                    value = self._optimum()
                    continue
            for tried in (SMOOTHING * center + (1 - SMOOTHING) * prices, prices):
                if not self.deadline:
                    tried = tried / (tried[: len(self.limits)] @ self.limits)
                arcs, weight = least_tree(self.link_weights(tried), *ends)
                proven = weight + self._beside_trees(tried)
                if proven > bound:
                    bound, center = proven, tried
                done = value - bound <= gap * abs(bound) or bound > enough
                if done or self.welcome([arcs]):
                    break
            else:
                break  # no tree that the program lacks
            if done:
                break
            value = self._optimum()
        if value is None or (self.deadline and self.time.solution_value() > LATE):
            return Packing((), np.zeros(0), np.inf, bound * self.unit)
        used = {tree: share.solution_value() for tree, share in self.shares.items()}
        used = {tree: share for tree, share in used.items() if share > 1e-7}
        shares = np.array(list(used.values()))
        carrying = tuple(self.trees.found[tree].arcs for tree in used)
        return Packing(carrying, shares / shares.sum(), value * self.unit, bound * self.unit)

    def welcome(self, trees: Iterable[Arcs]) -> bool:
        """Add trees to the program; return whether any is new to it."""
        fresh = {self.trees.add(arcs) for arcs in trees} - self.shares.keys()
        for tree in sorted(fresh):
            self._add_tree(tree)
        return bool(fresh)

    def solve_among(
        self,
        allowed: Callable[[Arcs], bool],
        lighter: Callable[[Floats, float], Iterable[Arcs]],
        most_rounds: int,
    ) -> tuple[Packing, bool]:
        """Return the best packing of some trees, adding to them; and whether none is missing.

        Parameters
        ----------
        allowed : callable
            Whether one of the trees found so far may carry anything.
        lighter : callable
            Returns allowed trees that weigh less than a figure at weights of links.
        """
        for tree, share in self.shares.items():
            may = allowed(self.trees.found[tree].arcs)
            share.SetBounds(0.0, self.solver.infinity() if may else 0.0)
        packing = self.solve()
        for _ in range(most_rounds):
            prices, tree_price = self.prices()
            found = lighter(self.link_weights(prices), tree_price * (1 - LIGHTER))
            if not self.welcome(found):
                return packing, True
            packing = self.solve()
        return packing, False

    def _optimum(self) -> float | None:
        if status_of(self.solver) != self.solver.OPTIMAL:
            return None
        return float(self.goal.Value())

    def prices(self) -> tuple[Floats, float]:
        """Return the prices of rows and relays, and the weight of the best trees so far."""
        duals = np.zeros(len(self.row_sites))
        for position, row in self.rows.items():
            duals[position] = -row.dual_value()
        return np.maximum(duals, 0.0), float(self.whole.dual_value())

    def link_weights(self, prices: Floats) -> Floats:
        """Return the price of the whole volume on every link, in the program's unit."""
        problem, rows = self.problem, len(self.limits)
        per_gbit = problem.resources.link_prices(prices[:rows] / self.unit_s)
        weights = problem.volume_gbit * per_gbit
        if self.deadline:
            weights = weights + problem.usd_per_gbit * (problem.volume_gbit / self.unit)
            weights[:, self.relays] += prices[rows:]
        return np.asarray(weights)

    def _beside_trees(self, prices: Floats) -> float:
        """Return the least of the program's other terms at some prices."""
        if not self.deadline:
            return 0.0
        net, resources = self.vm_usd / self.unit, self.problem.resources
        net = net - np.bincount(self.row_sites, prices, minlength=len(net))
        return float(np.where(net > 0, net * self.least_vms, net * resources.vms).sum())


# ---- trees that get up to speed soon -------------------------------------------------------------

MOST_SITES, MOST_TERMINALS = 8, 6
"""Limits of small problems: some ten milliseconds a tree. With 16 sites, it may take seconds."""
EQUAL = 1e-9
# Depths tried, and trees added for each.
MOST_DEPTHS, DEPTH_ROUNDS = 20, 60


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
        return max(map(problem.depth_s, of))

    def least_within_s(most_s: float) -> float:
        """Note the fastest packing of trees up to speed in a time; return a bound on its time."""
        most_s *= 1 + EQUAL

        def lighter(weights: Floats, below: float) -> list[Arcs]:
            ends = problem.root, problem.terminals
            tree = lightest_within(weights, delays_s, *ends, most_s, below)
            return [tree] if tree else []

        packing, proven = program.solve_among(
            lambda arcs: problem.depth_s(arcs) <= most_s, lighter, DEPTH_ROUNDS
        )
        found.append(packing)
        return packing.objective * (1 - LIGHTER) if proven else 0.0

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
