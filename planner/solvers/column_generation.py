"""Routes many transfers over direct and one-hop paths, to within a certified gap.

With ``C`` the load that a source's whole pattern of paths (a *column*, of weight ``w``) puts on the
rows of :mod:`planner.model.shared_resources`, and ``n`` their VMs::

    minimise    f w + p t
    subject to  C w <= n (T + t),   sum of w = 1 for each source,   w, t >= 0

Least time is ``f = 0, T = 0, p = 1``; least fees before a deadline ``T`` are fees ``f`` and a
penalty ``p`` that makes lateness never pay. Any prices ``y >= 0`` of rows with ``n y <= p`` prove
that nothing is better than::

    sum of demand x (cheapest path at fee + y per link)  -  T n y

and the patterns of those cheapest paths are the columns worth adding (Dantzig and Wolfe 1960). The
program over the columns so far is solved by the simplex method, which goes on where it was; as its
prices jump about, columns are also sought at prices smoothed towards the best (Wentges 1997).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.model.shared_resources import Floats, Integers, SiteResources, links_of
from planner.solvers.linear_solver import new_solver, status_of

GAP = 1e-3
MOST_ROUNDS = 300
SMOOTHING = 0.5
# The first columns: rows priced by how loaded they were so far (multiplicative weights).
FIRST_ROUNDS = 10
STEEPNESS = 30.0
# Paths that take so much of the time have rows.
NEARLY_FULL = 0.9
PREFER_DIRECT = 1e-9
# Shares of a pair's volume too small for a path of their own, the boldest first.
SLIVERS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-6)


@dataclass(frozen=True)
class Routing:
    """A routing of all demands, with a proven bound."""

    # shape (n, n, n): volume by source, first hop and destination; direct where the first hop is
    # the destination
    paths_gbit: Floats
    objective: float  # what it reaches
    bound: float  # what no routing can beat
    row_prices: Floats  # what a VM-second of each row is worth, in the objective's unit


class PathColumns:
    """Patterns of paths found so far; many problems on the same demands share them.

    Attributes
    ----------
    sources : array, length columns
    first_hops : array, shape (columns, n)
        By destination.
    resources : SiteResources
        With the paths' rows that some routing broke so far (:meth:`add_rows`): few ever bind.

    Parameters
    ----------
    given : SiteResources
        With all rows.
    demands_gbit, usd_per_gbit : arrays, shape (n, n)
        Volumes, and fees of links.
    """

    def __init__(self, given: SiteResources, demands_gbit: Floats, usd_per_gbit: Floats) -> None:
        self.given, self.demands_gbit, self.usd_per_gbit = given, demands_gbit, usd_per_gbit
        self.resources = given.with_path_rows(np.zeros(0, dtype=np.int64))
        self.sources = np.zeros(0, dtype=np.int64)
        self.first_hops = np.zeros((0, given.count), dtype=np.int64)
        self.senders = np.unique(np.nonzero(demands_gbit)[0])
        self._seen: set[bytes] = set()

    def with_resources(self, given: SiteResources) -> PathColumns:
        """Return the columns and rows so far on other VMs at the same sites."""
        taken = self.at_fees(self.usd_per_gbit)
        taken.given, taken.resources = given, replace(given, path_rows=self.resources.path_rows)
        return taken

    def cheapest_at_leisure(self) -> tuple[float, Integers]:
        """Return the fees of every pair's cheapest path, however slow, and its first hop."""
        linked = self.given.rate_gbps > 0
        return self.cheapest_paths(np.where(linked, self.usd_per_gbit, np.inf))

    def at_fees(self, usd_per_gbit: Floats) -> PathColumns:
        """Return the columns and rows so far at other fees of links."""
        taken = copy(self)
        taken.usd_per_gbit, taken._seen = usd_per_gbit, set(self._seen)
        return taken

    def add_rows(self, links_gbit: Floats, time_s: float) -> None:
        """Add the rows of paths that volumes on links need longer than a time for."""
        resources = self.resources
        codes, known = resources.path_rows_above(links_gbit, time_s), resources.path_rows
        fresh = codes[resources.position[codes] == len(resources.rows)]
        if len(fresh):
            assert known is not None
            self.resources = resources.with_path_rows(np.concatenate([known, fresh]))

    def prices_of_given(self, row_prices: Floats) -> Floats:
        """Return prices of the first rows so far as prices of all rows.

        A path that is as fast as its VM's cap or connections may have a row here by rounding, and
        none among all: the row of the cap or connections says the same.
        """
        prices = np.zeros(len(self.given.rows))
        position = self.given.position[self.resources.rows[: len(row_prices)]]
        known = position < len(prices)
        prices[position[known]] = row_prices[known]
        return prices

    def cheapest_paths(
        self, prices: Floats, opened: Floats | None = None
    ) -> tuple[float, Integers]:
        """Return the least price of all volumes, and each pair's first hop for it.

        Parameters
        ----------
        prices : array, shape (n, n)
            Of links; infinite where there is none.
        opened : array, length n, optional
            Prices of VM-seconds of connections, which a relay opens as many of as it accepts.
        """
        n = self.given.count
        blocked = prices.copy()
        np.fill_diagonal(blocked, np.inf)
        relays = np.nonzero(self.given.may_relay)[0]
        hops = np.broadcast_to(np.arange(n), (n, n))
        best = blocked
        if len(relays):
            through = blocked[:, None, relays] + blocked.T[None, :, relays]
            if opened is not None and opened.any():
                needs = self.given.connections_s_per_gbit
                more = needs.T[None, :, relays] - needs[:, None, relays]
                through += opened[:, None, None] * np.maximum(more, 0.0)
                through += opened[relays] * np.maximum(-more, 0.0)
            position = through.argmin(axis=2)
            relayed = np.take_along_axis(through, position[:, :, None], axis=2)[:, :, 0]
            better = relayed < blocked * (1 - PREFER_DIRECT)
            best = np.where(better, relayed, blocked)
            hops = np.where(better, relays[position], hops)
        pairs = np.nonzero(self.demands_gbit)
        return float((self.demands_gbit[pairs] * best[pairs]).sum()), hops

    def add(self, hops: Integers) -> bool:
        """Add the pattern of every source by its pairs' first hops; return whether any is new."""
        fresh = []
        for source in self.senders.tolist():
            wanted: bytes = hops[source][self.demands_gbit[source] > 0].tobytes()
            key = source.to_bytes(4, "little") + wanted
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(source)
        if fresh:
            self.sources = np.append(self.sources, fresh)
            self.first_hops = np.concatenate([self.first_hops, hops[fresh]])
        return bool(fresh)

    def routed(self, hops: Integers) -> Floats:
        """Return volumes by source, first hop and destination, of first hops of all pairs."""
        return self._paths(self.senders, hops[self.senders], np.ones(len(self.senders)))

    def loads_and_fees(self, since: int = 0) -> tuple[Floats, Floats]:
        """Return the loads of columns from a number on, shape (columns, rows), and their fees."""
        sources, hops = self.sources[since:], self.first_hops[since:]
        count, rows = len(sources), len(self.resources.rows)
        column, dst = np.nonzero(self.demands_gbit[sources])
        src, hop = sources[column], hops[column, dst]
        gbit, relayed = self.demands_gbit[src, dst], hop != dst
        usd = gbit * self.usd_per_gbit[src, hop]
        usd += np.where(relayed, gbit * self.usd_per_gbit[hop, dst], 0.0)
        of, row, load = self.resources.loads_of_paths(src, hop, dst, gbit)
        fees = np.asarray(np.bincount(column, usd, count), dtype=float)
        column = column[of]
        cell = column * (rows + 1) + row  # the last of each column: rows that never bind
        loads = np.bincount(cell.ravel(), load.ravel(), count * (rows + 1))
        return np.asarray(loads.reshape(count, rows + 1)[:, :rows], dtype=float), fees

    def paths(self, weights: Floats) -> Floats:
        """Return volumes by source, first hop and destination, of weights of columns."""
        used = np.nonzero(weights > 0)[0]
        total = np.bincount(self.sources[used], weights[used], self.given.count)
        weights = weights[used] / total[self.sources[used]]
        return self._paths(self.sources[used], self.first_hops[used], weights)

    def _paths(self, sources: Integers, first_hops: Integers, weights: Floats) -> Floats:
        n = self.given.count
        source, destination = np.repeat(sources, n), np.tile(np.arange(n), len(sources))
        amount = np.repeat(weights, n) * self.demands_gbit[source, destination]
        cell = (source * n + first_hops.ravel()) * n + destination
        return np.asarray(np.bincount(cell, amount, n**3), dtype=float).reshape(n, n, n)


class _Program:
    """The linear program over columns, which grows while it is solved.

    Parameters
    ----------
    columns : PathColumns
        With at least one of each source.
    by_fees : bool
        Whether to minimise fees and the penalty; else the time.
    penalty : float
        Per second of lateness.
    units : (float, float)
        Seconds, and what the objective is counted in, so that figures are about 1.
    """

    def __init__(
        self,
        columns: PathColumns,
        units: tuple[float, float],
        *,
        by_fees: bool,
        penalty: float,
        deadline_s: float = 0.0,
    ) -> None:
        self.columns, (self.unit_s, self.unit) = columns, units
        self.penalty, self.deadline = penalty * self.unit_s / self.unit, deadline_s / self.unit_s
        self.per_usd = 1.0 / self.unit if by_fees else 0.0
        self.solver = new_solver()
        self.goal = self.solver.Objective()
        self.goal.SetMinimization()
        self.late = self.solver.NumVar(0.0, self.solver.infinity(), "")
        self.goal.SetCoefficient(self.late, self.penalty)
        self.whole = {source: self.solver.Constraint(1.0, 1.0) for source in columns.senders}
        self.rows: list[Any] = []
        self.weights: list[Any] = []

    def grow(self) -> None:
        """Enter rows and columns that are new."""
        columns, known = self.columns, len(self.weights)
        vms = columns.resources.row_vms.tolist()
        fresh = vms[len(self.rows) :]
        loads, fees = columns.loads_and_fees(0 if fresh else known)
        loads /= self.unit_s
        if fresh:
            old, loads, fees = loads[:known], loads[known:], fees[known:]
        for count in fresh:
            row = self.solver.Constraint(-self.solver.infinity(), count * self.deadline)
            row.SetCoefficient(self.late, -count)
            of = old[:, len(self.rows)]
            for column in np.nonzero(of)[0].tolist():
                row.SetCoefficient(self.weights[column], float(of[column]))
            self.rows.append(row)
        for source, load, fee in zip(columns.sources[known:], loads, fees.tolist(), strict=True):
            weight = self.solver.NumVar(0.0, self.solver.infinity(), "")
            self.weights.append(weight)
            self.whole[source].SetCoefficient(weight, 1.0)
            self.goal.SetCoefficient(weight, fee * self.per_usd)
            for row in np.nonzero(load)[0].tolist():
                self.rows[row].SetCoefficient(weight, float(load[row]))

    def value(self, paths_gbit: Floats) -> tuple[float, float]:
        """Return the objective of volumes on paths under all rows, and their lateness."""
        time = self.columns.resources.paths_time_s(paths_gbit) / self.unit_s
        late = max(0.0, time - self.deadline)
        fees = float((links_of(paths_gbit) * self.columns.usd_per_gbit).sum())
        return self.per_usd * fees + self.penalty * late, late

    def bound(self, prices: Floats) -> tuple[float, Floats, Integers]:
        """Return the bound that row prices prove, the prices scaled, and the best first hops."""
        columns, vms = self.columns, self.columns.resources.row_vms
        total = float(prices @ vms)
        if total > self.penalty or (total > 0 and not self.per_usd):
            prices = prices * (self.penalty / total)
        links = columns.resources.link_prices(prices / self.unit_s)
        opened = columns.resources.connection_prices(prices / self.unit_s)
        price, hops = columns.cheapest_paths(links + columns.usd_per_gbit * self.per_usd, opened)
        return price - self.deadline * float(prices @ vms), prices, hops

    def solve(self, gap: float) -> Routing:
        """Return a routing within a gap of the optimum, adding columns and rows."""
        columns = self.columns
        paths = columns.paths(np.ones(len(columns.sources)))
        best, bound = self.value(paths)[0], -np.inf
        center = best_prices = np.zeros(0)
        for _ in range(MOST_ROUNDS):
            self.grow()
            if status_of(self.solver) != self.solver.OPTIMAL:
                break
            found = columns.paths(np.array([of.solution_value() for of in self.weights]))
            value, late = self.value(found)
            if value < best:
                best, paths = value, found
            prices = np.maximum(0.0, [-row.dual_value() for row in self.rows])
            columns.add_rows(links_of(found), NEARLY_FULL * (self.deadline + late) * self.unit_s)
            missing = len(columns.resources.rows) - len(prices)
            prices = np.append(prices, np.zeros(missing))
            center = np.append(center, np.zeros(len(prices) - len(center)))
            fresh = missing > 0
            for tried in (SMOOTHING * center + (1 - SMOOTHING) * prices, prices):
                proven, tried, hops = self.bound(tried)
                if proven > bound:
                    bound, center, best_prices = proven, tried, tried
                fresh |= columns.add(hops)
            if best - bound <= gap * bound or not fresh:
                break
        prices = columns.prices_of_given(best_prices * self.unit / self.unit_s)
        return Routing(paths, best * self.unit, bound * self.unit, prices)


def least_time(columns: PathColumns, gap: float = GAP) -> Routing:
    """Return a routing whose time is within a gap of the least.

    Parameters
    ----------
    columns : PathColumns
        Gets the columns that were found.
    """
    if not len(columns.sources):
        _add_first_columns(columns)
    unit_s = columns.resources.paths_time_s(columns.paths(np.ones(len(columns.sources))))
    return _Program(columns, (unit_s, unit_s), by_fees=False, penalty=1.0).solve(gap)


def _add_first_columns(columns: PathColumns) -> None:
    """Add columns at prices by how loaded rows were so far, and the rows of paths that are full."""
    vms = columns.resources.row_vms
    prices = np.full(len(vms), 1.0) / vms.sum()
    links = np.zeros_like(columns.demands_gbit)
    for done in range(1, FIRST_ROUNDS + 1):
        _, hops = columns.cheapest_paths(columns.resources.link_prices(prices))
        columns.add(hops)
        links += links_of(columns.routed(hops))
        time_s = columns.resources.time_s(links / done)
        columns.add_rows(links / done, NEARLY_FULL * time_s)
        vms = columns.resources.row_vms
        level = columns.resources.loads(links / done) / vms / time_s
        prices = np.exp(STEEPNESS * (level - 1)) / vms
        prices /= prices @ vms


def least_fees(columns: PathColumns, deadline_s: float, fast: Routing, gap: float = GAP) -> Routing:
    """Return a routing before a deadline whose fees are within a gap of the least.

    Parameters
    ----------
    deadline_s : float
        Later than what `fast` needs.
    fast : Routing
        Meets the deadline with time to spare; what is a little late is mixed with it.
    """
    resources, fees = columns.resources, columns.usd_per_gbit
    fast_links = links_of(fast.paths_gbit)
    fast_usd = float((fast_links * fees).sum())
    cheapest_usd, hops = columns.cheapest_at_leisure()
    free = np.zeros(len(columns.given.rows))
    cheapest = columns.routed(hops)
    if resources.paths_time_s(cheapest) <= deadline_s:
        return Routing(cheapest, cheapest_usd, cheapest_usd, free)
    columns.add(hops)
    fast_s = resources.paths_time_s(fast.paths_gbit)
    spare_s, saved_usd = deadline_s - fast_s, fast_usd - cheapest_usd
    if spare_s <= 0 or saved_usd <= gap * cheapest_usd:
        return Routing(fast.paths_gbit, fast_usd, cheapest_usd, free)
    # Fees are convex in the deadline: no second is worth more than the mean over the spare time.
    penalty, units = 2 * saved_usd / spare_s, (deadline_s, max(cheapest_usd, saved_usd))
    late = _Program(columns, units, by_fees=True, penalty=penalty, deadline_s=deadline_s).solve(gap)
    late_s = resources.paths_time_s(late.paths_gbit)
    share = min(1.0, max(0.0, (late_s - deadline_s) / max(late_s - fast_s, 1e-300)))
    paths = (1 - share) * late.paths_gbit + share * fast.paths_gbit
    usd = float((links_of(paths) * fees).sum())
    if usd > fast_usd:
        paths, usd = fast.paths_gbit, fast_usd
    return Routing(paths, usd, max(late.bound, cheapest_usd), late.row_prices)


def without_slivers(columns: PathColumns, routing: Routing, time_s: float, usd: float) -> Floats:
    """Return a routing's paths without those that carry next to nothing of a pair's volume.

    Parameters
    ----------
    time_s, usd : float
        What the simpler routing may take and cost at most; where none keeps to it, the paths stay.
    """
    resources, volumes, paths = columns.resources, columns.demands_gbit, routing.paths_gbit
    share = np.divide(paths, volumes[:, None], out=np.zeros_like(paths), where=paths > 0)
    largest = share.max(axis=1)[:, None]
    i, j = np.nonzero(volumes)
    for sliver in SLIVERS:
        kept = (share > 0) & (share >= np.minimum(sliver, largest))
        simple = np.where(kept, paths, 0.0)
        # What the others carried goes to the path whose rows are least loaded.
        loads = resources.loads(links_of(simple)) / resources.row_vms
        most = loads.max() or 1.0  # nothing may have a row
        prices = np.exp(STEEPNESS * (loads / most - 1)) / resources.row_vms
        first = resources.link_prices(prices)
        onward = first.copy()
        np.fill_diagonal(onward, 0.0)
        cheapest = np.where(kept, first[:, :, None] + onward, np.inf).argmin(axis=1)
        simple[i, cheapest[i, j], j] += (volumes - simple.sum(axis=1))[i, j]
        fees = float((links_of(simple) * columns.usd_per_gbit).sum())
        if resources.paths_time_s(simple) <= time_s and fees <= usd:
            return simple
    return paths
