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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from planner.model.shared_resources import Floats, SiteResources
from planner.schedule.tariffs import Band, LinkTariffs
from planner.solvers.linear_solver import new_solver

Route: TypeAlias = tuple[int, ...]
"""The sites of a path in order; of one into storage, without the destination, and of one out of
it, without the source."""

# Weight of a second in storage against a second of later delivery: at equal fees, nothing is stored
# for longer than necessary.
STORED_TIME = 1e-3
BOUNDS = {"in": (1.0, 1.0), "wanted": (0.0, 1.0), "out": (0.0, 0.0)}


class Disk(NamedTuple):
    """The storage of a site, and the price of keeping a Gbit there for a second."""

    most_gbit: float
    usd_per_gbit_s: float


@dataclass(frozen=True)
class Commodity:
    """A transfer as the program sees it.

    Attributes
    ----------
    src, dst : int
        Sites.
    first, last : int
        Slots in which it may send, both included; none if last is before first.
    hops : array of int
        Sites that may relay it.
    direct : bool
        Whether there is a direct link.
    stored_gbit : tuple
        Stored at relays at the first cut: site and volume, part of `volume_gbit`.
    """

    src: int
    dst: int
    volume_gbit: float
    first: int
    last: int
    hops: np.ndarray
    direct: bool
    stored_gbit: tuple[tuple[int, float], ...] = ()

    def delivers(self, route: Route) -> bool:
        """Return whether a route ends at the destination rather than in storage."""
        return route[-1] == self.dst


class Column(NamedTuple):
    """The rate of a transfer over a route in a slot."""

    number: int
    slot: int
    route: Route
    variable: int


def route_of(src: int, hop: int, dst: int) -> Route:
    """Return the route by a first hop: the destination itself if direct."""
    return (src, dst) if hop == dst else (src, hop, dst)


class SlotProgram:
    """The linear program of a set of transfers, of which each is in, out, or wanted.

    Parameters
    ----------
    resources : SiteResources
    usd_per_gbit : array, shape (n, n)
    cuts_s : array, length of slots + 1
    commodities : sequence of Commodity
        All out at first.
    tariffs : LinkTariffs, optional
        They change at cuts only.
    disks : mapping, optional
        By site.
    """

    def __init__(
        self,
        resources: SiteResources,
        usd_per_gbit: Floats,
        cuts_s: Floats,
        commodities: Sequence[Commodity],
        tariffs: LinkTariffs | None = None,
        disks: Mapping[int, Disk] | None = None,
    ) -> None:
        self._disks = disks or {}
        # By transfer, site and slot: the row that balances the stored volume; and the variable of
        # the volume stored before the slot, with its coefficient.
        self._stock_rows: dict[tuple[int, int, int], int] = {}
        self._before: dict[tuple[int, int, int], tuple[int, float]] = {}
        # By variable of a stored volume: the transfer, and the Gbit-seconds of one and their price.
        self._stocks: dict[int, tuple[int, float, float]] = {}
        self._disk_rows: dict[tuple[int, int], int] = {}
        self._storage_counts = True
        self._solver = new_solver()
        self._objective = self._solver.Objective()
        self.resources, self.usd_per_gbit = resources, usd_per_gbit
        self.cuts_s = cuts_s
        self.lengths_s = np.diff(cuts_s).tolist()
        self.middles_s = ((cuts_s[1:] + cuts_s[:-1]) / 2).tolist()
        self.commodities = list(commodities)
        self._routes: dict[Route, tuple[dict[int, float], float]] = {}
        self._all_variables: list[Any] = []
        self._all_rows: list[Any] = []
        self._columns: list[Column] = []
        self._known: set[tuple[int, int, Route]] = set()
        self._rows: dict[tuple[int, int], int] = {}
        self.bands: list[dict[tuple[int, int], list[Band]]] = [
            tariffs.at(middle_s) if tariffs else {} for middle_s in self.middles_s
        ]
        # Rows by slot and link; and rates charged by tariffs: slot, discount per Gbit, variable.
        self._link_rows: dict[tuple[int, int, int], int] = {}
        self._charged: list[tuple[int, float, int]] = []
        self._fees_row: Any = None
        self._split: tuple[int, int, int] | None = None
        self._usd_scale = 1.0
        self._goal: dict[int, float] = {}
        self._weights = 0.0, 0.0
        self._src = np.array([commodity.src for commodity in self.commodities], dtype=np.int64)
        self._dst = np.array([commodity.dst for commodity in self.commodities], dtype=np.int64)
        volumes = [commodity.volume_gbit for commodity in self.commodities]
        self._volumes = np.array(volumes, dtype=float)
        self._may_hop = np.zeros((len(self.commodities), resources.count), dtype=bool)
        for number, commodity in enumerate(self.commodities):
            self._may_hop[number, commodity.hops] = True
        self._may_be_relayed = set(np.nonzero(self._may_hop.any(axis=1))[0].tolist())
        self.more_vms = [self._variable(0.0) for _ in range(resources.count)]
        self.shares = [self._variable(0.0) for _ in self.commodities]
        self._share_rows = []
        self._alive: list[set[int]] = [set() for _ in self.lengths_s]
        for number, commodity in enumerate(self.commodities):
            row = self._row(0.0, 0.0)
            self._all_rows[row].SetCoefficient(self._all_variables[self.shares[number]], -1.0)
            self._share_rows.append(row)
            for slot in range(commodity.first, commodity.last + 1):
                self._let_send(number, slot)
        self._in: set[int] = set()  # or wanted
        self._whole: set[int] = set()
        self.values = np.zeros(0)
        self.prices = np.zeros(0)
        self.work = 0  # iterations of the solver, times rows
        for number, commodity in enumerate(self.commodities):
            for site in self._stores(number):
                self._lay(number, site, dict(commodity.stored_gbit).get(site, 0.0))
            for slot in range(commodity.first, commodity.last + 1):
                self._let_store(number, slot)

    # ---- building ------------------------------------------------------------------------

    def _variable(self, most: float) -> int:
        self._all_variables.append(self._solver.NumVar(0.0, most, ""))
        return len(self._all_variables) - 1

    def _row(self, least: float, most: float) -> int:
        self._all_rows.append(self._solver.Constraint(least, most))
        return len(self._all_rows) - 1

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

    def _row_of(self, slot: int, position: int) -> int:
        """Return the row of a slot and of a site's limit, made when first needed."""
        if (slot, position) not in self._rows:
            site = self.resources.row(position).site
            vms = float(self.resources.vms[site])
            row = self._row(-self._solver.infinity(), vms)
            self._all_rows[row].SetCoefficient(self._all_variables[self.more_vms[site]], -1.0)
            self._rows[slot, position] = row
            if self._split:
                self._divide(slot, row, vms)
        return self._rows[slot, position]

    def _divide(self, slot: int, row: int, vms: float) -> None:
        assert self._split
        whole, extra, divided = self._split
        held = self._all_variables[divided]
        if slot == whole:
            self._all_rows[row].SetCoefficient(held, vms)
        elif slot == extra:
            self._all_rows[row].SetCoefficient(held, -vms)
            self._all_rows[row].SetUb(0.0)

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
        if self._stock_rows:
            self._let_store(number, slot)

    def _column(self, number: int, slot: int, route: Route) -> None:
        if (number, slot, route) in self._known:
            return
        self._known.add((number, slot, route))
        loads, fees = self.along(route)
        column = Column(number, slot, route, self._variable(self._solver.infinity()))
        self._columns.append(column)
        self._weigh(column)
        held = self._all_variables[column.variable]
        self._count(column)
        for position, load in loads.items():
            self._all_rows[self._row_of(slot, position)].SetCoefficient(held, load)
        if self.bands[slot]:
            for link in pairwise(route):
                if link in self.bands[slot]:
                    self._all_rows[self._link_row(slot, *link)].SetCoefficient(held, -1.0)
        if self._fees_row is not None:
            self._fees_row.SetCoefficient(held, fees * self.lengths_s[slot] / self._usd_scale)

    def _count(self, column: Column) -> None:
        """Enter the volume that a column delivers, stores or takes out of storage."""
        commodity, length_s = self.commodities[column.number], self.lengths_s[column.slot]
        held, delivers = self._all_variables[column.variable], commodity.delivers(column.route)
        if delivers:
            row = self._all_rows[self._share_rows[column.number]]
            row.SetCoefficient(held, length_s / commodity.volume_gbit)
        if column.route[0] != commodity.src or not delivers:
            site = column.route[0 if delivers else -1]
            row = self._all_rows[self._stock_rows[column.number, site, column.slot]]
            row.SetCoefficient(held, length_s if delivers else -length_s)

    def _link_row(self, slot: int, src: int, dst: int) -> int:
        """Return the row of a link's tariffs in a slot, made when first needed."""
        if (slot, src, dst) not in self._link_rows:
            row = self._row(-self._solver.infinity(), 0.0)
            self._link_rows[slot, src, dst] = row
            for band in self.bands[slot][src, dst]:
                most = band.rate_gbps if isfinite(band.rate_gbps) else self._solver.infinity()
                variable = self._variable(most)
                self._all_rows[row].SetCoefficient(self._all_variables[variable], 1.0)
                less_usd = float(self.usd_per_gbit[src, dst]) - band.usd_per_gbit
                self._charged.append((slot, less_usd, variable))
                self._weigh_charged(slot, less_usd, variable)
                if self._fees_row is not None:
                    self._charge(slot, less_usd, variable)
        return self._link_rows[slot, src, dst]

    def _charge(self, slot: int, less_usd: float, variable: int) -> None:
        """Enter a tariff's discount in the row of fees."""
        less = less_usd * self.lengths_s[slot] / self._usd_scale
        self._fees_row.SetCoefficient(self._all_variables[variable], -less)

    # ---- storage -------------------------------------------------------------------------

    def _stores(self, number: int) -> list[int]:
        return [site for site in self._disks if self._may_hop[number, site]]

    def _lay(self, number: int, site: int, stored_gbit: float) -> None:
        """Add variables for a transfer's volume stored at a site after each slot."""
        slots = range(0 if stored_gbit else self.commodities[number].first, len(self.lengths_s))
        lengths_s = [*self.lengths_s, 0.0]
        before = (self.shares[number], -stored_gbit) if stored_gbit else None
        if before:
            self._add_stock(number, site, before[0], stored_gbit * lengths_s[0] / 2)
        for slot in slots:
            stock = self._variable(0.0 if slot == slots[-1] else self._solver.infinity())
            row = self._stock_rows[number, site, slot] = self._row(0.0, 0.0)
            self._all_rows[row].SetCoefficient(self._all_variables[stock], 1.0)
            if before:
                self._before[number, site, slot] = before
                self._all_rows[row].SetCoefficient(self._all_variables[before[0]], before[1])
            self._add_stock(number, site, stock, (lengths_s[slot] + lengths_s[slot + 1]) / 2)
            self._limit(site, slot, stock)
            before = stock, -1.0

    def _add_stock(self, number: int, site: int, variable: int, gbit_s: float) -> None:
        _, other_gbit_s, other_usd = self._stocks.get(variable, (number, 0.0, 0.0))
        usd = gbit_s * self._disks[site].usd_per_gbit_s
        self._stocks[variable] = number, other_gbit_s + gbit_s, other_usd + usd

    def _limit(self, site: int, slot: int, stock: int) -> None:
        """Count the volume stored at a slot's end against the site's disk."""
        if (site, slot) not in self._disk_rows:
            row = self._row(-self._solver.infinity(), self._disks[site].most_gbit)
            self._disk_rows[site, slot] = row
        row = self._disk_rows[site, slot]
        self._all_rows[row].SetCoefficient(self._all_variables[stock], 1.0)

    def _let_store(self, number: int, slot: int) -> None:
        commodity = self.commodities[number]
        for site in self._stores(number):
            self._column(number, slot, (commodity.src, site))
            self._column(number, slot, (site, commodity.dst))

    def _split_stocks(self, slot: int, extra: int) -> None:
        """Insert the first part of a divided slot before the second."""
        for number, site, where in list(self._stock_rows):
            if where != slot:
                continue
            stock = self._variable(self._solver.infinity())
            held = self._all_variables[stock]
            row = self._stock_rows[number, site, extra] = self._row(0.0, 0.0)
            self._all_rows[row].SetCoefficient(held, 1.0)
            after = self._all_rows[self._stock_rows[number, site, slot]]
            if before := self._before.get((number, site, slot)):
                earlier = self._all_variables[before[0]]
                self._all_rows[row].SetCoefficient(earlier, before[1])
                after.SetCoefficient(earlier, 0.0)
            after.SetCoefficient(held, -1.0)
            self._before[number, site, slot] = stock, -1.0
            self._limit(site, extra, stock)

    def _charge_stocks(self) -> None:
        """Enter the cost of storage in the row of fees."""
        for variable, (_, _, usd) in self._stocks.items():
            self._fees_row.SetCoefficient(self._all_variables[variable], usd / self._usd_scale)

    def _relay_what_need_not_be_stored(self, rates: dict[tuple[int, int, Route], float]) -> None:
        """Relay the volume that is stored and taken out within one slot."""
        for number, slot, into in [key for key in rates if key[2][-1] in self._disks]:
            commodity = self.commodities[number]
            out = number, slot, (into[-1], commodity.dst)
            if commodity.delivers(into) or not (both := min(rates[number, slot, into], rates[out])):
                continue
            through = number, slot, (commodity.src, into[-1], commodity.dst)
            rates[through] = rates.get(through, 0.0) + both
            rates[number, slot, into] -= both
            rates[out] -= both

    # ---- states of transfers -------------------------------------------------------------

    def put(self, numbers: Iterable[int], state: str) -> None:
        """Make transfers `in` (moved whole), `wanted` (moved as far as possible) or `out`."""
        for number in numbers:
            self._all_variables[self.shares[number]].SetBounds(*BOUNDS[state])
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
        for column in self._columns:
            if column.number == number:
                allowed = first <= column.slot <= last
                most = self._solver.infinity() if allowed else 0.0
                self._all_variables[column.variable].SetUb(most)

    def _value(self, variable: int) -> float:
        """Return a variable's last value; 0 if it came after the last solution."""
        return float(self.values[variable]) if variable < len(self.values) else 0.0

    # ---- objective -----------------------------------------------------------------------

    def _cheapest_usd_per_gbit(self, number: int) -> float:
        of = self.commodities[number]
        hops = [*([of.dst] if of.direct else []), *of.hops.tolist()]
        fees = (self.along(route_of(of.src, hop, of.dst))[1] for hop in hops)
        return min(fees, default=0.0)

    def _aim(self, coefficients: dict[int, float]) -> None:
        self._goal, self._weights = coefficients, (0.0, 0.0)
        self._objective.Clear()
        for variable, coefficient in coefficients.items():
            self._objective.SetCoefficient(self._all_variables[variable], coefficient)
        self._objective.SetMinimization()

    def _aim_at_columns(self, fees_weight: float, time_weight: float) -> None:
        """Minimise the weighted sum of fees, in USD, and mean times of transfers, in seconds."""
        self._aim({})
        self._weights = fees_weight, time_weight
        for column in self._columns:
            self._weigh(column)
        for charged in self._charged:
            self._weigh_charged(*charged)
        for variable, (number, gbit_s, usd) in self._stocks.items():
            stored_s = STORED_TIME * gbit_s / self.commodities[number].volume_gbit
            usd = usd if self._storage_counts else 0.0
            if weight := fees_weight * usd + time_weight * stored_s:
                self._objective.SetCoefficient(self._all_variables[variable], weight)

    def _weigh(self, column: Column) -> None:
        fees_weight, time_weight = self._weights
        commodity = self.commodities[column.number]
        weight = fees_weight * self.along(column.route)[1]
        if commodity.delivers(column.route):
            weight += time_weight * self.middles_s[column.slot] / commodity.volume_gbit
        weight *= self.lengths_s[column.slot]
        if weight:
            self._objective.SetCoefficient(self._all_variables[column.variable], weight)

    def _weigh_charged(self, slot: int, less_usd: float, variable: int) -> None:
        if self._weights[0]:
            weight = -self._weights[0] * less_usd * self.lengths_s[slot]
            self._objective.SetCoefficient(self._all_variables[variable], weight)
