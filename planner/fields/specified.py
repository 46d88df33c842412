"""Questions as pydantic models: each field is declared once, and every surface is derived from it.

A request is a frozen pydantic dataclass. A field's type says what it takes, and in one or two full
sentences what it means; :func:`field` says how surfaces show it::

    @specified
    class TransferRequest(Specified):
        src: Annotated[str, Region(), "Where to send from."] = field(example="us-east")
        _: KW_ONLY
        volume_gb: Annotated[Figure, Volume(), "Volume to move."] = field(default=100.0)

What is wrong raises :class:`~planner.model.errors.InputError`, which names the field, the value and
a remedy. Signatures, command line, HTTP schema, client and documentation are made from
:func:`fields_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from difflib import get_close_matches
from inspect import get_annotations
from math import isfinite
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Never,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    dataclass_transform,
    get_args,
)

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from planner.fields.kinds import (
    Flag,
    Kind,
    Quantity,
    UntitledSchema,
    check_count,
    fault_of,
    list_schema,
)
from planner.model.errors import InputError

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
S = TypeVar("S", bound="Specified")

REQUIRED: Any = PydanticUndefined
"""The default of a field that has none."""

# Longest first: `_usd_per_h` ends in what would be another unit.
_UNIT_SUFFIXES = ("_usd_per_h", "_gbps", "_usd", "_gb", "_s")
_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, defer_build=True)

if TYPE_CHECKING:

    class Reads(Generic[In, Out]):
        """The type of a field: what a constructor takes, and what the attribute then is."""

        def __set__(self, obj: Never, value: In) -> None: ...
        def __get__(self, obj: object | None, owner: type) -> Out: ...

else:

    class Reads:
        """The type of a field: what a constructor takes, and what the attribute then is."""

        def __class_getitem__(cls, types: tuple[Any, Any]) -> Any:
            """Return the type of the attribute; pydantic passes over the other one."""
            return Annotated[types[1], AcceptedType(types[0])]


@dataclass(frozen=True)
class AcceptedType:
    """The type that a constructor accepts for a field, where it is wider than the attribute's."""

    type: Any


Figure: TypeAlias = Reads[float | str, float]
Limit: TypeAlias = Reads[float | str | None, float | None]
Whole: TypeAlias = Reads[int | str, int]
WholeLimit: TypeAlias = Reads[int | str | None, int | None]
Switch: TypeAlias = Annotated[bool, Flag()]
Several: TypeAlias = Reads[Iterable[str], tuple[str, ...]]
CountsByPlace: TypeAlias = Reads[Mapping[str, int] | Mapping[str, str], Mapping[str, int]]
FiguresByPlace: TypeAlias = Reads[Mapping[str, float] | Mapping[str, str], Mapping[str, float]]


class Shown(TypedDict, total=False):
    """Display of a field on the command line, in forms and in documentation."""

    example: str | None  # a value as a person writes it
    group: str  # part of a form
    label: str
    """Name in a form; without one, it follows from the field's name."""
    key: str  # in JSON and errors, if it is not the name
    option: str | None
    """On the command line: ``--volume``, or a bare name for a positional argument; without one, it
    follows from the name. Fields that share an option are read together. None: the command has
    none."""
    aliases: tuple[str, ...]  # other names under which a value is accepted
    deprecated: bool  # whether it is accepted but has no effect
    often: bool  # whether it is among those most used, which short help shows


class Field:
    """A field: what it takes, and what :class:`Shown` says of it.

    `name`, `key`: of the attribute, and in JSON and errors.
    `default`, `required`, `optional`: its default, none where a value is required; and whether None
    means that there is no limit.
    `accepts`: what the constructor takes.
    `unitless`: its name without a unit, under which a text with one is accepted: ``volume="1TB"``.
    """

    def __init__(self, name: str, info: FieldInfo, shown: Mapping[str, Any]) -> None:
        accepted = (one.type for one in info.metadata if isinstance(one, AcceptedType))
        plain = next((name.removesuffix(u) for u in _UNIT_SUFFIXES if name.endswith(u)), name)
        self.name, self.key = name, shown.get("key", name)
        helps = [one for one in info.metadata if isinstance(one, str)]
        kinds = [one for one in info.metadata if isinstance(one, Kind)]
        if not helps or not kinds:
            written = 'Annotated[TYPE, KIND, "What it is."]'
            raise TypeError(f"the field {name} states no kind or no help: write {written}")
        self.help, self.kind = helps[-1], kinds[0]
        self.default = info.get_default(call_default_factory=True)
        self.required, self.optional = info.is_required(), NoneType in get_args(info.annotation)
        self.accepts = next(accepted, info.annotation)
        self.example: str | None = shown.get("example")
        self.group: str = shown.get("group", "options")
        self.aliases: tuple[str, ...] = shown.get("aliases", ())
        self.deprecated, self.often = (bool(shown.get(key)) for key in ("deprecated", "often"))
        named = None if self.deprecated else "--" + plain.replace("_", "-")
        self.option: str | None = shown.get("option", named)
        self.label: str = shown.get("label") or plain.replace("_", " ").capitalize()
        self.unitless = plain if plain != name else None

    def read_words(self, words: list[str]) -> Any:
        """Read the words of a command line."""
        try:
            return self.kind.read_words(words)
        except InputError as fault:
            raise fault.within(self.key) from None

    def to_json(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        return None if value is None else self.kind.to_json(value)

    def described(self) -> dict[str, Any]:
        """Return all that a form must know."""
        default = None if self.required else self.to_json(self.default)
        shown = ("required", "optional", "label", "group", "help", "example", "option")
        named = {"name": self.key, "kind": self.kind.name, "default": default}
        return named | self.kind.described() | {name: getattr(self, name) for name in shown}


class _Constructor(type):
    """Makes instances from values under any name of their fields, and words the errors."""

    if not TYPE_CHECKING:  # `specified` tells type checkers what the constructor takes

        def __call__(cls, *values: Any, **keywords: Any) -> Any:
            try:
                made = super().__call__(*values, **_by_name(cls, keywords))
            except ValidationError as error:
                raise _input_error(cls, error) from None
            made._check()
            return made


class Specified(metaclass=_Constructor):
    """Base of requests and of their parts: what is made from fields.

    The constructor accepts each field under all its names. One that is unknown, missing, given
    twice or wrong is an InputError that names it.
    """

    _fields: ClassVar[Mapping[str, Field]] = {}
    _known: ClassVar[Mapping[str, Field]] = {}

    def _check(self) -> None:
        """Check what concerns several fields; they are set."""

    @classmethod
    def positional(cls) -> tuple[str, ...]:
        """Return the names of the fields that may be given by position."""
        return tuple(one.name for one in fields(cls) if not one.kw_only)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a request from a JSON object, or raise an InputError that names what is wrong."""
        if not isinstance(document, Mapping):
            raise InputError("body", "must be a JSON object", value=document)
        return cls(**{str(key): value for key, value in document.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, as :meth:`from_json` takes them."""
        fields = self._fields
        return {fields[name].key: fields[name].to_json(of) for name, of in self._stated().items()}

    def _stated(self) -> dict[str, Any]:
        """Return the values that differ from the defaults."""
        own = self.__dict__
        return {name: own[name] for name, f in self._fields.items() if own[name] != f.default}

    def described(self) -> dict[str, Any]:
        """Return all fields as JSON has them, but for those without effect."""
        return {
            field.key: field.to_json(self.__dict__[name])
            for name, field in self._fields.items()
            if not field.deprecated
        }

    def with_(self, **changes: Any) -> Self:
        """Return it with other values of some fields, which are taken as they are.

        Values from outside go through the constructor, or :func:`dataclasses.replace`.
        """
        kept, changed = self.__dict__, object.__new__(type(self))
        changed.__dict__.update({name: kept[name] for name in self._fields}, **changes)
        return changed

    def __eq__(self, other: object) -> bool:
        """Return whether it is of the same class with equal fields."""
        return type(other) is type(self) and all(
            self.__dict__[name] == other.__dict__[name] for name in self._fields
        )

    def __hash__(self) -> int:
        """Return a hash of its fields."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """Show the fields that differ from the defaults."""
        said = (f"{name}={value!r}" for name, value in self._stated().items())
        return f"{type(self).__name__}({', '.join(said)})"


def field(
    *, default: Any = REQUIRED, factory: Callable[[], Any] | None = None, **shown: Unpack[Shown]
) -> Any:
    """Declare a field's default, and how surfaces show it; what a factory makes, none states."""
    if default is REQUIRED and factory is None:
        return dataclass_field(metadata=shown)
    if default == {}:
        factory = dict
    if factory:
        return dataclass_field(default_factory=factory, metadata=shown)
    return dataclass_field(default=default, metadata=shown)


# Not `frozen_default`: mypy would then take an inherited field's value for what may be given.
@dataclass_transform(field_specifiers=(field,))
def specified(cls: type[S]) -> type[S]:
    """Make a frozen pydantic dataclass of a class with fields; a decorator."""
    made: Any = pydantic_dataclass(cls, frozen=True, repr=False, eq=False, config=_CONFIG)
    infos = made.__pydantic_fields__
    # Its own first, then those that it inherits.
    order = dict.fromkeys(n for base in made.__mro__ for n in get_annotations(base) if n in infos)
    shown = {one.name: one.metadata for one in fields(made)}
    made._fields = {name: Field(name, infos[name], shown[name]) for name in order}
    names = ((name, f) for f in made._fields.values() for name in (f.name, f.key, *f.aliases))
    made._known = dict(names)
    return made  # type: ignore[no-any-return]


def fields_of(request: type[Specified]) -> Mapping[str, Field]:
    """Return the fields of a specified class by name: its own first, then those it inherits."""
    return request._fields


# ---- reading -------------------------------------------------------------------------------------


def _by_name(request: type[Specified], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of the fields, which may be given under others."""
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        field = request._known.get(name) or _of_text_with_unit(name, value, request._fields)
        if field.name in found:
            raise InputError(field.key, "is given twice", value=value)
        found[field.name] = value
    return found


def _of_text_with_unit(given: str, value: object, known: Mapping[str, Field]) -> Field:
    """Return the field whose name without a unit is given; the value says the unit."""
    found = next((field for field in known.values() if field.unitless == given), None)
    if found is None:
        keys = [field.key for field in known.values()]
        near = get_close_matches(given, [*keys, *known], 1, 0.5)
        remedy = f"Did you mean `{near[0]}`?" if near else f"Fields are {', '.join(keys)}."
        raise InputError(given, "is an unknown field", remedy=remedy)
    if not isinstance(value, str) or _is_number(value):
        remedy = f"Write {given}={found.example!r}, or {found.key} for a number."
        raise InputError(given, "has no unit", value=value, remedy=remedy)
    return found


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return isfinite(float(text))
    return False


def _input_error(request: type[Specified], error: ValidationError) -> Exception:
    """Return the first fault that pydantic found as an InputError."""
    first = error.errors(include_url=False)[0]
    name, positional = first["loc"][0], request.positional()
    if name == len(positional):
        return TypeError(f"{request.__name__} takes at most {name} positional values")
    field = request._fields[positional[name] if isinstance(name, int) else name]
    remedy = f"For example: {field.example}." if field.example else None
    if first["type"] == "less_than_equal" and isinstance(field.kind, Quantity) and field.kind.unit:
        remedy = "Check the unit."
    if first["type"] == "missing":
        return InputError(field.key, "is missing", remedy=remedy)
    if first["type"] == "multiple_argument_values":
        return InputError(field.key, "is given twice", value=first["input"])
    return fault_of(error, field.key, remedy)


# ---- lists of specified things -------------------------------------------------------------------


class Items(Kind, Generic[S]):
    """A list of so many specified things: as objects, as mappings, or as a data frame.

    One without an id is called by its number in the list, after a prefix.
    """

    name, metavar = "items", "FILE"

    def __init__(self, of: type[S], *, least: int, most: int, prefix: str = "") -> None:
        self.of, self.least, self.most, self.prefix = of, least, most, prefix

    def read(self, value: Any) -> tuple[S, ...]:
        """Return the items, none for None; an error names an item by its id, else its number.

        Raises an InputError if it is no list, has too few or too many, or one is wrong or has the
        id of another.
        """
        if hasattr(value, "to_dict") and hasattr(value, "columns"):
            value = value.to_dict("records")
        if value is None and not self.least:
            return ()
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise InputError("", "must be a list, one entry each", value=value)
        items = tuple(
            item if isinstance(item, self.of) else self._item(item, number)
            for number, item in enumerate(value, 1)
        )
        check_count(len(items), self.least, self.most)
        seen: set[object] = set()
        for item in items:
            identity = item.__dict__["id"]
            if identity in seen:
                raise InputError("", "have an id twice", value=identity)
            seen.add(identity)
        return items

    def _item(self, item: Any, number: int) -> S:
        if not isinstance(item, Mapping):
            raise InputError(str(number), "must be a mapping of fields", value=item)
        # NaN is how a data frame says that there is nothing.
        entry = {
            str(key).strip().lower(): value
            for key, value in item.items()
            if not (value is None or value != value or value == "")
        }
        names = ("id", *fields_of(self.of)["id"].aliases)
        label = next((str(entry[name]) for name in names if name in entry), None)
        if label is None:
            label = entry["id"] = f"{self.prefix}{number}"
        try:
            return self.of(**entry)
        except InputError as fault:
            raise fault.within(f"{label},") from None

    def to_json(self, value: tuple[S, ...]) -> list[dict[str, Any]]:
        """Return a list of objects."""
        return [item.to_json() for item in value]

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of objects."""
        return list_schema(schema_of(self.of), self.least, self.most)

    def described(self) -> dict[str, Any]:
        """Return the fields of an item."""
        return {"fields": [field.described() for field in fields_of(self.of).values()]}


# ---- derived -------------------------------------------------------------------------------------


def schema_of(request: type[Specified]) -> dict[str, Any]:
    """Return the JSON schema of a specified class: an object that knows no other keys."""
    found = TypeAdapter(request).json_schema(schema_generator=UntitledSchema)
    properties = {
        f.key: {**found["properties"][f.name], "description": f.help}
        for f in request._fields.values()
    }
    # Of what a factory makes, pydantic states no default.
    empty = [f.key for f in request._fields.values() if f.default == {}]
    properties |= {key: {**properties[key], "default": {}} for key in empty}
    required = [f.key for f in request._fields.values() if f.required]
    about = (request.__doc__ or "").partition("\n")[0]
    return {**found, "description": about, "properties": properties, "required": required}


def description_of(request: type[Specified]) -> list[dict[str, Any]]:
    """Return the fields in their order, as forms need them."""
    return [field.described() for field in fields_of(request).values() if not field.deprecated]
