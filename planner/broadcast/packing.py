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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.broadcast.problem import BroadcastProblem
from planner.model.shared_resources import Floats
from planner.solvers.linear_solver import new_solver
from planner.solvers.steiner import Arcs, least_tree, near_trees, weight_of

GAP = 1e-3
MOST_ROUNDS = 200
# Weight of the best bound's prices in the smoothed ones.
SMOOTHING = 0.5
SAME = 1e-9
# Price of being late by the whole deadline, as a multiple of the dearest tree's fees.
PENALTY = 100.0
# Beyond this number of destinations the lightest tree takes longer than a few quick attempts.
QUICK_FIRST = 6
# Share of cost or time worth giving up for fewer trees: each is one more thing to run.
SIMPLER = 3e-3
FEW = (1, 2, 3, 4, 6, 8, 12)


class Trees:
    """The trees found so far, with their loads and fees; many programs share them.

    Attributes
    ----------
    found : list of Arcs
    loads : list of arrays
        VM-seconds of every row that a tree carrying the whole volume needs.
    fees_usd : list of float
    entered : list of arrays, length n
        Whether a tree passes each site that is not an end.
    """

    def __init__(self, problem: BroadcastProblem) -> None:
        self.problem = problem
        self.found: list[Arcs] = []
        self.loads: list[Floats] = []
        self.fees_usd: list[float] = []
        self.entered: list[Floats] = []
        self._position: dict[frozenset[tuple[int, int]], int] = {}
        self.is_relay = problem.is_relay

    def add(self, arcs: Arcs) -> int:
        """Return the position of a tree, adding it if it is new."""
        key = frozenset(arcs)
        if key not in self._position:
            problem = self.problem
            links = self.links_gbit([arcs], np.ones(1))
            entered = np.zeros(len(problem.regions))
            entered[[head for _, head in arcs]] = 1.0
            self._position[key] = len(self.found)
            self.found.append(arcs)
            self.loads.append(problem.resources.loads(links))
            self.fees_usd.append(problem.volume_gbit * weight_of(problem.usd_per_gbit, arcs))
            self.entered.append(np.where(self.is_relay, entered, 0.0))
        return self._position[key]

    def links_gbit(self, trees: Sequence[Arcs], shares: Floats) -> Floats:
        """Return the volume on every link, shape (n, n), of trees that carry shares."""
        n = len(self.problem.regions)
        links = np.zeros((n, n))
        for arcs, share in zip(trees, shares.tolist(), strict=True):
            for arc in arcs:
                links[arc] += share * self.problem.volume_gbit
        return links


@dataclass(frozen=True)
class Packing:
    """Shares of trees, and a proven bound.

    Attributes
    ----------
    trees : tuple of Arcs
    shares : array
        Above 0; their sum is 1.
    objective, bound : float
        Its value, and a bound that no packing can beat: s, or USD.
    row_prices : array
        Value of a VM-second of each row, in the objective's unit.
    """

    trees: tuple[Arcs, ...]
    shares: Floats
    objective: float = 0.0
    bound: float = 0.0
    row_prices: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Deadline:
    """A time limit for a packing of least cost.

    Attributes
    ----------
    transfer_s : float
        Without getting up to speed.
    paid_s : float
        Time that every VM is paid for.
    """

    transfer_s: float
    paid_s: float


def least_time(trees: Trees, gap: float = GAP) -> Packing:
    """Return a packing whose time is within a gap of the least.

    Parameters
    ----------
    trees : Trees
        With at least one tree; gets those found.
    """
    return PackingProgram(trees, None).solve(gap, MOST_ROUNDS)


def fewer_trees(
    trees: Trees, packing: Packing, deadline: Deadline | None = None, worth: float = SIMPLER
) -> Packing:
    """Return a packing of the fewest trees that is hardly worse.

    Parameters
    ----------
    trees : Trees
    packing : Packing
        Of least time, or of least cost within `deadline`.
    worth : float
        Share of the objective that more trees must bring.
    """
    order = np.argsort(-packing.shares, kind="stable").tolist()
    for count in FEW:
        if count >= len(order):
            break
        chosen = [trees.add(packing.trees[i]) for i in order[:count]]
        few = PackingProgram(trees, deadline, chosen).solve(1.0, 0)
        if few.objective <= packing.objective * (1 + worth):
            return replace(few, bound=packing.bound, row_prices=packing.row_prices)
    return packing


def among(trees: Trees, chosen: Sequence[int]) -> Packing:
    """Return the fastest packing of some trees alone."""
    return PackingProgram(trees, None, chosen).solve(1.0, 0)


class PackingProgram:
    """One of the two linear programs over the trees found so far, growing tree by tree."""

    def __init__(
        self, trees: Trees, deadline: Deadline | None, chosen: Sequence[int] | None = None
    ) -> None:
        self.trees, self.deadline = trees, deadline
        problem = self.problem = trees.problem
        resources = problem.resources
        self.sites = resources.row_sites
        self.limits = resources.row_vms
        self.unit_s = (
            deadline.transfer_s if deadline else float((trees.loads[0] / self.limits).max())
        )
        self.unit = self.unit_s
        self.solver: Any = new_solver()
        many = self.solver.infinity()
        self.goal = self.solver.Objective()
        self.goal.SetMinimization()
        self.whole = self.solver.Constraint(1.0, 1.0)
        # Made when a tree first loads them: most rows of paths are never needed.
        self.rows: dict[int, Any] = {}
        self.counts: list[Any] = []
        self.relays = np.nonzero(trees.is_relay)[0].tolist() if deadline else []
        self.relay_rows = [self.solver.Constraint(-many, 0.0) for _ in self.relays]
        self.time = self.solver.NumVar(0.0, many, "time")
        self.shares: list[tuple[int, Any]] = []
        if deadline:
            self.unit = max(*trees.fees_usd, float(self._vm_usd().sum()) * SAME, SAME)
            self._add_vms()
            self.goal.SetCoefficient(self.time, PENALTY)
        else:
            self.goal.SetCoefficient(self.time, 1.0)
        for tree in range(len(trees.found)) if chosen is None else chosen:
            self._add_tree(tree)

    def _vm_usd(self) -> Floats:
        """Return the cost of one VM at each site."""
        assert self.deadline
        return self.problem.vm_usd_per_h * (self.deadline.paid_s / 3600.0)

    def _least_vms(self) -> Floats:
        return np.where(self.trees.is_relay, 0.0, 1.0)

    def _add_vms(self) -> None:
        least, most = self._least_vms(), self.problem.resources.vms
        for site, usd in enumerate(self._vm_usd().tolist()):
            count = self.solver.NumVar(float(least[site]), float(most[site]), "")
            self.goal.SetCoefficient(count, usd / self.unit)
            self.counts.append(count)
        for row, site in zip(self.relay_rows, self.relays, strict=True):
            row.SetCoefficient(self.counts[site], -1.0)

    def _row(self, position: int) -> Any:
        """Return the row of a limit that VMs share, made when first needed."""
        if position not in self.rows:
            row = self.solver.Constraint(-self.solver.infinity(), 0.0)
            row.SetCoefficient(self.time, -float(self.limits[position]))
            if self.deadline:
                count = self.counts[self.sites[position]]
                row.SetCoefficient(count, -self.deadline.transfer_s / self.unit_s)
            self.rows[position] = row
        return self.rows[position]

    def _add_tree(self, tree: int) -> None:
        share = self.solver.NumVar(0.0, self.solver.infinity(), "")
        self.shares.append((tree, share))
        self.whole.SetCoefficient(share, 1.0)
        loads = self.trees.loads[tree] / self.unit_s
        for row in np.nonzero(loads)[0].tolist():
            self._row(row).SetCoefficient(share, float(loads[row]))
        if self.deadline:
            self.goal.SetCoefficient(share, self.trees.fees_usd[tree] / self.unit)
            entered = self.trees.entered[tree]
            for row, site in zip(self.relay_rows, self.relays, strict=True):
                if entered[site]:
                    row.SetCoefficient(share, 1.0)

    # ---- columns ---------------------------------------------------------------------------

    def solve(self, gap: float, most_rounds: int, enough: float = np.inf) -> Packing:
        """Return a packing within a gap of the best, adding trees until it is.

        Parameters
        ----------
        gap : float
        most_rounds : int
            With few, the packing is good but its bound may be loose; with none, it uses only the
            trees found so far.
        enough : float
            Stop when the bound, in USD, exceeds this.

        Returns
        -------
        Packing
            Its objective is infinite if none meets the deadline.
        """
        problem, enough = self.problem, enough / self.unit
        ends = problem.root, problem.terminals
        bound = 0.0
        best_prices = center = self._first_prices()
        value, quick_left = self._optimum(), 2 * len(problem.terminals)
        for _ in range(most_rounds):
            if value is None:
                break
            prices, tree_price = self.prices()
            if len(problem.terminals) > QUICK_FIRST and quick_left:
                weights = self.link_weights(prices)
                quick = [
                    arcs
                    for arcs in near_trees(weights, *ends)
                    if weight_of(weights, arcs) < tree_price - gap * abs(value)
                ]
                if self.welcome(quick):
                    quick_left -= 1
                    value = self._optimum()
                    continue
            smooth = SMOOTHING * center + (1 - SMOOTHING) * prices
            fresh = []
            for tried in (smooth, prices):
                tried = self._normalised(tried)
                arcs, weight = least_tree(self.link_weights(tried), *ends)
                proven = weight + self._beside_trees(tried)
                if proven > bound:
                    bound, best_prices, center = proven, tried, tried
                fresh.append(arcs)
                if value - bound <= gap * abs(bound) or bound > enough:
                    break
                if self.welcome([arcs]):
                    break
            else:
                break  # no tree that the program lacks
            if value - bound <= gap * abs(bound) or bound > enough:
                break
            value = self._optimum()
        return self._packing(value, bound, best_prices)

    def welcome(self, trees: Sequence[Arcs]) -> bool:
        """Add trees to the program; return whether any is new to it."""
        fresh = {self.trees.add(arcs) for arcs in trees} - set(self.known())
        for tree in sorted(fresh):
            self._add_tree(tree)
        return bool(fresh)

    def known(self) -> list[int]:
        """Return the trees that the program has."""
        return [tree for tree, _ in self.shares]

    def allow(self, allowed: Callable[[Arcs], bool]) -> list[int]:
        """Let only some of the trees carry anything, and return them."""
        kept = []
        for tree, share in self.shares:
            may = allowed(self.trees.found[tree])
            share.SetBounds(0.0, self.solver.infinity() if may else 0.0)
            kept += [tree] if may else []
        return kept

    def _optimum(self) -> float | None:
        if self.solver.Solve() != self.solver.OPTIMAL:
            return None
        return float(self.goal.Value())

    def _first_prices(self) -> Floats:
        rows = np.zeros(len(self.limits))
        of_sites = len(rows) - len(self.problem.resources.paths[0]) or len(rows)
        rows[:of_sites] = 1.0 / self.limits[:of_sites].sum()
        return np.append(rows if not self.deadline else 0.0 * rows, np.zeros(len(self.relays)))

    def prices(self) -> tuple[Floats, float]:
        """Return the prices of rows and relays, and the weight of the best trees so far."""
        duals = np.zeros(len(self.limits) + len(self.relay_rows))
        for position, row in self.rows.items():
            duals[position] = -row.dual_value()
        duals[len(self.limits) :] = [-row.dual_value() for row in self.relay_rows]
        return np.maximum(duals, 0.0), float(self.whole.dual_value())

    def _normalised(self, prices: Floats) -> Floats:
        if self.deadline:
            return prices
        return np.asarray(prices / (prices[: len(self.limits)] @ self.limits))

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
        rows, resources = len(self.limits), self.problem.resources
        net = self._vm_usd() / self.unit
        per_vm = self.deadline.transfer_s / self.unit_s
        net = net - per_vm * np.bincount(self.sites, prices[:rows], minlength=len(net))
        net[self.relays] -= prices[rows:]
        return float(np.where(net > 0, net * self._least_vms(), net * resources.vms).sum())

    def _packing(self, value: float | None, bound: float, prices: Floats) -> Packing:
        row_prices = prices[: len(self.limits)] * (self.unit / self.unit_s)
        if value is None or (self.deadline and self.time.solution_value() > SAME * 1e3):
            return Packing((), np.zeros(0), np.inf, bound * self.unit, row_prices)
        used = [(tree, max(0.0, share.solution_value())) for tree, share in self.shares]
        used = [(tree, share) for tree, share in used if share > 1e-7]
        shares = np.array([share for _, share in used])
        return Packing(
            tuple(self.trees.found[tree] for tree, _ in used),
            shares / shares.sum(),
            value * self.unit,
            bound * self.unit,
            row_prices,
        )
