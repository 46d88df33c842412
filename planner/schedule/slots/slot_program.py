"""Transfers with windows over shared VMs as one linear program over slots of time.

Time is cut at every start and deadline. Between two cuts the same transfers may send, so constant
rates lose nothing there, and the program is exact. A variable is the rate ``x`` of a transfer over
a path in a slot of length ``L``; the rows are those of :mod:`planner.model.shared_resources` for
every slot, and for a transfer of volume ``V`` the share that is moved::

    sum_paths x * load_of_path <= VMs of the site         (for each slot and kind of row)
    sum_slots,paths x * L / V = share

Where a link has tariffs (:mod:`planner.schedule.tariffs`), a variable ``0 <= y <= rate`` for each
slot and tariff is what is charged by it, ``y L (fee - price)`` less than its fee::

    sum_paths over the link x >= sum_tariffs y            (for each slot and link with tariffs)

Of a path's two rows, the one of the end with more VMs is left out until VMs may be added. Direct
paths are there from the beginning; :mod:`planner.schedule.slots.slot_solver` adds relays, and
:mod:`planner.schedule.slots.slot_storage` what relays with disk store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

BOUNDS = {"in": (1.0, 1.0), "wanted": (0.0, 1.0), "out": (0.0, 0.0)}


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
        What lies at relays at the first cut: site and volume, part of `volume_gbit`.
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
        """Whether a route ends at the destination rather than in storage."""
        return route[-1] == self.dst


class Column(NamedTuple):
    """The rate of a transfer over a route in a slot."""

    number: int
    slot: int
    route: Route
    variable: int


def route_of(src: int, hop: int, dst: int) -> Route:
    """Return the route by a first hop, which is the destination if it is direct."""
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
    """

    def __init__(
        self,
        resources: SiteResources,
        usd_per_gbit: Floats,
        cuts_s: Floats,
        commodities: Sequence[Commodity],
        tariffs: LinkTariffs | None = None,
    ) -> None:
        self._solver = new_solver("GLOP")
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
        # By slot and link, and what is charged by tariffs: slot, USD less for a Gbit, variable.
        self._link_rows: dict[tuple[int, int, int], int] = {}
        self._charged: list[tuple[int, float, int]] = []
        self._spare = frozenset(resources.spare_path_rows.tolist())
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
        self.costs = np.zeros(0)
        self.work = 0  # iterations of the solver, times rows

    # ---- building ------------------------------------------------------------------------

    def _variable(self, most: float) -> int:
        self._all_variables.append(self._solver.NumVar(0.0, most, ""))
        return len(self._all_variables) - 1

    def _row(self, least: float, most: float) -> int:
        self._all_rows.append(self._solver.Constraint(least, most))
        return len(self._all_rows) - 1

    def along(self, route: Route) -> tuple[dict[int, float], float]:
        """Return the loads of a Gbit/s by row, in VMs, and the fees of a Gbit."""
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
            if position not in self._spare:
                self._all_rows[self._row_of(slot, position)].SetCoefficient(held, load)
        if self.bands[slot]:
            for link in pairwise(route):
                if link in self.bands[slot]:
                    self._all_rows[self._link_row(slot, *link)].SetCoefficient(held, -1.0)
        if self._fees_row is not None:
            self._fees_row.SetCoefficient(held, fees * self.lengths_s[slot] / self._usd_scale)

    def _count(self, column: Column) -> None:
        """Count what a column delivers."""
        commodity = self.commodities[column.number]
        self._all_rows[self._share_rows[column.number]].SetCoefficient(
            self._all_variables[column.variable],
            self.lengths_s[column.slot] / commodity.volume_gbit,
        )

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
        """Put what a tariff takes off into the row of fees."""
        less = less_usd * self.lengths_s[slot] / self._usd_scale
        self._fees_row.SetCoefficient(self._all_variables[variable], -less)

    def _limit_paths_at_both_ends(self) -> None:
        """Add the rows of paths that bind only where VMs are added."""
        spare, self._spare = self._spare, frozenset()
        for column in self._columns if spare else ():
            for position, load in self.along(column.route)[0].items():
                if position in spare:
                    row = self._all_rows[self._row_of(column.slot, position)]
                    row.SetCoefficient(self._all_variables[column.variable], load)

    # ---- who is in -----------------------------------------------------------------------

    def put(self, numbers: Iterable[int], state: str) -> None:
        """Make transfers `in` (moved whole), `wanted` (as far as it goes) or `out`."""
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
        """Minimise fees, in USD, and the mean times of transfers, in seconds, so weighted."""
        self._aim({})
        self._weights = fees_weight, time_weight
        for column in self._columns:
            self._weigh(column)
        for charged in self._charged:
            self._weigh_charged(*charged)

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
