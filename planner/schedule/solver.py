"""Solves the program of a schedule: which transfers fit, their fees, times and VMs.

Relays are added where the prices of rows say that they pay: column generation, as in
:mod:`planner.solvers.column_generation`; the last prices prove a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.model.errors import RelaydError
from planner.model.shared_resources import Floats
from planner.schedule.program import Route, SlotProgram, route_of
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
# Share of the fees without tariffs.
ABSOLUTE_ROOM = 1e-9


@dataclass(frozen=True)
class Flow:
    """Rate of one transfer over one route in one slot."""

    commodity: int
    slot: int
    route: Route
    rate_gbps: float


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
        self._aim({self.shares[number]: -usd / scale for number, usd in worth.items()})
        found = self._attempt(WORTH_GAP)
        if found is None:
            return None
        shares = {number: float(self.values[self.shares[number]]) for number in worth}
        return -found[1] * scale, shares

    def fits(self, number: int) -> bool:
        """Return whether a wanted transfer can be moved whole along with all that are in."""
        return self.most_moved(number) >= WHOLE

    def most_moved(self, number: int) -> float:
        """Return the greatest share of a wanted transfer that can be moved."""
        self._aim({self.shares[number]: -1.0})
        self._optimise()
        return float(self.values[self.shares[number]])

    def least_fees(self, *, with_storage: bool = True) -> tuple[float, float]:
        """Return the least fees of the transfers that are in, and a proven lower bound on them.

        Parameters
        ----------
        with_storage : bool
            Whether both include the cost of storage, at constant rates in each slot.
        """
        cheapest = sum(
            self.commodities[number].volume_gbit * self._cheapest_usd_per_gbit(number)
            for number in self._in
        )
        self._usd_scale = cheapest or 1.0
        self._storage_counts = with_storage
        self._aim_at_columns(1.0 / self._usd_scale, 0.0)
        least, bound = self._optimise(FEES_GAP)
        return least * self._usd_scale, bound * self._usd_scale

    def earliest(self, fees_usd: float) -> None:
        """Move the transfers that are in as early as fees allow: least sum of their mean times."""
        row = self._row(-self._solver.infinity(), fees_usd / self._usd_scale)
        self._fees_row = self._all_rows[row]
        if self._charged:  # then least fees may be 0, where a part of them is no room
            self._fees_row.SetUb(fees_usd / self._usd_scale + ABSOLUTE_ROOM)
            for charged in self._charged:
                self._charge(*charged)
        for column in self._columns:
            fees = self.along(column.route)[1] * self.lengths_s[column.slot] / self._usd_scale
            self._fees_row.SetCoefficient(self._all_variables[column.variable], fees)
        self._charge_stocks()
        self._aim_at_columns(0.0, 1.0 / max(float(self.cuts_s[-1]), 1e-9))
        self._optimise(TIME_GAP, TIME_ROUNDS, row)

    def fewest_vms(self, fixed: dict[int, float]) -> tuple[Floats, float] | None:
        """Return the fewest extra VMs, in fractions, for all transfers that are in; and a bound.

        Parameters
        ----------
        fixed : dict
            Site to the most extra VMs that it may get.
        """
        for site, variable in enumerate(self.more_vms):
            self._all_variables[variable].SetBounds(0.0, fixed.get(site, self._solver.infinity()))
        self._aim(dict.fromkeys(self.more_vms, 1.0))
        found = self._attempt()
        for variable in self.more_vms:
            self._all_variables[variable].SetBounds(0.0, 0.0)
        if found is None:
            return None
        return np.array([self.values[variable] for variable in self.more_vms]), found[1]

    def last_slot(self, number: int) -> int:
        """Return the last slot in which a transfer sends by the last solution."""
        volume = self.commodities[number].volume_gbit
        return max(
            column.slot
            for column in self._columns
            if column.number == number
            and self._value(column.variable) * self.lengths_s[column.slot] > SLIVER * volume
        )

    def least_part(self, number: int, slot: int) -> float:
        """Return the least part of a slot after which a transfer can have ended.

        The slot is divided in two at a point that is a variable: rates become volumes over the
        whole slot, and each part has VMs in proportion to its length.
        """
        senders = self._alive[slot] & self._in | {number}
        known = [(who, by) for who, where, by in self._known if where == slot and who in senders]
        self.let_send_until(number, slot - 1)
        divided = self._variable(1.0)
        extra = len(self.lengths_s)
        self.lengths_s.append(self.lengths_s[slot])
        self.middles_s.append(self.middles_s[slot])
        self._alive.append(set())
        self.bands.append({})  # fees do not matter here
        self._split = slot, extra, divided
        self._split_stocks(slot, extra)
        for (where, position), row in list(self._rows.items()):
            if where == slot:
                self._divide(slot, row, float(self.resources.vms[self.resources.row(position)[1]]))
        self._alive[extra] |= senders
        for who, route in sorted(known):
            self._column(who, extra, route)
        self._aim({divided: 1.0})
        part = float(self._optimise()[0])
        self._all_variables[divided].SetBounds(0.0, 0.0)
        self._alive[extra].clear()
        for column in self._columns:
            if column.slot == extra:  # or VMs that are added would carry something there
                self._all_variables[column.variable].SetUb(0.0)
        self._split = None
        return min(1.0, max(0.0, part))

    def flows(self) -> list[Flow]:
        """Return the rates of transfers that are in, without slivers, scaled to exact volumes.

        Volume stored and taken out within one slot is relayed.
        """
        rates: dict[tuple[int, int, Route], float] = {}
        for number, slot, route, variable in self._columns:
            if number in self._in:
                rates[number, slot, route] = self._value(variable)
        self._relay_what_need_not_be_stored(rates)
        found = []
        moved: dict[int, float] = dict.fromkeys(self._in, 0.0)
        for (number, slot, route), rate in rates.items():
            commodity = self.commodities[number]
            share = rate * self.lengths_s[slot] / commodity.volume_gbit
            least = SLIVER if route == (commodity.src, commodity.dst) else RELAY_SLIVER
            if share > least:
                found.append(Flow(number, slot, route, rate))
                moved[number] += share if commodity.delivers(route) else 0.0
        return [replace(flow, rate_gbps=flow.rate_gbps / moved[flow.commodity]) for flow in found]

    # ---- solving -------------------------------------------------------------------------

    def _solve(self) -> float | None:
        """Solve the program as it is; None if there is no solution."""
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

    def _optimise(
        self, gap: float = 0.0, rounds: int = MOST_ROUNDS, fees_row: int | None = None
    ) -> tuple[float, float]:
        """Solve, adding relays while they pay; return the objective and a bound on it.

        Parameters
        ----------
        gap : float
            Between objective and bound, at which to stop, as a share of the objective.
        rounds : int
            Most times to solve.
        fees_row : int, optional
            The row that limits fees.

        Raises
        ------
        RelaydError
            If the transfers that are in do not fit.
        """
        found = self._attempt(gap, rounds, fees_row)
        if found is None:
            raise RelaydError("What was admitted is not found to fit any more.")
        return found

    def _attempt(
        self, gap: float = 0.0, rounds: int = MOST_ROUNDS, fees_row: int | None = None
    ) -> tuple[float, float] | None:
        """Do the same; None if the transfers that are in do not fit."""
        value = below = 0.0
        for _ in range(rounds):
            solved = self._solve()
            if solved is None and self._make_room():
                solved = self._solve()
            if solved is None:
                return None
            value = solved
            limit = 0.0 if fees_row is None else float(self.prices[fees_row]) / self._usd_scale
            added, below = self._add_relays(self._weights[0] - limit, self._weights[1])
            if not added or -below <= gap * abs(value):
                break
        return value, value + below

    def _make_room(self) -> bool:
        """Add relays until the transfers that are in fit; return whether they do.

        The first phase of the simplex method: the greatest sum of shares. Shares that miss 1 by no
        more than a solver's rounding then count as 1.
        """
        goal, weights = self._goal, self._weights
        whole = [self.shares[number] for number in sorted(self._whole)]
        for share in whole:
            self._all_variables[share].SetLb(0.0)
        self._aim(dict.fromkeys(whole, -1.0))
        self._optimise()
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
        """Add the relays that pay at the last prices; return their number and possible saving.

        No solution is below the objective by more than the sum, over all transfers, of the saving
        of each one's best path if it carries everything.
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
        return len(found), float(best_of.sum())

    def _taken_off(self, slot: int, link: tuple[int, int], fees_weight: float) -> float:
        """Return the discount that tariffs give on one more Gbit/s of a link.

        It is the price of the link's row, or the cheapest tariff's if nothing uses the link yet.
        """
        row = self._link_rows.get((slot, *link))
        if row is not None:
            return max(0.0, -float(self.prices[row]))
        less_usd = float(self.usd_per_gbit[link]) - self.bands[slot][link][0].usd_per_gbit
        return float(fees_weight * less_usd * self.lengths_s[slot])
