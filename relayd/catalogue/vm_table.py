"""VM types as text, one line each: those that a command needs are read when they are asked for.

The catalogue knows over a thousand types and a plan looks at a few, so that reading all of them
each time would be a good part of the time that a plan takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import cached_property

from planner.model.catalogue import VmType


class VmTable(Mapping[str, VmType]):
    """VM types by id, in the order of their lines.

    Parameters
    ----------
    text : str
        A JSON array of a type's values a line, as :func:`lines_of` writes them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._read: dict[str, VmType] = {}

    def __getitem__(self, type_id: str) -> VmType:
        """Return the type with this id."""
        found = self._read.get(type_id)
        if found is None:
            start = self.text.find(f"\n[{json.dumps(type_id)},") + 1
            if not start:
                raise KeyError(type_id)
            end = self.text.find("\n", start)
            found = self._read[type_id] = VmType(*json.loads(self.text[start:end]))
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


def lines_of(vm_types: Iterable[VmType]) -> str:
    """Return VM types as lines, the cheapest first; each begins and ends with a line break."""
    ordered = sorted(vm_types, key=lambda vm: (vm.price_usd_per_h, vm.id))
    lines = (json.dumps(astuple(vm), separators=(",", ":")) for vm in ordered)
    return "\n" + "".join(f"{line}\n" for line in lines)
