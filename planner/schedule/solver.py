"""Solves the program of a schedule: which transfers fit, their fees, times and VMs.

Relays are added where the prices of rows say that they pay: column generation, as in
:mod:`planner.solvers.column_generation`; the last prices prove a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner.model.errors import RelaydError
from planner.model.shared_resources import Floats
from planner.schedule.problem import Route
from planner.schedule.program import SlotProgram
from planner.solvers.linear_solver import solved

# Columns that pay less are the rounding of a solver.
PAYS = 1e-7
# A share that counts as 1, and one that does where solvers reach their precision.
WHOLE = 1.0 - 1e-7
NEARLY_WHOLE = 1.0 - 1e-6
SLACK = 1e-9
MOST_ROUNDS = 200
MOST_COLUMNS_A_ROUND = 500
PAYS_ENOUGH = 0.2

# A solver's rounding: share of a transfer's volume, in one slot over one path.
SLIVER = 1e-8
RELAY_SLIVER = 1e-6
# Fees are the least within this; times, which only decide among routings of the same fees, are
# early rather than earliest.
FEES_GAP = 1e-6
TIME_GAP = 1e-3
# The greatest worth is known this precisely: branching proves the rest.
WORTH_GAP = 1e-3
TIME_ROUNDS = 5
# Above the least fees, as a share of them, and of the fees without tariffs or storage: at 0, a
# share of them is no room.
FEES_ROOM = 1e-9


class ScheduleProgram(SlotProgram):
    """The program of a schedule, with its solver and the questions asked of it."""

    def most_worth(self, worth: Mapping[int, float]) -> tuple[float, dict[int, float]] | None:
        """Return the greatest total worth of transfers if a share of one is worth that share.

        Parameters
        ----------
        worth : mapping
            By transfer that is in, wanted or out.

        Returns
        -------
        tuple
            An upper bound for any choice of whole transfers, and the share of each; those that
            are whole fit together. None if the transfers that are in do not fit.
        """
        scale = max(worth.values())
        self.aim(*((self.shares[n], -usd / scale) for n, usd in worth.items()))
        found = self._attempt(WORTH_GAP)
        if found is None:
            return None
        return -found[1] * scale, {n: self._value(self.shares[n]) for n in worth}

    def fits(self, number: int) -> bool:
        """Return whether a wanted transfer can be moved whole along with all that are in."""
        return self.most_moved(number) >= WHOLE

    def most_moved(self, number: int) -> float:
        """Return the greatest share of a wanted transfer that can be moved."""
        self.aim((self.shares[number], -1.0))
        self._optimise()
        return self._value(self.shares[number])

    def least_fees(self, *, with_storage: bool = True) -> tuple[float, float]:
        """Return the least fees of the transfers that are in, and a proven lower bound on them.

        Parameters
        ----------
        with_storage : bool
            Whether both include the cost of storage, at constant rates in each slot.
        """
        cheapest = 0.0
        for number in self._in:
            of = self.commodities[number]
            usd = min((self.along(route)[1] for route in of.routes()), default=0.0)
            cheapest += of.volume_gbit * usd
        self._usd_scale = cheapest or 1.0
        self.aim(fees=1.0 / self._usd_scale, with_storage=with_storage)
        least, bound = self._optimise(FEES_GAP)
        return least * self._usd_scale, bound * self._usd_scale

    def earliest(self, fees_usd: float) -> dict[int, dict[int, dict[Route, float]]]:
        """Move the transfers that are in as early as fees allow: least sum of their mean times.

        Returns
        -------
        dict
            Rates in Gbit/s by slot, transfer and route, without slivers, scaled to exact volumes.
            Volume stored and taken out within one slot is relayed.
        """
        scale = self._usd_scale
        room_usd = FEES_ROOM * (fees_usd + (scale if self._link_rows else 0.0))
        priced = (*self._priced, *self._stocks.values())
        of = ((variable, usd / scale) for variable, usd, _ in priced)
        self._fees_row = self._row(-self.many, (fees_usd + room_usd) / scale, of)
        self.aim(times=1.0 / max(float(self.cuts_s[-1]), 1e-9))
        self._optimise(TIME_GAP, TIME_ROUNDS)
        rates = {key: self._value(of) for key, of in self.columns.items() if key[0] in self._in}
        self._relay_what_need_not_be_stored(rates)
        moved = dict.fromkeys(self._in, 0.0)
        found: dict[int, dict[int, dict[Route, float]]] = {}
        for (number, slot, route), rate in rates.items():
            commodity = self.commodities[number]
            share = rate * self.lengths_s[slot] / commodity.volume_gbit
            direct = route == (commodity.src, commodity.dst)
            if share > (SLIVER if direct else RELAY_SLIVER):
                found.setdefault(slot, {}).setdefault(number, {})[route] = rate
                moved[number] += share if commodity.delivers(route) else 0.0
        return {
            slot: {n: {by: rate / moved[n] for by, rate in of.items()} for n, of in here.items()}
            for slot, here in sorted(found.items())
        }

    def _relay_what_need_not_be_stored(self, rates: dict[tuple[int, int, Route], float]) -> None:
        """Relay the volume that is stored and taken out within one slot."""
        for number, slot, into in [key for key in rates if key[2][-1] in self.found.disks]:
            commodity = self.commodities[number]
            out = number, slot, (into[-1], commodity.dst)
            if commodity.delivers(into) or not (both := min(rates[number, slot, into], rates[out])):
                continue
            through = number, slot, (commodity.src, into[-1], commodity.dst)
            rates[through] = rates.get(through, 0.0) + both
            rates[number, slot, into] -= both
            rates[out] -= both

    def fewest_vms(self, fixed: dict[int, float]) -> tuple[Floats, float] | None:
        """Return the fewest extra VMs, in fractions, for all transfers that are in; and a bound.

        Parameters
        ----------
        fixed : dict
            Site to the most extra VMs that it may get.
        """
        for site, variable in enumerate(self.more_vms):
            variable.SetUb(fixed.get(site, self.many))
        self.aim(*((variable, 1.0) for variable in self.more_vms))
        found = self._attempt()
        for variable in self.more_vms:
            variable.SetUb(0.0)
        if found is None:
            return None
        return np.array([self._value(variable) for variable in self.more_vms]), found[1]

    def last_slot(self, number: int) -> int:
        """Return the last slot in which a transfer sends by the last solution."""
        least, lengths_s = SLIVER * self.commodities[number].volume_gbit, self.lengths_s
        rates = ((slot, self._value(rate)) for slot, _, rate in self.rates_of(number))
        return max(slot for slot, rate in rates if rate * lengths_s[slot] > least)

    def least_part(self, number: int, slot: int) -> float:
        """Return the least part of a slot after which a transfer can have ended.

        A program of its own, in which the slot is divided in two.
        """
        commodities = tuple(
            replace(
                of,
                first=of.first + (of.first > slot),
                last=slot if n == number else of.last + (of.last >= slot),
            )
            for n, of in enumerate(self.commodities)
        )
        program = ScheduleProgram(replace(self.found, commodities=commodities), slot)
        program.put([*self._in, number], "in")
        for of, where, route in self.columns:
            for part in (where, where + 1) if where == slot else (where + (where > slot),):
                if of in program._alive[part]:
                    program._column(of, part, route)
        program.aim((program.part, 1.0))
        return min(1.0, max(0.0, program._optimise()[0]))

    # ---- solving -------------------------------------------------------------------------

    def _value(self, variable: Any) -> float:
        """Return a variable's last value; 0 if it came after the last solution."""
        position = variable.index()
        return float(self.values[position]) if position < len(self.values) else 0.0

    def _solve(self) -> float | None:
        """Solve the program as it is; None if there is no solution."""
        try:
            solver = solved(self.solver)
        except ArithmeticError as error:
            raise RelaydError(f"On this schedule, {error}.") from error
        self.work += (solver or self.solver).iterations() * self.solver.NumConstraints()
        if solver is None:
            return None
        self.values = np.array([variable.solution_value() for variable in solver.variables()])
        self.prices = np.array([row.dual_value() for row in solver.constraints()])
        return float(solver.Objective().Value())

    def _optimise(self, gap: float = 0.0, rounds: int = MOST_ROUNDS) -> tuple[float, float]:
        """Solve, adding relays while they pay; return the objective and a bound on it.

        Parameters
        ----------
        gap : float
            Between objective and bound, at which to stop, as a share of the objective.
        rounds : int
            Most times to solve.

        Raises
        ------
        RelaydError
            If the transfers that are in do not fit.
        """
        found = self._attempt(gap, rounds)
        if found is None:
            raise RelaydError("What was admitted is not found to fit any more.")
        return found

    def _attempt(self, gap: float = 0.0, rounds: int = MOST_ROUNDS) -> tuple[float, float] | None:
        """Do the same; None if the transfers that are in do not fit."""
        value = below = 0.0
        for _ in range(rounds):
            solution = self._solve()
            if solution is None and self._make_room():
                solution = self._solve()
            if solution is None:
                return None
            value = solution
            added, below = self._add_relays()
            if not added or -below <= gap * abs(value):
                break
        return value, value + below

    def _make_room(self) -> bool:
        """Add relays until the transfers that are in fit; return whether they do.

        The first phase of the simplex method: the greatest sum of shares. Shares that miss 1 by no
        more than a solver's rounding then count as 1.
        """
        goal, (fees, times), storage = self._goal, self._weights, self._with_storage
        whole = [self.shares[number] for number in sorted(self._whole)]
        for share in whole:
            share.SetLb(0.0)
        self.aim(*((share, -1.0) for share in whole))
        self._optimise()
        least = min((self._value(share) for share in whole), default=1.0)
        fits = least >= NEARLY_WHOLE
        for share in whole:
            share.SetLb(least - SLACK if fits else 1.0)
        self.aim(*goal, fees=fees, times=times, with_storage=storage)
        return fits

    def _add_relays(self) -> tuple[int, float]:
        """Add the relays that pay at the last prices; return their number and possible saving.

        No solution is below the objective by more than the sum, over all transfers, of the saving
        of each one's best path if it carries everything.
        """
        resources = self.resources
        fees_weight, time_weight = self._weights
        if self._fees_row is not None:
            fees_weight -= float(self.prices[self._fees_row.index()]) / self._usd_scale
        row_prices: dict[int, Floats] = {}
        for (slot, position), row in self._rows.items():
            if price := self.prices[row.index()]:
                of = row_prices.setdefault(slot, np.zeros(len(resources.rows)))
                of[position] = max(0.0, -price)
        free = resources.link_prices(np.zeros(len(resources.rows)))
        share_prices = self.prices[[row.index() for row in self._share_rows]]
        best_of = np.zeros(len(self.commodities))
        relayed = set(np.nonzero(self._may_hop.any(axis=1))[0].tolist()) & self._in
        found: list[tuple[float, int, int, Route]] = []
        route: Route
        for slot, alive in enumerate(self._alive):
            numbers = np.array(sorted(alive & relayed), dtype=np.int64)
            if not len(numbers):
                continue
            links = resources.link_prices(row_prices[slot]) if slot in row_prices else free.copy()
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
                number, route = int(numbers[at]), (int(src[at]), int(hops[at]), int(dst[at]))
                if (number, slot, route) not in self.columns:
                    found.append((float(least[at]), number, slot, route))
        found.sort()
        # Columns that pay little now mostly do not pay at the next prices, and slow the solver.
        for worth_now, number, slot, route in found[:MOST_COLUMNS_A_ROUND]:
            if worth_now <= PAYS_ENOUGH * found[0][0]:
                self._column(number, slot, route)
        return len(found), float(best_of.sum())

    def _taken_off(self, slot: int, link: tuple[int, int], fees_weight: float) -> float:
        """Return the discount that tariffs give on one more Gbit/s of a link.

        It is the price of the link's row, or the cheapest tariff's if nothing uses the link yet.
        """
        if row := self._link_rows.get((slot, *link)):
            return max(0.0, -float(self.prices[row.index()]))
        return fees_weight * self._less_usd(*link, self.bands[slot][link][0]) * self.lengths_s[slot]
