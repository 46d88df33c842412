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

Direct paths are there from the beginning; :mod:`planner.schedule.solver` adds relays.

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

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from planner.schedule.problem import Route, ScheduleProblem
from planner.schedule.tariffs import Band
from planner.solvers.linear_solver import new_solver

# Weight of a second in storage against a second of later delivery: at equal fees, nothing is stored
# for longer than necessary.
STORED_TIME = 1e-3
BOUNDS = {"in": (1.0, 1.0), "wanted": (0.0, 1.0), "out": (0.0, 0.0)}


class SlotProgram:
    """The linear program of a set of transfers, of which each is in, out, or wanted: out at first.

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
        # Everything that has a price: variable, USD, and mean time of delivery in s; and the same
        # of stored volumes, by position of the variable.
        self._priced: list[tuple[Any, float, float]] = []
        self._stocks: dict[int, tuple[Any, float, float]] = {}
        self.solver = new_solver()
        self.many: float = self.solver.infinity()
        self.goal = self.solver.Objective()
        self.aim()
        self._divided, self.part = divided, self._variable(1.0)
        if divided is not None:
            self.lengths_s.insert(divided, self.lengths_s[divided])
            self.middles_s.insert(divided, self.middles_s[divided])
            self.bands = [{} for _ in self.lengths_s]
        self.columns: dict[tuple[int, int, Route], Any] = {}
        self._fees_row: Any = None
        self._usd_scale = 1.0
        self._routes: dict[Route, tuple[dict[int, float], float]] = {}
        self._rows: dict[tuple[int, int], Any] = {}  # by slot and limit of a site
        self._link_rows: dict[tuple[int, int, int], Any] = {}  # by slot and link with tariffs
        self._stock_rows: dict[tuple[int, int, int], Any] = {}  # by transfer, site and slot
        self._disk_rows: dict[tuple[int, int], Any] = {}  # by site and slot
        self._src = np.array([of.src for of in self.commodities], dtype=np.int64)
        self._dst = np.array([of.dst for of in self.commodities], dtype=np.int64)
        self._volumes = np.array([of.volume_gbit for of in self.commodities], dtype=float)
        self._may_hop = np.zeros((len(self.commodities), self.resources.count), dtype=bool)
        for number, commodity in enumerate(self.commodities):
            self._may_hop[number, commodity.hops] = True
        self.more_vms = [self._variable(0.0) for _ in range(self.resources.count)]
        self.shares = [self._variable(0.0) for _ in self.commodities]
        self._share_rows = [self._row(0.0, 0.0, [(share, -1.0)]) for share in self.shares]
        self._alive: list[set[int]] = [set() for _ in self.lengths_s]
        self._in: set[int] = set()  # or wanted
        self._whole: set[int] = set()
        self.values = np.zeros(0)
        self.prices = np.zeros(0)
        self.work = 0  # iterations of the solver, times rows
        for number, commodity in enumerate(self.commodities):
            for site in self._stores(number):
                self._lay(number, site, commodity.stored_gbit.get(site, 0.0))
            for slot in range(commodity.first, commodity.last + 1):
                self._let_send(number, slot)

    def _variable(self, most: float) -> Any:
        return self.solver.NumVar(0.0, most, "")

    def _row(self, least: float, most: float, of: Iterable[tuple[Any, float]] = ()) -> Any:
        row = self.solver.Constraint(least, most)
        for variable, coefficient in of:
            row.SetCoefficient(variable, coefficient)
        return row

    def along(self, route: Route) -> tuple[dict[int, float], float]:
        """Return the load of a Gbit/s on each row, in VMs, and the fee of a Gbit."""
        if route not in self._routes:
            loads: dict[int, float] = {}
            fees = 0.0
            for u, v in pairwise(route):
                fees += float(self.usd_per_gbit[u, v])
                for row, load in self.resources.link_rows(u, v):
                    loads[row] = loads.get(row, 0.0) + load
            self._routes[route] = loads, fees
        return self._routes[route]

    def _row_of(self, slot: int, position: int) -> Any:
        """Return the row of a slot and of a site's limit, made when first needed."""
        if (slot, position) not in self._rows:
            site = int(self.resources.row_sites[position])
            vms = float(self.resources.vms[site])
            row = self._row(-self.many, vms, [(self.more_vms[site], -1.0)])
            if self._divided is not None and slot == self._divided:
                row.SetCoefficient(self.part, -vms)
                row.SetUb(0.0)
            elif self._divided is not None and slot == self._divided + 1:
                row.SetCoefficient(self.part, vms)
            self._rows[slot, position] = row
        return self._rows[slot, position]

    def _let_send(self, number: int, slot: int) -> None:
        self._alive[slot].add(number)
        commodity = self.commodities[number]
        if commodity.direct:
            self._column(number, slot, (commodity.src, commodity.dst))
        elif len(commodity.hops):
            inverse = self.resources.s_per_gbit
            slow = np.maximum(
                inverse[commodity.src, commodity.hops], inverse[commodity.hops, commodity.dst]
            )
            hop = int(commodity.hops[slow.argmin()])
            self._column(number, slot, (commodity.src, hop, commodity.dst))
        for site in self._stores(number):
            self._column(number, slot, (commodity.src, site))
            self._column(number, slot, (site, commodity.dst))

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
        _, more_usd, more_s = self._stocks.get(variable.index(), (None, 0.0, 0.0))
        self._stocks[variable.index()] = variable, usd + more_usd, mean_s + more_s

    # ---- states of transfers -------------------------------------------------------------

    def put(self, numbers: Iterable[int], state: str) -> None:
        """Make transfers `in` (moved whole), `wanted` (moved as far as possible) or `out`."""
        for number in numbers:
            self.shares[number].SetBounds(*BOUNDS[state])
            (self._in.discard if state == "out" else self._in.add)(number)
            (self._whole.add if state == "in" else self._whole.discard)(number)

    def let_send_until(self, number: int, last: int) -> None:
        """Move the last slot of a transfer."""
        first = self.commodities[number].first
        for slot, alive in enumerate(self._alive):
            if slot < first or slot > last:
                alive.discard(number)
            elif number not in alive:
                self._let_send(number, slot)
        for slot, _, rate in self.rates_of(number):
            rate.SetUb(self.many if first <= slot <= last else 0.0)

    def rates_of(self, number: int) -> Iterator[tuple[int, Route, Any]]:
        """Yield slot, route and variable of each rate of a transfer."""
        for (of, slot, route), rate in self.columns.items():
            if of == number:
                yield slot, route, rate

    # ---- objective -----------------------------------------------------------------------

    def aim(
        self,
        *goal: tuple[Any, float],
        fees: float = 0.0,
        times: float = 0.0,
        with_storage: bool = True,
    ) -> None:
        """Minimise a sum of variables with coefficients, or a weighted sum of all that has a price.

        The weights are of fees, in USD, with those of storage or without, and of mean times of
        transfers, in seconds.
        """
        self._goal = goal
        self._weights, self._with_storage = (fees, times), with_storage
        self.goal.Clear()
        for variable, coefficient in goal:
            self.goal.SetCoefficient(variable, coefficient)
        if fees or times:
            for priced in (*self._priced, *(self._stocks.values() if with_storage else ())):
                self._weigh(*priced)
        self.goal.SetMinimization()

    def _add_price(self, variable: Any, usd: float, mean_s: float) -> None:
        self._priced.append((variable, usd, mean_s))
        self._weigh(variable, usd, mean_s)
        if self._fees_row is not None:
            self._fees_row.SetCoefficient(variable, usd / self._usd_scale)

    def _weigh(self, variable: Any, usd: float, mean_s: float) -> None:
        if weight := self._weights[0] * usd + self._weights[1] * mean_s:
            self.goal.SetCoefficient(variable, weight)
