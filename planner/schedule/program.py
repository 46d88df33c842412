"""Transfers with windows over shared VMs as one linear program over slots of time.

Time is cut at every start and deadline. Between two cuts the same transfers may send, so constant
rates lose nothing there, and the program is exact. A variable is the rate ``x`` of a transfer over
a path in a slot of length ``L``; the rows are those of :mod:`planner.model.shared_resources` for
every slot, and for a transfer of volume ``V`` the share that is moved::

    sum_paths x * load_of_path <= VMs of the site         (for each slot and kind of row)
    sum_slots,paths x * L / V = share

Where a link has tariffs (:mod:`planner.schedule.tariffs`), a variable ``0 <= y <= rate`` for each
slot and tariff is the rate that it charges, which saves ``y L (fee - price)``::

    sum_paths over the link x >= sum_tariffs y            (for each slot and link with tariffs)

Direct paths are there from the beginning; relays are added where the prices of rows say that they
pay: column generation, as in :mod:`planner.solvers.column_generation`; the last prices prove a
bound.

A relay with disk may keep what it receives in one slot and send it in a later one (Laoutaris et
al., *Inter-Datacenter Bulk Transfers with NetStitcher*, SIGCOMM 2011). For a transfer and a relay
with disk, ``a`` and ``b`` are rates into storage and out of it in a slot of length ``L``, and ``z``
is the volume stored at the slot's end::

    z - z_before = L (a - b),   z = 0 after the last slot
    sum_transfers z <= disk                               (for each slot and relay)

Rates into storage load the rows of the first link; rates out of it load the rows of the second and
count as delivered. Rates are constant within a slot, so the stored volume changes linearly: if it
fits on the disk at the end of every slot, it always does. Storage costs ``price L (z_before + z) /
2`` a slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from planner.model.errors import RelaydError
from planner.model.shared_resources import Floats, SiteResources
from planner.schedule.problem import Route, ScheduleProblem
from planner.schedule.tariffs import Band
from planner.solvers.linear_solver import new_solver, solved

# Weight of a second in storage against a second of later delivery: at equal fees, nothing is stored
# for longer than necessary.
STORED_TIME = 1e-3
BOUNDS = {"in": (1.0, 1.0), "wanted": (0.0, 1.0), "out": (0.0, 0.0)}
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
SCHEDULE_FEES_GAP = 1e-6
SCHEDULE_TIME_GAP = 1e-3
# The greatest worth is known this precisely: branching proves the rest.
WORTH_GAP = 1e-3
TIME_ROUNDS = 5
# Above the least fees, as a share of them, and of the fees without tariffs or storage: at 0, a
# share of them is no room.
FEES_ROOM = 1e-9


def _along(
    resources: SiteResources, usd_per_gbit: Floats, route: Route
) -> tuple[dict[int, float], float]:
    """Return the load of a Gbit/s on each row, in VMs, and the fee of a Gbit."""
    return resources.route_rows(route), sum(float(usd_per_gbit[link]) for link in pairwise(route))


class ScheduleProgram:
    """The linear program of transfers with a deadline, each in, out, or wanted: out at first.

    With a slot to be `divided`, that slot is two, and a variable, :attr:`part`, says how much of it
    is the first: rates become volumes over the whole slot, and each part has VMs in proportion to
    its length. Fees do not count then.
    """

    def __init__(self, found: ScheduleProblem, divided: int | None = None) -> None:
        self.found, self.resources, self.commodities = found, found.resources, found.commodities
        self.usd_per_gbit, self.cuts_s = found.problem.usd_per_gbit, found.cuts_s
        self.lengths_s: list[float] = np.diff(self.cuts_s).tolist()
        self.middles_s: list[float] = ((self.cuts_s[1:] + self.cuts_s[:-1]) / 2).tolist()
        self.bands = [found.tariffs.at(middle_s) for middle_s in self.middles_s]
        # Everything that has a price, by position: variable, USD, mean time of delivery in s, and
        # whether that is of stored volumes.
        self._priced: dict[int, tuple[Any, float, float, bool]] = {}
        self.solver = new_solver()
        self.many: float = self.solver.infinity()
        self.goal = self.solver.Objective()
        self.aim()
        self.part = self._variable(1.0)
        # Where a slot does not have all its VMs: a part of them, and how it grows with `part`.
        self._vms_in: dict[int, tuple[float, float]] = {}
        if divided is not None:
            self._vms_in = {divided: (0.0, 1.0), divided + 1: (1.0, -1.0)}
            self.lengths_s.insert(divided, self.lengths_s[divided])
            self.middles_s.insert(divided, self.middles_s[divided])
            self.bands = [{} for _ in self.lengths_s]
        self.columns: dict[tuple[int, int, Route], Any] = {}
        self.along = cache(partial(_along, self.resources, self.usd_per_gbit))
        self._fees_row: Any = None
        self._usd_scale = 1.0
        self._rows: dict[tuple[int, int], Any] = {}  # by slot and limit of a site
        self._link_rows: dict[tuple[int, int, int], Any] = {}  # by slot and link with tariffs
        self._stock_rows: dict[tuple[int, int, int], Any] = {}  # by transfer, site and slot
        self._disk_rows: dict[tuple[int, int], Any] = {}  # by site and slot
        every = self.commodities
        self._src, self._dst = np.array([(of.src, of.dst) for of in every]).T
        self._first, self._last = np.array([(of.first, of.last) for of in every]).T
        self._volumes = np.array([of.volume_gbit for of in every])
        self._may_hop = np.zeros((len(every), self.resources.count), dtype=bool)
        self._is_distant = np.zeros_like(self._may_hop)
        for number, commodity in enumerate(every):
            self._may_hop[number, commodity.hops] = True
            self._is_distant[number, commodity.distant] = True
        self._later = np.array([of.later for of in every])
        self.more_vms = [self._variable(0.0) for _ in range(self.resources.count)]
        self.shares = {number: self._variable(0.0) for number in found.timed}
        self._share_rows = {n: self._row(0.0, 0.0, [(of, -1.0)]) for n, of in self.shares.items()}
        self._state = dict.fromkeys(self.shares, "out")
        self.values = np.zeros(0)
        self.prices = np.zeros(0)
        self.work = 0  # iterations of the solver, times rows
        for number in self.shares:
            commodity = self.commodities[number]
            for site in self._stores(number):
                self._lay(number, site, commodity.stored_gbit.get(site, 0.0))
            self._let_send(number)

    def _variable(self, most: float) -> Any:
        return self.solver.NumVar(0.0, most, "")

    def _row(self, least: float, most: float, of: Iterable[tuple[Any, float]] = ()) -> Any:
        row = self.solver.Constraint(least, most)
        for variable, coefficient in of:
            row.SetCoefficient(variable, coefficient)
        return row

    def _row_of(self, slot: int, position: int) -> Any:
        """Return the row of a slot and of a site's limit, made when first needed."""
        if (slot, position) not in self._rows:
            site = int(self.resources.row_sites[position])
            fixed, by_part = np.array(self._vms_in.get(slot, (1.0, 0.0))) * self.resources.vms[site]
            row = self._row(-self.many, float(fixed), [(self.more_vms[site], -1.0)])
            if by_part:
                row.SetCoefficient(self.part, -float(by_part))
            self._rows[slot, position] = row
        return self._rows[slot, position]

    def _let_send(self, number: int) -> None:
        """Add a transfer's first columns in the slots in which it may send."""
        commodity, inverse = self.commodities[number], self.resources.s_per_gbit
        src, dst, hops = commodity.src, commodity.dst, commodity.hops
        routes: list[Route] = [(src, dst)] if commodity.direct else []
        if not routes and len(hops):
            slow = np.maximum(inverse[src, hops], inverse[hops, dst])
            slow = np.where(np.isin(hops, commodity.distant), np.inf, slow)
            routes = [(src, int(hops[slow.argmin()]), dst)]
        routes += [route for site in self._stores(number) for route in ((src, site), (site, dst))]
        for slot in range(self._first[number], self._last[number] + 1):
            for route in routes:
                if slot >= self._later[number] or not self._is_distant[number, list(route)].any():
                    self._column(number, slot, route)

    def _column(self, number: int, slot: int, route: Route) -> None:
        """Add the rate of a transfer over a route in a slot, if it is new."""
        if (number, slot, route) in self.columns:
            return
        rate = self.columns[number, slot, route] = self._variable(self.many)
        commodity, length_s = self.commodities[number], self.lengths_s[slot]
        loads, fees = self.along(route)
        mean_s = 0.0
        if commodity.delivers(route):
            share = length_s / commodity.volume_gbit
            mean_s = self.middles_s[slot] * share
            self._share_rows[number].SetCoefficient(rate, share)
            if route[0] != commodity.src:
                self._stock_rows[number, route[0], slot].SetCoefficient(rate, length_s)
        else:
            self._stock_rows[number, route[-1], slot].SetCoefficient(rate, -length_s)
        self._add_price(rate, fees * length_s, mean_s)
        for position, load in loads.items():
            self._row_of(slot, position).SetCoefficient(rate, load)
        for link in pairwise(route) if self.bands[slot] else ():
            if link in self.bands[slot]:
                self._link_row(slot, *link).SetCoefficient(rate, -1.0)

    def _link_row(self, slot: int, src: int, dst: int) -> Any:
        """Return the row of a link's tariffs in a slot, made when first needed."""
        if (slot, src, dst) not in self._link_rows:
            row = self._link_rows[slot, src, dst] = self._row(-self.many, 0.0)
            for band in self.bands[slot][src, dst]:
                rate = self._variable(band.rate_gbps if isfinite(band.rate_gbps) else self.many)
                row.SetCoefficient(rate, 1.0)
                self._add_price(rate, -self._less_usd(src, dst, band) * self.lengths_s[slot], 0.0)
        return self._link_rows[slot, src, dst]

    def _less_usd(self, src: int, dst: int, band: Band) -> float:
        return float(self.usd_per_gbit[src, dst]) - band.usd_per_gbit

    # ---- storage -------------------------------------------------------------------------

    def _stores(self, number: int) -> list[int]:
        return [site for site in self.found.disks if self._may_hop[number, site]]

    def _lay(self, number: int, site: int, stored_gbit: float) -> None:
        """Add variables for a transfer's volume stored at a site after each slot."""
        slots = range(0 if stored_gbit else self.commodities[number].first, len(self.lengths_s))
        lengths_s = [*self.lengths_s, 0.0]
        before = None
        if stored_gbit:
            before = self.shares[number], -stored_gbit
            self._add_stock(number, site, self.shares[number], stored_gbit * lengths_s[0] / 2)
        most_gbit = self.found.disks[site].most_gbit
        for slot in slots:
            stock = self._variable(0.0 if slot == slots[-1] else self.many)
            of = [(stock, 1.0), before] if before else [(stock, 1.0)]
            self._stock_rows[number, site, slot] = self._row(0.0, 0.0, of)
            self._add_stock(number, site, stock, (lengths_s[slot] + lengths_s[slot + 1]) / 2)
            if (site, slot) not in self._disk_rows:
                self._disk_rows[site, slot] = self._row(-self.many, most_gbit)
            self._disk_rows[site, slot].SetCoefficient(stock, 1.0)
            before = stock, -1.0

    def _add_stock(self, number: int, site: int, variable: Any, gbit_s: float) -> None:
        usd = gbit_s * self.found.disks[site].usd_per_gbit_s
        mean_s = STORED_TIME * gbit_s / self.commodities[number].volume_gbit
        _, more_usd, more_s, _ = self._priced.get(variable.index(), (None, 0.0, 0.0, True))
        self._add_price(variable, usd + more_usd, mean_s + more_s, stored=True)

    # ---- states of transfers -------------------------------------------------------------

    def put(self, numbers: Iterable[int], state: str) -> None:
        """Make transfers `in` (moved whole), `wanted` (moved as far as possible) or `out`."""
        for number in numbers:
            self.shares[number].SetBounds(*BOUNDS[state])
            self._state[number] = state

    @property
    def _in(self) -> list[int]:
        """Transfers that are in or wanted."""
        return [number for number, state in self._state.items() if state != "out"]

    def let_send_until(self, number: int, last: int) -> None:
        """Move the last slot of a transfer."""
        self._last[number] = last
        self._let_send(number)
        for slot, rate in self._rates_of(number):
            rate.SetUb(self.many if slot <= last else 0.0)

    def _rates_of(self, number: int) -> Iterator[tuple[int, Any]]:
        """Yield slot and variable of each rate of a transfer."""
        return ((slot, rate) for (of, slot, _), rate in self.columns.items() if of == number)

    # ---- objective -----------------------------------------------------------------------

    def aim(
        self,
        terms: Sequence[tuple[Any, float]] = (),
        fees: float = 0.0,
        times: float = 0.0,
        *,
        with_storage: bool = True,
    ) -> None:
        """Minimise variables with coefficients, or a weighted sum of all that has a price.

        The weights are of fees, in USD, with those of storage or without, and of mean times of
        transfers, in seconds.
        """
        self._aim = terms, fees, times, with_storage
        self.goal.Clear()
        for variable, coefficient in terms:
            self.goal.SetCoefficient(variable, coefficient)
        if fees or times:
            for variable, usd, mean_s, stored in self._priced.values():
                if with_storage or not stored:
                    self._weigh(variable, usd, mean_s)
        self.goal.SetMinimization()

    def _add_price(self, variable: Any, usd: float, mean_s: float, *, stored: bool = False) -> None:
        self._priced[variable.index()] = variable, usd, mean_s, stored
        self._weigh(variable, usd, mean_s)
        if self._fees_row is not None:
            self._fees_row.SetCoefficient(variable, usd / self._usd_scale)

    def _weigh(self, variable: Any, usd: float, mean_s: float) -> None:
        if weight := self._aim[1] * usd + self._aim[2] * mean_s:
            self.goal.SetCoefficient(variable, weight)

    # ---- questions -----------------------------------------------------------------------

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
        self.aim([(self.shares[n], -usd / scale) for n, usd in worth.items()])
        found = self._attempt(WORTH_GAP)
        if found is None:
            return None
        return -found[1] * scale, {n: self._value(self.shares[n]) for n in worth}

    def fits(self, number: int) -> bool:
        """Return whether a wanted transfer can be moved whole along with all that are in."""
        return self.most_moved(number) >= WHOLE

    def most_moved(self, number: int) -> float:
        """Return the greatest share of a wanted transfer that can be moved."""
        self.aim([(self.shares[number], -1.0)])
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
        least, bound = self._optimise(SCHEDULE_FEES_GAP)
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
        of = ((variable, usd / scale) for variable, usd, *_ in self._priced.values())
        self._fees_row = self._row(-self.many, (fees_usd + room_usd) / scale, of)
        self.aim(times=1.0 / max(float(self.cuts_s[-1]), 1e-9))
        self._optimise(SCHEDULE_TIME_GAP, TIME_ROUNDS)
        moved = dict.fromkeys(self._in, 0.0)
        rates = {key: self._value(of) for key, of in self.columns.items() if key[0] in moved}
        for number, slot, route in list(rates):
            commodity, hop = self.commodities[number], route[-1]
            out, through = (hop, commodity.dst), (commodity.src, hop, commodity.dst)
            # What need not be stored is relayed, unless that takes more connections.
            if not commodity.delivers(route) and self._is_alike(through):
                both = min(rates[number, slot, route], rates[number, slot, out])
                rates[number, slot, route] -= both
                rates[number, slot, out] -= both
                if both:
                    rates[number, slot, through] = rates.get((number, slot, through), 0.0) + both
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

    def _is_alike(self, through: Route) -> bool:
        """Return whether a relayed path loads all rows as its links do by themselves."""
        alone = Counter[int]()
        for link in pairwise(through):
            alone.update(self.along(link)[0])
        return all(load <= alone[row] * (1 + SLACK) for row, load in self.along(through)[0].items())

    def fewest_vms(self, fixed: dict[int, float]) -> tuple[Floats, float] | None:
        """Return the fewest extra VMs, in fractions, for all transfers that are in; and a bound.

        Parameters
        ----------
        fixed : dict
            Site to the most extra VMs that it may get.
        """
        for site, variable in enumerate(self.more_vms):
            variable.SetUb(fixed.get(site, self.many))
        self.aim([(variable, 1.0) for variable in self.more_vms])
        found = self._attempt()
        for variable in self.more_vms:
            variable.SetUb(0.0)
        if found is None:
            return None
        return np.array([self._value(variable) for variable in self.more_vms]), found[1]

    def last_slot(self, number: int) -> int:
        """Return the last slot in which a transfer sends by the last solution."""
        least = SLIVER * self.commodities[number].volume_gbit
        sent = ((s, self._value(rate) * self.lengths_s[s]) for s, rate in self._rates_of(number))
        return max(slot for slot, gbit in sent if gbit > least)

    def least_part(self, number: int, slot: int) -> float:
        """Return the least part of a slot after which a transfer can have ended.

        A program of its own, in which the slot is divided in two.
        """
        commodities = tuple(
            replace(
                of,
                first=of.first + (of.first > slot),
                later=of.later + (of.later > slot),
                last=slot if n == number else of.last + (of.last >= slot),
            )
            for n, of in enumerate(self.commodities)
        )
        program = ScheduleProgram(replace(self.found, commodities=commodities), slot)
        program.put([*self._in, number], "in")
        for of, where, route in self.columns:
            for part in (where, where + 1) if where == slot else (where + (where > slot),):
                if program._first[of] <= part <= program._last[of]:
                    program._column(of, part, route)
        program.aim([(program.part, 1.0)])
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
        """Do as :meth:`_attempt`; a RelaydError if the transfers that are in do not fit."""
        found = self._attempt(gap, rounds)
        if found is None:
            raise RelaydError("What was admitted is not found to fit any more.")
        return found

    def _attempt(self, gap: float = 0.0, rounds: int = MOST_ROUNDS) -> tuple[float, float] | None:
        """Solve, adding relays while they pay; return the objective and a bound on it.

        None if the transfers that are in do not fit.

        Parameters
        ----------
        gap : float
            Between objective and bound, at which to stop, as a share of the objective.
        rounds : int
            Most times to solve.
        """
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
        terms, fees, times, with_storage = self._aim
        whole = [self.shares[number] for number, state in self._state.items() if state == "in"]
        for share in whole:
            share.SetLb(0.0)
        self.aim([(share, -1.0) for share in whole])
        self._optimise()
        least = min((self._value(share) for share in whole), default=1.0)
        fits = least >= NEARLY_WHOLE
        for share in whole:
            share.SetLb(least - SLACK if fits else 1.0)
        self.aim(terms, fees, times, with_storage=with_storage)
        return fits

    def _add_relays(self) -> tuple[int, float]:
        """Add the relays that pay at the last prices; return their number and possible saving.

        No solution is below the objective by more than the sum, over all transfers, of the saving
        of each one's best path if it carries everything.
        """
        resources = self.resources
        _, fees_weight, time_weight, _ = self._aim
        if self._fees_row is not None:
            fees_weight -= float(self.prices[self._fees_row.index()]) / self._usd_scale
        row_prices: dict[int, Floats] = {}
        for (slot, position), row in self._rows.items():
            if price := self.prices[row.index()]:
                of = row_prices.setdefault(slot, np.zeros(len(resources.rows)))
                of[position] = max(0.0, -price)
        free = resources.link_prices(np.zeros(len(resources.rows)))
        share_prices = np.zeros(len(self.commodities))
        for number, row in self._share_rows.items():
            share_prices[number] = self.prices[row.index()]
        best_of = np.zeros(len(self.commodities))
        relayed = np.isin(np.arange(len(best_of)), self._in) & self._may_hop.any(axis=1)
        found: list[tuple[float, int, int, Route]] = []
        route: Route
        for slot, bands in enumerate(self.bands):
            numbers = np.flatnonzero(relayed & (self._first <= slot) & (slot <= self._last))
            if not len(numbers):
                continue
            links = resources.link_prices(row_prices[slot]) if slot in row_prices else free.copy()
            for link in bands:
                # Tariffs take the price of the link's row off one more Gbit/s, or the discount of
                # the cheapest if nothing uses the link yet.
                if row := self._link_rows.get((slot, *link)):
                    links[link] -= max(0.0, -float(self.prices[row.index()]))
                else:
                    less_usd = self._less_usd(*link, bands[link][0])
                    links[link] -= fees_weight * less_usd * self.lengths_s[slot]
            src, dst, volumes = self._src[numbers], self._dst[numbers], self._volumes[numbers]
            prices = links[src] + links[:, dst].T
            if slot in row_prices:  # both links take as many connections as the slower one
                needs, opened = (
                    resources.connections_s_per_gbit,
                    resources.connection_prices(row_prices[slot]),
                )
                first, second = needs[src], needs[:, dst].T
                slower = np.maximum(first, second)
                prices += opened[src][:, None] * (slower - first) + opened * (slower - second)
            worth = prices * (volumes / self.lengths_s[slot])[:, None]
            if fees_weight:
                fees = self.usd_per_gbit[src] + self.usd_per_gbit[:, dst].T
                worth += fees_weight * volumes[:, None] * fees
            early = (slot < self._later[numbers])[:, None] & self._is_distant[numbers]
            worth[~self._may_hop[numbers] | early] = np.inf
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
