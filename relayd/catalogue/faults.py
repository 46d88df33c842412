"""Catalogue files, their entries, and error messages for wrong ones: where, what, the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from planner.model.catalogue import CONTINENTS
from planner.model.errors import CatalogueError

_SHOWN = 3

Layer: TypeAlias = Literal["built-in", "overlay", "user"]


class CatalogueFile(NamedTuple):
    """A file as read: its name as the user spells it, and its content."""

    name: str
    document: Mapping[str, object]
    layer: Layer

    @property
    def listed(self) -> bool:
        """Whether it is a provider's list, which what was measured of an entry goes before."""
        return self.layer == "built-in" and self.name.endswith(".csv")


class Entry(NamedTuple):
    """An entry of a catalogue file: a region, an alias, a VM type, ..."""

    kind: str
    key: str
    value: Any
    file: str

    @property
    def label(self) -> str:
        """Name of the entry in messages."""
        return f"{self.kind} {self.key}"


class Fault(NamedTuple):
    """One thing that is wrong with an entry."""

    file: str
    entry: str
    field: str
    problem: str
    value: object
    remedy: str

    @property
    def place(self) -> str:
        """Entry and field, as far as they are known."""
        return ", ".join(part for part in (self.entry, self.field) if part)


def as_fault(entry: Entry, detail: Any, fields: Iterable[str]) -> Fault:
    """Return a pydantic error as a fault; `fields` are those that the table may have."""
    kind, context, location = detail["type"], detail.get("ctx", {}), list(detail["loc"])
    parts = [f"number {part + 1}" if isinstance(part, int) else str(part) for part in location]
    field = ", ".join(parts)
    value = detail["input"]
    if kind == "missing":
        remedy = f"Add `{location[-1]} = ...`."
        return Fault(entry.file, entry.label, field, "is missing", None, remedy)
    if kind == "extra_forbidden":
        remedy = f"The fields are {', '.join(fields)}."
        return Fault(entry.file, entry.label, field, "is not a known field", None, remedy)
    problem, remedy = _WORDS.get(kind, ("is not valid", f"{detail['msg']}."))
    leaf = str(next((part for part in reversed(location) if isinstance(part, str)), ""))
    if kind == "string_pattern_mismatch":
        problem, remedy = _FORMS.get(
            "" if value == entry.key and not leaf else leaf or "id", _FORMS["id"]
        )
    elif kind == "less_than_equal" and leaf.endswith("_gbps"):
        remedy = "Throughput is in Gbit/s here: 1 Gbit/s is 1000 Mbit/s."
    elif kind.startswith(("greater", "less", "string_too")):
        remedy = remedy.format(**{"ge": "", "gt": "", "le": "", "lt": "", **context})
    elif kind == "literal_error":
        remedy = f"Use one of {', '.join(CONTINENTS)}, or leave it out."
    return Fault(entry.file, entry.label, field, problem.format(**context), value, remedy)


_WORDS = {
    "float_type": ("must be a number", "Write it without quotes, such as 5.0."),
    "int_type": ("must be a whole number", "Write it without quotes or decimals, such as 8."),
    "string_type": ("must be text", 'Write it in quotes, such as "eu".'),
    "bool_type": ("must be true or false", "Write true or false, without quotes."),
    "list_type": ("must be a list", "Write it in square brackets."),
    "model_type": ("must be a table", "Write it as { usd_per_gb = 0.02 }."),
    "finite_number": ("must be a finite number", "Write a finite figure, or leave it out."),
    "greater_than": ("must be greater than {gt:g}", "Write a figure above {gt:g}."),
    "greater_than_equal": ("must not be below {ge:g}", "Write {ge:g} or more."),
    "less_than": ("must be below {lt:g}", "Write a share: 0.3 is 30 %."),
    "less_than_equal": ("must not be above {le:g}", "Write {le:g} or less; check the unit."),
    "too_short": ("must not be empty", "Name at least one."),
    "string_too_long": ("is too long", "Keep it under {max_length} characters."),
    "literal_error": ("is not a known code", ""),
}
_FORMS = {
    "": ("is not a plain name", "Use small letters, digits and hyphens, beginning with a letter."),
    "id": ("must look like provider:name", "Write, for example, aws:us-east-1 or onprem:berlin."),
    "name": ("is not a plain name", "Use letters, digits, dots, hyphens and spaces."),
    "country": ("must be a country code", "Use two capital letters (ISO 3166-1), such as DE."),
    "as_of": ("must be a date", 'Write "2022-05" or "2022-05-31".'),
}


def raise_if_any(faults: Sequence[Fault]) -> None:
    """Raise a CatalogueError that names the first few faults, if there are any."""
    if not faults:
        return
    if len(faults) == 1:
        fault = faults[0]
        raise CatalogueError(
            f"{fault.file}, {fault.place}", fault.problem, value=fault.value, remedy=fault.remedy
        )
    said = []
    for number, fault in enumerate(faults[:_SHOWN], 1):
        one = CatalogueError(fault.place, fault.problem, value=fault.value, remedy=fault.remedy)
        said.append(f"({number}) {one}")
    rest = f" And {len(faults) - _SHOWN} more." if len(faults) > _SHOWN else ""
    files = ", ".join(dict.fromkeys(fault.file for fault in faults))
    raise CatalogueError(files, f"has {len(faults)} faults", remedy=" ".join(said) + rest)
