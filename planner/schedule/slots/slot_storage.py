"""What transfers store at relays with disk, as variables of a schedule's program.

A relay with disk may keep what it receives in one slot and send it in a later one (Laoutaris et
al., *Inter-Datacenter Bulk Transfers with NetStitcher*, SIGCOMM 2011). For a transfer and a relay
with disk, ``a`` and ``b`` are rates into storage and out of it in a slot of length ``L``, and ``z``
is what lies there at the slot's end::

    z - z_before = L (a - b),   z = 0 after the last slot
    sum_transfers z <= disk                               (for each slot and relay)

Rates into storage load the rows of the first link, those out of it the rows of the second, and are
what the transfer delivers. Rates are constant within a slot, so what lies there changes evenly: if
it is within the disk at all ends of slots, it always is. Storage costs ``price L (z_before + z) /
2`` a slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.model.shared_resources import Floats, SiteResources
from planner.schedule.slots.slot_program import Column, Commodity, Route, SlotProgram
from planner.schedule.tariffs import LinkTariffs

# What a second in storage counts, of one that a transfer is delivered later: of equal fees, nothing
# is stored for longer than it needs be.
STORED_TIME = 1e-3


class Disk(NamedTuple):
    """What may lie at a site at once, and the price of keeping a Gbit there for a second."""

    most_gbit: float
    usd_per_gbit_s: float


class StoringSlotProgram(SlotProgram):
    """The program with what relays store.

    Parameters
    ----------
    disks : mapping
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
        # By transfer, site and slot: the row that balances what lies there.
        self._stock_rows: dict[tuple[int, int, int], int] = {}
        # By the same: the variable of what lies there before the slot, with its coefficient.
        self._before: dict[tuple[int, int, int], tuple[int, float]] = {}
        # By variable of what is stored: the transfer, and the Gbit-seconds of one and their price.
        self._stocks: dict[int, tuple[int, float, float]] = {}
        self._disk_rows: dict[tuple[int, int], int] = {}
        self._storage_counts = True
        super().__init__(resources, usd_per_gbit, cuts_s, commodities, tariffs)
        for number, commodity in enumerate(self.commodities):
            for site in self._stores(number):
                self._lay(number, site, dict(commodity.stored_gbit).get(site, 0.0))
            for slot in range(commodity.first, commodity.last + 1):
                self._let_store(number, slot)

    def _stores(self, number: int) -> list[int]:
        return [site for site in self._disks if self._may_hop[number, site]]

    def _lay(self, number: int, site: int, stored_gbit: float) -> None:
        """Add what lies at a site over time."""
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
        """Count what lies at a site at a slot's end against its disk."""
        if (site, slot) not in self._disk_rows:
            row = self._row(-self._solver.infinity(), self._disks[site].most_gbit)
            self._disk_rows[site, slot] = row
        row = self._disk_rows[site, slot]
        self._all_rows[row].SetCoefficient(self._all_variables[stock], 1.0)

    def _let_send(self, number: int, slot: int) -> None:
        super()._let_send(number, slot)
        if self._stock_rows:
            self._let_store(number, slot)

    def _let_store(self, number: int, slot: int) -> None:
        commodity = self.commodities[number]
        for site in self._stores(number):
            self._column(number, slot, (commodity.src, site))
            self._column(number, slot, (site, commodity.dst))

    def _count(self, column: Column) -> None:
        """Count what a column delivers, stores or takes out of storage."""
        number, slot, route, variable = column
        commodity = self.commodities[number]
        if commodity.delivers(route):
            super()._count(column)
        if (row := self._stock_row(column)) is not None:
            into = -1.0 if not commodity.delivers(route) else 1.0
            self._all_rows[row].SetCoefficient(
                self._all_variables[variable], into * self.lengths_s[slot]
            )

    def _stock_row(self, column: Column) -> int | None:
        """Return the row that balances the storage that a column fills or empties."""
        commodity = self.commodities[column.number]
        if not commodity.delivers(column.route):
            return self._stock_rows[column.number, column.route[-1], column.slot]
        if column.route[0] != commodity.src:
            return self._stock_rows[column.number, column.route[0], column.slot]
        return None

    def _split_stocks(self, slot: int, extra: int) -> None:
        """Put a slot before another in which it is a part."""
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

    def _aim_at_columns(self, fees_weight: float, time_weight: float) -> None:
        super()._aim_at_columns(fees_weight, time_weight)
        for variable, (number, gbit_s, usd) in self._stocks.items():
            stored_s = STORED_TIME * gbit_s / self.commodities[number].volume_gbit
            usd = usd if self._storage_counts else 0.0
            if weight := fees_weight * usd + time_weight * stored_s:
                self._objective.SetCoefficient(self._all_variables[variable], weight)

    def _charge_stocks(self) -> None:
        """Put what storage costs into the row of fees."""
        for variable, (_, _, usd) in self._stocks.items():
            self._fees_row.SetCoefficient(self._all_variables[variable], usd / self._usd_scale)

    def _relay_what_need_not_be_stored(self, rates: dict[tuple[int, int, Route], float]) -> None:
        """Let what is stored and taken out within one slot take the path through the relay."""
        for number, slot, into in [key for key in rates if key[2][-1] in self._disks]:
            commodity = self.commodities[number]
            out = number, slot, (into[-1], commodity.dst)
            if commodity.delivers(into) or not (both := min(rates[number, slot, into], rates[out])):
                continue
            through = number, slot, (commodity.src, into[-1], commodity.dst)
            rates[through] = rates.get(through, 0.0) + both
            rates[number, slot, into] -= both
            rates[out] -= both
