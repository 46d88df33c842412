"""VM types and their prices as lines of text, which are read when they are asked for.

The catalogue knows over a thousand types and a plan looks at a few, so that reading all of them
each time would be a good part of the time that a plan takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import cached_property
from typing import Any, Generic, TypeVar

from planner.model.catalogue import VmType

ValueT = TypeVar("ValueT")
MOST_MISSING_KEPT = 100
"""Ids that a table lacks, such as types without a price of their own in any region."""


class LineTable(Mapping[str, ValueT], Generic[ValueT]):
    """Values by the id of a VM type, in the order of their lines.

    Parameters
    ----------
    text : str
        A JSON array a line, the id first; begins and ends with a line break.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._read: dict[str, ValueT] = {}
        self._missing: set[str] = set()

    def value(self, row: list[Any]) -> ValueT:
        """Return what a line says."""
        raise NotImplementedError

    def __getitem__(self, type_id: str) -> ValueT:
        """Return the value of a type."""
        found = self._read.get(type_id)
        if found is None:
            if type_id in self._missing:
                raise KeyError(type_id)
            start = self.text.find(f"\n[{json.dumps(type_id)},") + 1
            if not start:
                if len(self._missing) < MOST_MISSING_KEPT:
                    self._missing.add(type_id)
                raise KeyError(type_id)
            end = self.text.find("\n", start)
            found = self._read[type_id] = self.value(json.loads(self.text[start:end]))
        return found

    def __iter__(self) -> Iterator[str]:
        """Iterate over ids."""
        return iter(self._ids)

    def __len__(self) -> int:
        """Return how many types there are."""
        return len(self._ids)

    @cached_property
    def _ids(self) -> list[str]:
        return [line.partition('"')[2].partition('"')[0] for line in self.text.split("\n")[1:-1]]


class VmTable(LineTable[VmType]):
    """VM types, as :func:`lines_of` writes them."""

    def value(self, row: list[Any]) -> VmType:
        """Return a type."""
        return VmType(*row)


class VmPriceTable(LineTable[Mapping[str, float]]):
    """USD for an hour by region, as :func:`price_lines_of` writes them."""

    def value(self, row: list[Any]) -> Mapping[str, float]:
        """Return the prices of a type."""
        prices: Mapping[str, float] = row[1]
        return prices


def lines_of(vm_types: Iterable[VmType]) -> str:
    """Return VM types as lines, the cheapest first; each begins and ends with a line break."""
    ordered = sorted(vm_types, key=lambda vm: (vm.price_usd_per_h, vm.id))
    return _lines(astuple(vm) for vm in ordered)


def price_lines_of(prices: Mapping[str, Mapping[str, float]]) -> str:
    """Return prices of VM types by region as lines."""
    return _lines((type_id, dict(by_region)) for type_id, by_region in prices.items())


def _lines(rows: Iterable[object]) -> str:
    return "\n" + "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
