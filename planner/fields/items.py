"""Lists of things that have fields of their own: transfers, tasks, machines, rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from planner.fields.kinds import Kind, check_count, list_schema
from planner.fields.specified import Field, Specified, fields_of, schema_of
from planner.model.errors import InputError

S = TypeVar("S", bound=Specified)


class Items(Kind[tuple[S, ...]]):
    """A list of specified things: as objects, as mappings, or as a data frame.

    Parameters
    ----------
    of : type or callable
        A specified class, or what returns it: then it is loaded when first needed.
    least, most : int
        How many.
    identity : str
        The field of an item that no two share.
    prefix : str
        Of an item's number in the list, which is its identity where that is missing.
    """

    name, metavar = "items", "FILE"
    accepts = None

    def __init__(
        self,
        of: type[S] | Callable[[], type[S]],
        *,
        least: int,
        most: int,
        identity: str = "id",
        prefix: str = "",
    ) -> None:
        self._of, self.least, self.most = of, least, most
        self.identity, self.prefix = identity, prefix

    @cached_property
    def of(self) -> type[S]:
        """The class of an item."""
        return self._of if isinstance(self._of, type) else self._of()

    def read(self, value: Any, field: str) -> tuple[S, ...]:
        """Return the items, none for None; an error names an item by its id, else its number."""
        if hasattr(value, "to_dict") and hasattr(value, "columns"):
            value = value.to_dict("records")
        if value is None and not self.least:
            return ()
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise InputError(field, "must be a list, one entry each", value=value)
        items = tuple(
            item if isinstance(item, self.of) else self._item(item, number, field)
            for number, item in enumerate(value, 1)
        )
        check_count(len(items), self.least, self.most, field)
        seen: set[object] = set()
        for item in items:
            identity = getattr(item, self.identity)
            if identity in seen:
                raise InputError(field, f"have an {self.identity} twice", value=identity)
            seen.add(identity)
        return items

    def _item(self, item: Any, number: int, field: str) -> S:
        if not isinstance(item, Mapping):
            raise InputError(f"{field} {number}", "must be a mapping of fields", value=item)
        # NaN is how a data frame says that there is nothing.
        entry = {
            str(key).strip().lower(): value
            for key, value in item.items()
            if not (value is None or value != value or value == "")
        }
        names = (self.identity, *fields_of(self.of)[self.identity].aliases)
        label = next((str(entry[name]) for name in names if name in entry), None)
        if label is None:
            label = entry[self.identity] = f"{self.prefix}{number}"
        try:
            return self.of(**entry)
        except InputError as fault:
            raise InputError(
                f"{field} {label}, {fault.field}",
                fault.problem,
                value=fault.value,
                remedy=fault.remedy,
            ) from None

    def to_json(self, value: tuple[S, ...]) -> list[dict[str, Any]]:
        """Return a list of objects."""
        return [item.to_json() for item in value]

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of objects."""
        return list_schema(schema_of(self.of), self.least, self.most)

    def described(self) -> dict[str, Any]:
        """Return the fields of an item."""
        fields: Iterable[Field[Any, Any]] = fields_of(self.of).values()
        return {"fields": [field.described() for field in fields]}
