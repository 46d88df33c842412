"""Solves the program of a schedule, adding relays where the prices of rows say that they pay.

Column generation, as in :mod:`planner.solvers.column_generation`; the last prices prove a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.errors import RelaydError
from planner.model.shared_resources import Floats
from planner.schedule.slots.slot_program import Route, route_of
from planner.schedule.slots.slot_storage import StoringSlotProgram
from planner.solvers.linear_solver import solved

PAYS = 1e-7
# A share that is as good as one, and what is taken for one where solvers are at their limits.
WHOLE = 1.0 - 1e-7
NEARLY_WHOLE = 1.0 - 1e-6
SLACK = 1e-9
MOST_ROUNDS = 200
MOST_COLUMNS_A_ROUND = 500
PAYS_ENOUGH = 0.2


@dataclass(frozen=True)
class Stop:
    """When to stop adding relays.

    Attributes
    ----------
    enough : float, optional
        An objective that is good enough.
    settled_at : float, optional
        Stop as soon as the bound is above this.
    gap : float
        Between objective and bound, at which to stop: a part of what the objective is above 0, or
        above `settled_at`.
    rounds : int
        Most times to solve.
    fees_row : int, optional
        The row that limits fees.
    """

    enough: float | None = None
    settled_at: float | None = None
    gap: float = 0.0
    rounds: int = MOST_ROUNDS
    fees_row: int | None = None


class SlotSolver(StoringSlotProgram):
    """The program, and what solves it."""

    def _solve(self) -> float | None:
        """Solve what there is; None if there is no solution."""
        try:
            solver = solved(self._solver)
        except ArithmeticError as error:
            raise RelaydError(f"On this schedule, {error}.") from error
        if solver is None:
            self.work += self._solver.iterations() * len(self._all_rows)
            return None
        if solver is self._solver:
            variables, rows = self._all_variables, self._all_rows
        else:
            variables, rows = solver.variables(), solver.constraints()
        self.work += solver.iterations() * len(rows)
        self.values = np.array([variable.solution_value() for variable in variables])
        self.prices = np.array([row.dual_value() for row in rows])
        return float(solver.Objective().Value())

    def _optimise(self, stop: Stop = Stop()) -> tuple[float, float]:
        """Solve, adding relays while they pay; return the objective and a bound on it.

        Raises
        ------
        RelaydError
            If what is in does not fit.
        """
        found = self._attempt(stop)
        if found is None:
            raise RelaydError("What was admitted is not found to fit any more.")
        return found

    def _attempt(self, stop: Stop) -> tuple[float, float] | None:
        """Do the same; None if what is in does not fit."""
        value = below = 0.0
        for _ in range(stop.rounds):
            solved = self._solve()
            if solved is None and self._make_room():
                solved = self._solve()
            if solved is None:
                return None
            value = solved
            if stop.enough is not None and value <= stop.enough:
                return value, value
            limit = 0.0
            if stop.fees_row is not None:
                limit = float(self.prices[stop.fees_row]) / self._usd_scale
            added, below = self._add_relays(self._weights[0] - limit, self._weights[1])
            if not added or -below <= stop.gap * abs(value - (stop.settled_at or 0.0)):
                break
            if stop.settled_at is not None and value + below > stop.settled_at:
                break
        return value, value + below

    def _make_room(self) -> bool:
        """Add the relays without which what is in does not fit; return whether it does then.

        The first phase of the simplex method: the greatest sum of shares. Shares that miss one by
        no more than solvers do are taken for one from then on.
        """
        goal, weights = self._goal, self._weights
        whole = [self.shares[number] for number in sorted(self._whole)]
        for share in whole:
            self._all_variables[share].SetLb(0.0)
        self._aim(dict.fromkeys(whole, -1.0))
        missing = 1.0 - NEARLY_WHOLE
        self._optimise(Stop(enough=-float(len(whole)), settled_at=missing - len(whole)))
        least = min((float(self.values[share]) for share in whole), default=1.0)
        fits = least >= NEARLY_WHOLE
        for share in whole:
            self._all_variables[share].SetLb(least - SLACK if fits else 1.0)
        if any(weights):
            self._aim_at_columns(*weights)
        else:
            self._aim(goal)
        return fits

    def _add_relays(self, fees_weight: float, time_weight: float) -> tuple[int, float]:
        """Add the relays that pay at the last prices; return how many, and what they could bring.

        No solution is below the objective by more than the sum, over all transfers, of what the
        best path pays for the whole of each. What the whole of each costs at these prices is then
        in `costs`.
        """
        resources = self.resources
        row_prices: dict[int, Floats] = {}
        for (slot, position), row in self._rows.items():
            if self.prices[row]:
                if slot not in row_prices:
                    row_prices[slot] = np.zeros(len(resources.rows))
                row_prices[slot][position] = max(0.0, -self.prices[row])
        free = resources.link_prices(np.zeros(len(resources.rows)))
        share_prices = self.prices[self._share_rows]
        best_of = np.zeros(len(self.commodities))
        found: list[tuple[float, int, int, Route]] = []
        for slot, alive in enumerate(self._alive):
            numbers = np.array(sorted(alive & self._in & self._may_be_relayed), dtype=np.int64)
            if not len(numbers):
                continue
            links = resources.link_prices(row_prices[slot]) if slot in row_prices else free
            if self.bands[slot]:
                links = links.copy()
                for link in self.bands[slot]:
                    links[link] -= self._taken_off(slot, link, fees_weight)
            src, dst, volumes = self._src[numbers], self._dst[numbers], self._volumes[numbers]
            worth = (links[src] + links[:, dst].T) * (volumes / self.lengths_s[slot])[:, None]
            if fees_weight:
                fees = self.usd_per_gbit[src] + self.usd_per_gbit[:, dst].T
                worth += fees_weight * volumes[:, None] * fees
            worth[~self._may_hop[numbers]] = np.inf
            hops = worth.argmin(axis=1)
            least = worth[np.arange(len(numbers)), hops]
            least += time_weight * self.middles_s[slot] - share_prices[numbers]
            best_of[numbers] = np.minimum(best_of[numbers], least)
            for at in np.nonzero(least < -PAYS)[0].tolist():
                number, hop = int(numbers[at]), int(hops[at])
                route = route_of(int(src[at]), hop, int(dst[at]))
                if (number, slot, route) not in self._known:
                    found.append((float(least[at]), number, slot, route))
        found.sort()
        # Columns that pay little now mostly do not pay at the next prices, and slow the solver.
        for worth_now, number, slot, route in found[:MOST_COLUMNS_A_ROUND]:
            if worth_now <= PAYS_ENOUGH * found[0][0]:
                self._column(number, slot, route)
        self.costs = share_prices + best_of
        return len(found), float(best_of.sum())

    def _taken_off(self, slot: int, link: tuple[int, int], fees_weight: float) -> float:
        """Return what tariffs take off the price of one Gbit/s more on a link.

        By the price of the link's row; of a link that nothing uses yet, the cheapest tariff's.
        """
        row = self._link_rows.get((slot, *link))
        if row is not None:
            return max(0.0, -float(self.prices[row]))
        less_usd = float(self.usd_per_gbit[link]) - self.bands[slot][link][0].usd_per_gbit
        return float(fees_weight * less_usd * self.lengths_s[slot])
