"""What a schedule asks of its linear program: who fits, for what fees, how early, on which VMs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.model.shared_resources import Floats
from planner.schedule.slots.slot_program import Route
from planner.schedule.slots.slot_solver import WHOLE, SlotSolver, Stop

# Next to nothing, as solvers leave it: of a transfer's volume, in one slot over one path.
SLIVER = 1e-8
RELAY_SLIVER = 1e-6
# Fees are the least within this; times, which only decide among routings of the same fees, are
# early rather than earliest.
FEES_GAP = 1e-6
TIME_GAP = 1e-3
# Of what more could be had than is: to know it better is worth less than to branch.
WORTH_GAP = 0.1
TIME_ROUNDS = 5
# Of what fees would be without tariffs.
ABSOLUTE_ROOM = 1e-9


@dataclass(frozen=True)
class Flow:
    """Rate of one transfer over one route in one slot."""

    commodity: int
    slot: int
    route: Route
    rate_gbps: float


@dataclass(frozen=True)
class Relaxation:
    """What transfers are worth at most, were parts of them worth as much.

    Attributes
    ----------
    bound : float
        No choice of whole transfers is worth more.
    shares : dict
        By transfer; those that are whole can be moved side by side.
    gains : dict
        By transfer, what it is worth beyond the price of what it takes; negative if it is less.
        The bound falls by at least this much if the transfer is left out, or by its negative if it
        is taken. Empty if all are whole.
    """

    bound: float
    shares: dict[int, float]
    gains: dict[int, float]


class ScheduleProgram(SlotSolver):
    """The program of :mod:`planner.schedule.slots.slot_solver` with the questions of a schedule."""

    def most_worth(self, worth: Mapping[int, float], least: float) -> Relaxation | None:
        """Return what transfers are worth together at most, each in proportion to its share.

        None if what is in does not fit, or if it is proven that no more than `least` can be had.

        Parameters
        ----------
        worth : mapping
            By transfer that is in, wanted or out.
        least : float
        """
        scale = max(worth.values())
        total = sum(usd for number, usd in worth.items() if number in self._in) / scale
        self._aim({self.shares[number]: -usd / scale for number, usd in worth.items()})
        found = self._attempt(Stop(enough=-total * WHOLE, settled_at=-least / scale, gap=WORTH_GAP))
        if found is None or -found[1] <= least / scale:
            return None
        shares = {number: float(self.values[self.shares[number]]) for number in worth}
        if -found[0] >= total * WHOLE:
            return Relaxation(total * scale, shares, {})
        gains = {number: usd - float(self.costs[number]) * scale for number, usd in worth.items()}
        return Relaxation(-found[1] * scale, shares, gains)

    def fits(self, number: int) -> bool:
        """Whether a wanted transfer can be moved whole beside all that is in."""
        self._aim({self.shares[number]: -1.0})
        value, _ = self._optimise(Stop(enough=-WHOLE, settled_at=-WHOLE))
        return bool(-value >= WHOLE)

    def most_moved(self, number: int) -> float:
        """Return the greatest share of a wanted transfer that can be moved."""
        self._aim({self.shares[number]: -1.0})
        self._optimise(Stop(enough=-WHOLE))
        return float(self.values[self.shares[number]])

    def least_fees(self, *, with_storage: bool = True) -> tuple[float, float]:
        """Return the least fees of what is in, and a bound on them that is proven.

        Parameters
        ----------
        with_storage : bool
            Whether what storage costs, at constant rates in each slot, is part of both.
        """
        cheapest = sum(
            self.commodities[number].volume_gbit * self._cheapest_usd_per_gbit(number)
            for number in self._in
        )
        self._usd_scale = cheapest or 1.0
        self._storage_counts = with_storage
        self._aim_at_columns(1.0 / self._usd_scale, 0.0)
        least, bound = self._optimise(Stop(gap=FEES_GAP))
        return least * self._usd_scale, bound * self._usd_scale

    def earliest(self, fees_usd: float) -> None:
        """Move what is in as early as it goes within fees: least sum of the mean times of all."""
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
        self._optimise(Stop(fees_row=row, gap=TIME_GAP, rounds=TIME_ROUNDS))

    def fewest_vms(self, fixed: dict[int, float]) -> tuple[Floats, float] | None:
        """Return how many VMs more, in fractions, let all that is in be moved; and their sum.

        Parameters
        ----------
        fixed : dict
            Site to the most that it may get.
        """
        self._limit_paths_at_both_ends()
        for site, variable in enumerate(self.more_vms):
            self._all_variables[variable].SetBounds(0.0, fixed.get(site, self._solver.infinity()))
        self._aim(dict.fromkeys(self.more_vms, 1.0))
        found = self._attempt(Stop())
        for variable in self.more_vms:
            self._all_variables[variable].SetBounds(0.0, 0.0)
        if found is None:
            return None
        return np.array([self.values[variable] for variable in self.more_vms]), found[1]

    def last_slot_early(self, number: int) -> int:
        """Return the last slot of a way to move a transfer that prefers early slots by far."""
        commodity = self.commodities[number]
        rank = {
            slot: at
            for at, slot in enumerate(
                range(max(commodity.first, commodity.last + 1), len(self.lengths_s)), 1
            )
        }
        self._aim(
            {
                column.variable: rank[column.slot] ** 2
                * self.lengths_s[column.slot]
                / commodity.volume_gbit
                for column in self._columns
                if column.number == number and column.slot in rank
            }
        )
        self._optimise()
        return self.last_slot(number)

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
        whole slot, and VMs are had in proportion to each part.
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
        """Return the rates of what is in, without slivers, scaled so that volumes are exact.

        What is stored and taken out within one slot is relayed.
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
