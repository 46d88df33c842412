"""VM types and their prices as rows, of which objects are made when they are asked for.

The catalogue knows over a thousand types and a plan looks at a few, so that reading all of them
each time would be a good part of the time that a plan takes.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from typing import Any, Generic, TypeVar

from planner.model.catalogue import VmType

ValueT = TypeVar("ValueT")
Rows = dict[str, bytes]
"""By the id of a VM type: plain values, as `marshal` writes them."""
VmRows = tuple[Rows, tuple[str, ...]]
"""Rows of VM types, in which numbers stand for what they say of their source, and that by number.

Written out, what many types share would be two thirds of the catalogue's cache.
"""
_SOURCE = 8
"""Place of the source in a row."""


class RowTable(Mapping[str, ValueT], Generic[ValueT]):
    """Values by the id of a VM type, in the order of their rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._read: dict[str, ValueT] = {}

    def value(self, row: Any) -> ValueT:
        """Return what a row says."""
        raise NotImplementedError

    def __getitem__(self, type_id: str) -> ValueT:
        """Return the value of a type."""
        found = self._read.get(type_id)
        if found is None:
            found = self._read[type_id] = self.value(marshal.loads(self._rows[type_id]))  # noqa: S302
        return found

    def __iter__(self) -> Iterator[str]:
        """Iterate over ids."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return how many types there are."""
        return len(self._rows)


class VmTable(RowTable[VmType]):
    """VM types, as :func:`rows_of` makes their rows."""

    def __init__(self, rows: VmRows) -> None:
        super().__init__(rows[0])
        self._sources = rows[1]

    def value(self, row: Any) -> VmType:
        """Return a type."""
        values = list(row)
        values[_SOURCE] = self._sources[values[_SOURCE]]
        return VmType(*values)


class VmPriceTable(RowTable[Mapping[str, float]]):
    """USD for an hour by region, as :func:`price_rows_of` makes their rows."""

    def value(self, row: Any) -> Mapping[str, float]:
        """Return the prices of a type."""
        prices: Mapping[str, float] = row
        return prices


def rows_of(vm_types: Iterable[VmType]) -> VmRows:
    """Return rows of VM types, the cheapest first."""
    numbers: dict[str, int] = {}
    rows: Rows = {}
    for vm in sorted(vm_types, key=lambda vm: (vm.price_usd_per_h, vm.id)):
        row = list(astuple(vm))
        row[_SOURCE] = numbers.setdefault(vm.source, len(numbers))
        rows[vm.id] = marshal.dumps(tuple(row))
    return rows, tuple(numbers)


def price_rows_of(prices: Mapping[str, Mapping[str, float]]) -> Rows:
    """Return rows of the prices of VM types by region."""
    return {type_id: marshal.dumps(dict(by_region)) for type_id, by_region in prices.items()}
