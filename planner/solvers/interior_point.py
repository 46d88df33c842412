"""A primal-dual interior point of a linear program that grows by columns while it is solved.

The program and its columns are those of :mod:`planner.solvers.column_generation`. After every
single predictor-corrector step (Mehrotra 1992) the row prices prove a bound and name the columns
worth adding. Weights are made to sum to 1 before they count, so that every answer is a real
routing, and bound and answer hold whatever the rounding errors on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.shared_resources import Floats, Integers
from planner.solvers.columns import InteriorState, PathColumns, Routing

MOST_STEPS = 150
# How steeply rows are priced at the start by how loaded they are.
FIRST_STEEPNESS = 30.0
# Share of a source's volume that its new columns start with; distance kept from the boundary;
# where to aim between the present centrality and the gap wanted.
NEW_WEIGHT = 0.05
SHORT_OF_BOUNDARY = 0.95
AIM = 0.1
REGULARISATION = 1e-13
# A path this full gets a row of its own, which starts with at least so much to spare.
NEARLY_FULL = 0.95
LEAST_SPARE = 0.05
# A column is worth adding when it betters its source's price by this share of the mean price:
# less would move the bound by less than the gap wanted, and slow every further step.
WORTH_ADDING = 3e-4
# A point this far from the optimum is still central enough to start a similar problem from.
RESUMABLE_GAP = 0.02


@dataclass
class InteriorPoint:
    """Solves one problem on some columns, which it adds to.

    Attributes
    ----------
    columns : PathColumns
    fee_factor : float
        1 to minimise fees, 0 to minimise time.
    penalty : float
        Per second of lateness.
    unit_s, unit : float
        Of time and of the objective, so that figures are about 1.
    deadline_s : float
    gap : float
        Share of the bound at which to stop.
    """

    columns: PathColumns
    fee_factor: float
    penalty: float
    unit_s: float
    deadline_s: float
    gap: float
    unit: float = 0.0

    def __post_init__(self) -> None:
        """Scale the figures; lay out the matrix of rows, then sources."""
        columns = self.columns
        self.unit = self.unit or self.unit_s
        self._take_rows()
        self.penalty *= self.unit_s / self.unit
        self.position = np.full(columns.resources.count, -1)
        self.position[columns.senders] = np.arange(columns.source_count)
        rows = len(self.vms)
        self._cost = np.array([self.penalty])
        # Lateness first, then a column each; with room to grow.
        self._matrix = np.zeros((rows + columns.source_count, 2 * len(columns.fees) + 512))
        self._matrix[:rows, 0] = -self.vms
        self._width = 1
        self._take_columns(len(columns.fees))
        self.growing = True
        self.centrality = 0.0
        self.bound = -np.inf
        self.best = np.inf
        self.best_weights = np.zeros(0)
        self.best_prices = np.zeros(rows)
        self._resumable: InteriorState | None = None

    def solve(self, most_steps: int = MOST_STEPS, start: InteriorState | None = None) -> Routing:
        """Return the best routing found, and what is proven of it.

        Parameters
        ----------
        most_steps : int
        start : InteriorState, optional
            Of a problem on the same columns that differs little, in the same unit of time.
        """
        columns = self.columns
        self.point = self._first_point() if start is None else self._resumed(start)
        with np.errstate(all="ignore"):
            for _ in range(most_steps):
                if not self._step():
                    break
                broken = self._note_weights()
                if columns.add_rows(broken):
                    self._welcome_rows()
                fresh = self._note_bound()
                if self._resumable is None or self.best > self.bound * (1 + RESUMABLE_GAP):
                    self._resumable = self.point
                if self.best - self.bound <= self.gap * self.bound:
                    break
                self.growing = len(fresh) > 0
                if self.growing:
                    self._welcome(fresh)
        weights = np.zeros(len(columns.fees))
        weights[: len(self.best_weights)] = self.best_weights
        return Routing(
            columns.paths(weights),
            self.best * self.unit,
            self.bound * self.unit,
            columns.prices_of_given(self.best_prices * self.unit / self.unit_s),
            self._resumable,
        )

    # ---- points --------------------------------------------------------------------------

    def _group(self) -> Integers:
        return np.asarray(self.position[self.columns.sources[: self._width - 1]])

    def _first_point(self) -> InteriorState:
        """Return a central point: columns in equal parts, rows priced by their load."""
        loads = self._matrix[: len(self.vms), 1 : self._width]
        group = self._group()
        weights = 1.0 / np.bincount(group)[group]
        used = loads @ weights
        late = 1.05 * float(((used - self.limit) / self.vms).max(initial=0.0)) + 0.05
        level = used / self.vms / (used / self.vms).max()
        prices = np.exp(FIRST_STEEPNESS * (level - 1)) + 0.1
        share = 0.95 if not self.fee_factor else 0.25
        prices *= share * self.penalty / (prices @ self.vms)
        cost = prices @ loads + self._cost[1:]
        least = np.full(self.columns.source_count, np.inf)
        np.minimum.at(least, group, cost)
        source_prices = least - 0.1 * max(abs(float(least.sum())), 1e-3) / len(least)
        return InteriorState(
            np.concatenate([[late], weights]),
            np.concatenate([[self.penalty - prices @ self.vms], cost - source_prices[group]]),
            self.limit + self.vms * late - used,
            prices,
            np.concatenate([-prices, source_prices]),
            self.unit_s,
        )

    def _resumed(self, start: InteriorState) -> InteriorState:
        """Return a point of another problem with what rows have to spare made right for this."""
        assert start.columns == len(self.columns.fees)
        used = self._matrix[: len(self.vms), 1 : self._width] @ start.primal[1:]
        slack = self.limit + self.vms * start.primal[0] - used
        return replace(start, slack=np.where(slack > 0, slack, start.slack))

    # ---- steps ---------------------------------------------------------------------------

    def _step(self) -> bool:
        """Take one predictor-corrector step; return whether it could be taken."""
        rows, sources = len(self.vms), self.columns.source_count
        matrix, cost = self._matrix[:, : self._width], self._cost
        at = self.point
        primal, reduced, slack, slack_prices, dual = (
            at.primal,
            at.reduced,
            at.slack,
            at.slack_prices,
            at.dual,
        )
        missing = np.concatenate([self.limit - slack, np.ones(sources)]) - matrix @ primal
        missing_dual = cost - dual @ matrix - reduced
        missing_slack = -dual[:rows] - slack_prices
        pairs = len(primal) + rows
        centrality = float(primal @ reduced + slack @ slack_prices) / pairs
        ratio, slack_ratio = primal / reduced, slack / slack_prices
        half = matrix * np.sqrt(ratio)
        normal = half @ half.T  # of one array with itself: half the work
        diagonal = np.arange(rows + sources)
        normal[diagonal[:rows], diagonal[:rows]] += slack_ratio
        normal[diagonal, diagonal] += REGULARISATION * normal.diagonal().max()
        try:
            inverse = np.linalg.inv(normal)
        except np.linalg.LinAlgError:
            return False

        def direction(aim: Floats, slack_aim: Floats) -> tuple[Floats, ...]:
            right = missing + matrix @ (ratio * missing_dual - aim / reduced)
            right[:rows] += slack_ratio * missing_slack - slack_aim / slack_prices
            step = inverse @ right
            reduced_step = missing_dual - step @ matrix
            slack_price_step = missing_slack - step[:rows]
            primal_step = aim / reduced - ratio * reduced_step
            slack_step = slack_aim / slack_prices - slack_ratio * slack_price_step
            return step, primal_step, reduced_step, slack_step, slack_price_step

        _, dx, dz, ds, dv = direction(-primal * reduced, -slack * slack_prices)
        ahead = min(_room(primal, dx), _room(slack, ds))
        ahead_dual = min(_room(reduced, dz), _room(slack_prices, dv))
        reached = float((primal + ahead * dx) @ (reduced + ahead_dual * dz))
        reached += float((slack + ahead * ds) @ (slack_prices + ahead_dual * dv))
        # With columns to come, stay central; without, the gap closes only by going on.
        open_gap = self.gap
        if self.growing and np.isfinite(self.best) and self.bound > 0:
            open_gap = min(1.0, max(self.gap, self.best / self.bound - 1))
        value = abs(float(cost @ primal)) / pairs
        aim: float = max(centrality * (reached / pairs / centrality) ** 3, AIM * open_gap * value)
        step, dx, dz, ds, dv = direction(
            aim - primal * reduced - dx * dz, aim - slack * slack_prices - ds * dv
        )
        ahead = SHORT_OF_BOUNDARY * min(_room(primal, dx), _room(slack, ds))
        ahead_dual = SHORT_OF_BOUNDARY * min(_room(reduced, dz), _room(slack_prices, dv))
        if not (np.isfinite(step).all() and np.isfinite(dx).all() and ahead > 0):
            return False
        self.point = InteriorState(
            primal + ahead * dx,
            reduced + ahead_dual * dz,
            slack + ahead * ds,
            slack_prices + ahead_dual * dv,
            dual + ahead_dual * step,
            self.unit_s,
        )
        self.centrality = aim
        return True

    def _note_weights(self) -> Integers:
        """Make a routing of the weights; keep the best, and return the paths' rows that it breaks.

        The best counts with all rows, those that are not in the program too.
        """
        columns, group = self.columns, self._group()
        weights = self.point.primal[1:]
        weights = weights / np.bincount(group, weights)[group]
        used = self._matrix[: len(self.vms), 1 : self._width] @ weights
        late = float(((used - self.limit) / self.vms).max(initial=0.0))
        fees = float(weights @ self._cost[1:])
        if fees + self.penalty * late >= self.best:
            return np.zeros(0, dtype=np.int64)
        links = columns.links(weights)
        broken = columns.resources.path_rows_above(
            links, NEARLY_FULL * (self.deadline_s + late * self.unit_s)
        )
        late = max(late, (columns.resources.time_s(links) - self.deadline_s) / self.unit_s)
        value = fees + self.penalty * late
        if value < self.best:
            self.best, self.best_weights = value, weights
        return broken

    def _note_bound(self) -> Integers:
        """Prove a bound with the row prices; return the sources with new columns worth having."""
        columns, resources = self.columns, self.columns.resources
        rows = len(self.vms)
        own = -self.point.dual[:rows]
        source_prices = self.point.dual[rows:]
        prices = np.maximum(own, 0.0)
        total = float(prices @ self.vms)
        if total > self.penalty or not self.fee_factor:
            prices = prices * (self.penalty / total)
        link_prices = resources.link_prices(prices / self.unit_s)
        if self.fee_factor:
            link_prices = link_prices + columns.usd_per_gbit * (self.fee_factor / self.unit)
        price, loads, fees, hops = columns.cheapest_patterns(link_prices)
        if (bound := price - float(self.limit @ prices)) > self.bound:
            self.bound, self.best_prices = bound, prices
        senders = columns.senders
        cost = loads @ own / self.unit_s + fees * (self.fee_factor / self.unit)
        worth = WORTH_ADDING * max(abs(self.bound), 1e-9) / columns.source_count
        cheaper = senders[cost[senders] < source_prices - worth]
        fresh = columns.add(hops, loads, fees, cheaper)
        self.fresh_reduced = cost[fresh] - source_prices[self.position[fresh]]
        return fresh

    # ---- growing -------------------------------------------------------------------------

    def _welcome(self, fresh: Integers) -> None:
        """Give new columns a little weight, taken from the others of the same source."""
        has_new = np.zeros(len(self.position), dtype=bool)
        has_new[fresh] = True
        old = self.columns.sources[: self._width - 1]
        at = self.point
        primal = np.append(at.primal, np.full(len(fresh), NEW_WEIGHT))
        primal[1 : self._width][has_new[old]] *= 1 - NEW_WEIGHT
        reduced = np.maximum(np.abs(self.fresh_reduced), self.centrality / NEW_WEIGHT)
        self.point = replace(at, primal=primal, reduced=np.append(at.reduced, reduced))
        self._take_columns(self._width - 1 + len(fresh))

    def _take_rows(self) -> None:
        self.vms = self.columns.resources.row_vms
        self.limit = self.vms * (self.deadline_s / self.unit_s)

    def _welcome_rows(self) -> None:
        """Give new rows something to spare, and a price as central as those of the others."""
        known = len(self.vms)
        self._take_rows()
        fresh = len(self.vms) - known
        loads = self.columns.loads[: self._width - 1, known:].T / self.unit_s
        new = np.zeros((fresh, self._matrix.shape[1]))
        new[:, 0] = -self.vms[known:]
        new[:, 1 : self._width] = loads
        self._matrix = np.insert(self._matrix, known, new, axis=0)
        at = self.point
        most = self.limit[known:] + self.vms[known:] * at.primal[0]
        slack = np.maximum(most - loads @ at.primal[1:], LEAST_SPARE * most)
        prices = self.centrality / slack
        self.point = replace(
            at,
            slack=np.append(at.slack, slack),
            slack_prices=np.append(at.slack_prices, prices),
            dual=np.insert(at.dual, known, -prices),
        )
        self.best_prices = np.append(self.best_prices, np.zeros(fresh))

    def _take_columns(self, count: int) -> None:
        """Enter the columns up to a number into the matrix."""
        known = slice(self._width - 1, count)
        columns, rows, width = self.columns, len(self.vms), count + 1
        if width > self._matrix.shape[1]:
            wider = np.zeros((len(self._matrix), 2 * width))
            wider[:, : self._width] = self._matrix[:, : self._width]
            self._matrix = wider
        self._matrix[:rows, self._width : width] = columns.loads[known].T / self.unit_s
        where = np.arange(self._width, width)
        self._matrix[rows:, self._width : width] = 0.0
        self._matrix[rows + self.position[columns.sources[known]], where] = 1.0
        fees = columns.fees[known] * (self.fee_factor / self.unit)
        self._cost = np.append(self._cost, fees)
        self._width = width


def _room(values: Floats, step: Floats) -> float:
    """Return how far along a step values stay above 0, at most 1."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((-values[shrinking] / step[shrinking]).min()))
