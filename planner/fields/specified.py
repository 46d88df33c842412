"""Fields of a question: each is declared once, and every surface is derived from it.

A request is a frozen dataclass whose attributes are *descriptor-typed fields*::

    @specified
    class TransferRequest(Specified):
        src: Text = field(Region(), "Where to send from.", example="us-east")
        _: KW_ONLY
        volume_gb: Figure = field(Volume(), "Volume to move.", default=100.0, example="500GB")

Setting an attribute reads the value: a number in the unit of the field's name, or the text that a
person writes (``volume_gb="1TB"``). What is wrong raises :class:`~planner.errors.InputError`,
which names the field. mypy infers the constructor's argument types from ``Field.__set__``. Command
line, HTTP schema, client and documentation are made from :func:`fields_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches  # for what goes wrong alone: start-up needs no difflib
from math import isfinite
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Never,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    overload,
)

from planner.fields.kinds import Kind, object_schema
from planner.model.errors import InputError

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
S = TypeVar("S", bound="Specified")
P = ParamSpec("P")

REQUIRED: Any = object()
"""The default of a field that has none."""

# Longest first: `_usd_per_h` ends in what would be another unit.
_UNIT_SUFFIXES = ("_usd_per_h", "_gbps", "_usd", "_gb", "_s")


class Field(Generic[In, Out]):
    """One field of a request: what it is called, what it takes, and what it means.

    Attributes
    ----------
    name : str
        Of the attribute and keyword.
    key : str
        In JSON, and in errors; the name unless stated.
    kind : Kind
        What values it takes.
    help : str
        One or two full sentences.
    default : object
        Already read; ``REQUIRED`` if there is none.
    optional : bool
        Whether None stands for "no such limit".
    example : str | None
        A value as a person writes it.
    option : str | None
        On the command line: ``--volume``, or a bare name for a positional argument; if declared
        as ``""``, it follows from the name. Fields that share an option are read together. None if
        the command line does not have the field.
    label, group : str
        Of the field in a form, and of the part of the form.
    unitless : str | None
        Its name without a unit, under which a text with one is accepted: ``volume="1TB"``.
    aliases : tuple of str
        Other names under which a value is accepted.
    deprecated : bool
        Whether it is still accepted but has no effect; no form and no command has it.
    """

    name: str
    key: str
    option: str | None
    label: str
    unitless: str | None

    def __init__(
        self,
        kind: Kind[Any],
        help: str,  # noqa: A002 - what argparse and OpenAPI generators call it
        *,
        default: Any = REQUIRED,
        example: str | None = None,
        group: str = "",
        label: str | None = None,
        key: str | None = None,
        option: str | None = "",
        aliases: tuple[str, ...] = (),
        deprecated: bool = False,
    ) -> None:
        self.kind, self.help, self.default = kind, help, default
        self.optional = default is None
        self.example, self.group, self.aliases = example, group, aliases
        self.deprecated = deprecated
        self._key, self._option, self._label = key, option, label

    def __set_name__(self, owner: type, name: str) -> None:
        """Derive what follows from the attribute's name."""
        self.name = name
        self.key = self._key or name
        plain = next((name.removesuffix(u) for u in _UNIT_SUFFIXES if name.endswith(u)), name)
        spelled = "--" + plain.replace("_", "-")
        self.option = None if self.deprecated else self._option if self._option != "" else spelled
        self.label = self._label or plain.replace("_", " ").capitalize()
        self.unitless = plain if plain != name else None

    if TYPE_CHECKING:
        # Attributes are in the instance's dictionary. These tell type checkers what a constructor
        # takes, what an attribute is, and that none is set afterwards: no object is of type Never.
        def __set__(self, obj: Never, value: In) -> None: ...

        @overload
        def __get__(self, obj: None, owner: type) -> Self: ...
        @overload
        def __get__(self, obj: object, owner: type) -> Out: ...
        def __get__(self, obj: object | None, owner: type) -> Any: ...

    def __repr__(self) -> str:
        """Show the default, as signatures do."""
        return "..." if self.default is REQUIRED else repr(self.default)

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def read(self, value: Any) -> Any:
        """Return a value, read and checked.

        Raises
        ------
        InputError
            Naming the field.
        """
        if value is None and self.optional:
            return None
        return self.kind.read(value, self.key)

    def read_words(self, words: list[str]) -> Any:
        """Return what the words of a command line say."""
        return self.kind.read_words(words, self.key)

    def to_json(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        return None if value is None else self.kind.to_json(value)

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with default and help."""
        schema = self.kind.schema()
        if self.optional:
            branches = schema.get("anyOf", [schema])
            schema = {"anyOf": [*branches, {"type": "null"}]}
        if not self.required:
            schema["default"] = self.to_json(self.default)
        schema["description"] = self.help
        if self.deprecated:
            schema["deprecated"] = True
        return schema

    def described(self) -> dict[str, Any]:
        """Return all that a form must know."""
        return {
            "name": self.key,
            "kind": self.kind.name,
            **self.kind.described(),
            "required": self.required,
            "optional": self.optional,
            "default": None if self.required else self.to_json(self.default),
            "label": self.label,
            "group": self.group,
            "help": self.help,
            "example": self.example,
            "option": self.option,
        }


Text: TypeAlias = Field[str, str]
Figure: TypeAlias = Field[float | str, float]
Limit: TypeAlias = Field[float | str | None, float | None]
Whole: TypeAlias = Field[int | str, int]
WholeLimit: TypeAlias = Field[int | str | None, int | None]
Switch: TypeAlias = Field[bool, bool]
Several: TypeAlias = Field[Iterable[str], tuple[str, ...]]
CountsByPlace: TypeAlias = Field[Mapping[str, int] | Mapping[str, str], Mapping[str, int]]
FiguresByPlace: TypeAlias = Field[Mapping[str, float] | Mapping[str, str], Mapping[str, float]]
NamesByPlace: TypeAlias = Field[Mapping[str, str], Mapping[str, str]]


def _as_any(make: Callable[P, object]) -> Callable[P, Any]:
    return make


field = _as_any(Field)
"""Declares a field, with what :class:`Field` takes, as the type that its attribute is declared."""


class Specified:
    """Base of requests and of their parts: what is made from fields.

    The constructor accepts each field under all its names.

    Raises
    ------
    InputError
        If a field is unknown, missing, given twice or wrong; it names the field.
    """

    _fields: ClassVar[Mapping[str, Field[Any, Any]]] = {}
    _known: ClassVar[Mapping[str, Field[Any, Any]]] = {}
    _positional: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _described: ClassVar[tuple[tuple[str, str, Callable[[Any], Any] | None], ...]] = ()

    if not TYPE_CHECKING:  # `specified` tells type checkers what the constructor takes

        def __init__(self, *values: Any, **keywords: Any) -> None:
            if values:
                if len(values) > len(self._positional):
                    most = len(self._positional)
                    raise TypeError(f"{type(self).__name__} takes at most {most} positional values")
                named = dict(zip(self._positional, values, strict=False))
                if twice := named.keys() & keywords.keys():
                    raise InputError(min(twice), "is given twice")
                keywords = named | keywords
            found: dict[str, Any] = {}
            for name, value in keywords.items():
                field = self._known.get(name)
                if field is None:
                    field = _of_text_with_unit(name, value, self._fields)
                if field.name in found:
                    raise InputError(field.key, "is given twice", value=value)
                found[field.name] = field.read(value)
            if missing := [name for name in self._required if name not in found]:
                field = self._fields[missing[0]]
                remedy = f"Such as {field.example}." if field.example else None
                raise InputError(field.key, "is missing", remedy=remedy)
            self.__dict__.update(self._defaults)
            self.__dict__.update(found)
            self._check()

    def _check(self) -> None:
        """Check what concerns several fields; they are set."""

    @classmethod
    def positional(cls) -> tuple[str, ...]:
        """Return the names of the fields that may be given by position."""
        return cls._positional

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Return the request that a JSON object says."""
        if not isinstance(document, Mapping):
            raise InputError("body", "must be a JSON object", value=document)
        return cls(**{str(key): value for key, value in document.items()})

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults, as :meth:`from_json` takes it."""
        return {
            field.key: field.to_json(self.__dict__[name])
            for name, field in self._fields.items()
            if self.__dict__[name] != field.default
        }

    def described(self) -> dict[str, Any]:
        """Return all fields as JSON has them, but for those without effect."""
        values = self.__dict__
        return {
            key: to_json(values[name]) if to_json else values[name]
            for name, key, to_json in self._described
        }

    def with_(self, **changes: Any) -> Self:
        """Return it with other values of some fields, as the constructor takes them.

        The same as :func:`dataclasses.replace`, which reads all the others again.
        """
        kept, changed = self.__dict__, object.__new__(type(self))
        changed.__dict__.update({name: kept[name] for name in self._fields})
        for name, value in changes.items():
            changed.__dict__[name] = self._fields[name].read(value)
        changed._check()
        return changed

    def __eq__(self, other: object) -> bool:
        """Whether it is of the same class and says the same."""
        return type(other) is type(self) and all(
            self.__dict__[name] == other.__dict__[name] for name in self._fields
        )

    def __hash__(self) -> int:
        """Return a hash of what it says."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """Show what differs from the defaults."""
        said = (
            f"{name}={self.__dict__[name]!r}"
            for name, field in self._fields.items()
            if self.__dict__[name] != field.default
        )
        return f"{type(self).__name__}({', '.join(said)})"


# Not `frozen_default`: mypy would then take an inherited field's value for what may be given.
@dataclass_transform(field_specifiers=(field,))
def specified(cls: type[S]) -> type[S]:
    """Make a frozen dataclass of a class with fields; a decorator."""
    made = dataclass(frozen=True, init=False, repr=False, eq=False)(cls)
    found: dict[str, Field[Any, Any]] = {}
    for base in made.__mro__:  # its own first, then those that it inherits
        for name, value in vars(base).items():
            if isinstance(value, Field):
                found.setdefault(name, value)
    names = ((other, f) for f in found.values() for other in (f.name, f.key, *f.aliases))
    made._fields, made._known = found, dict(names)
    made._required = tuple(name for name, f in found.items() if f.required)
    made._defaults = {name: f.default for name, f in found.items() if not f.required}
    made._described = tuple(
        (name, f.key, f.to_json if type(f.kind).to_json is not Kind.to_json else None)
        for name, f in found.items()
        if not f.deprecated
    )
    made._positional = tuple(f.name for f in fields(made) if not f.kw_only)  # type: ignore[arg-type]
    return made


def fields_of(request: type[Specified]) -> Mapping[str, Field[Any, Any]]:
    """Return the fields of a specified class by name: its own first, then those it inherits."""
    return request._fields


def _of_text_with_unit(
    given: str, value: object, known: Mapping[str, Field[Any, Any]]
) -> Field[Any, Any]:
    """Return the field whose name without a unit is given; the value says the unit."""
    found = next((field for field in known.values() if field.unitless == given), None)
    if found is None:
        raise unknown_field(given, known)
    if not isinstance(value, str) or _is_finite(value):
        remedy = f"Write {given}={found.example!r}, or {found.key} for a number."
        raise InputError(given, "has no unit", value=value, remedy=remedy)
    return found


def _is_finite(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def unknown_field(given: str, known: Mapping[str, Field[Any, Any]]) -> InputError:
    """Return an error that names the nearest known field."""
    keys = [field.key for field in known.values()]
    near = get_close_matches(given, [*keys, *known], 1, 0.5)
    remedy = f"Did you mean `{near[0]}`?" if near else f"Fields are {', '.join(keys)}."
    return InputError(given, "is an unknown field", remedy=remedy)


def schema_of(request: type[Specified]) -> dict[str, Any]:
    """Return the JSON schema of a specified class: an object that knows no other keys."""
    known = fields_of(request).values()
    return object_schema(
        request.__name__,
        {field.key: field.schema() for field in known},
        [field.key for field in known if field.required],
        description=(request.__doc__ or "").partition("\n")[0],
    )


def description_of(request: type[Specified]) -> list[dict[str, Any]]:
    """Return what forms are made from: the fields in their order."""
    return [field.described() for field in fields_of(request).values() if not field.deprecated]
