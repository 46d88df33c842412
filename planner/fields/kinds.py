"""Kinds of values: metadata of types, from which pydantic reads and checks what fields take.

``Annotated[Figure, Volume()]`` reads a number of GB, or the text that a person writes (``1.5TB``),
and checks its bounds. Kinds also know what forms and command lines need: unit, meanings of words,
what a value is called. A fault raises :class:`~planner.model.errors.InputError` without a field,
which :mod:`planner.fields.specified` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from math import inf
from types import NoneType
from typing import Annotated, Any, ClassVar, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, core_schema

from planner.fields.json_text import read_json
from planner.model.errors import InputError
from planner.model.units import (
    parse_duration_s,
    parse_money_usd,
    parse_rate_gbps,
    parse_time_value_usd_per_h,
    parse_volume_gb,
)

MOST_NAME = 200
"""Characters of a name: of a region, an alias, a rule."""
MOST_PLACES = 1000
"""Entries of a mapping from places."""
MOST_VOLUME_GB = 1e9
"""An exabyte: more is a slip of the unit."""
MOST_FIGURE = 1e12
"""Far beyond what is sensible; keeps products of figures finite."""
LEAST_FIGURE = 1e-9
"""As small as a figure above 0 may be."""

# What pydantic calls in words of Python or of its own.
_PROBLEMS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be an object: a value for each place",
    "float_type": "must be a number",
    "greater_than_equal": "must be {ge:g} or more",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be one of {expected}",
    "string_too_long": "is longer than {max_length} characters",
    "string_too_short": "is empty",
    "string_type": "must be a name",
    "tuple_type": "must be a list of names",
}
_NAME: CoreSchema = core_schema.str_schema(
    strip_whitespace=True, min_length=1, max_length=MOST_NAME
)


class Kind:
    """A kind of values; one that pydantic has no type for reads and describes them itself."""

    name: str
    """Of the kind, in descriptions."""
    metavar: str = "VALUE"
    """Of a value, in a command's help."""
    repeated: ClassVar[bool] = False
    """Whether an option of a command line may be given several times."""
    taken: CoreSchema = core_schema.any_schema()
    written: CoreSchema | None = None
    """What pydantic takes of what :meth:`read` returns, and what JSON may have, if it differs."""

    def read(self, value: Any) -> Any:
        """Return a value as planners use it, or as pydantic can go on with."""
        return value

    def core(self) -> CoreSchema:
        """Return the schema by which pydantic reads a value."""
        return core_schema.no_info_before_validator_function(
            self.read, self.taken, json_schema_input_schema=self.written
        )

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's reader of single values."""
        return TypeAdapter(Annotated[Any, self])

    def validate(self, value: Any, where: str = "") -> Any:
        """Return a value, read and checked; an InputError names `where` it is."""
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise fault_of(error).within(where) from None

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema, if it does not follow from what pydantic reads."""
        return None

    def read_words(self, words: Sequence[str]) -> Any:
        """Read the words of a command line: the last one, unless the option is repeated."""
        return self.read(words[-1])

    def to_json(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        return value

    def text(self, value: Any) -> str:
        """Return a value as a person writes it."""
        return str(value)

    def described(self) -> dict[str, Any]:
        """Return the attributes that forms need beyond the kind's name."""
        return {}

    def __get_pydantic_core_schema__(self, source: Any, _: GetCoreSchemaHandler) -> CoreSchema:
        core = self.core()
        return core_schema.nullable_schema(core) if NoneType in get_args(source) else core

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        own = self.schema()
        if own is None:
            return handler(core)
        return {"anyOf": [own, {"type": "null"}]} if core["type"] == "nullable" else own


# ---- numbers -------------------------------------------------------------------------------------


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise InputError("", "must be a number", value=value)
    return value


class Quantity(Kind):
    """A number: in the field's unit, or a text that may say another.

    `units` are those that it may say, alternatives of a regular expression. Both bounds are
    allowed; if it may be `infinite`, so is infinity, written ``inf``.
    """

    name = "number"
    unit = units = ""
    bounds: ClassVar[tuple[float, float]] = (0.0, MOST_FIGURE)

    def __init__(
        self, least: float | None = None, most: float | None = None, *, infinite: bool = False
    ) -> None:
        self.least = self.bounds[0] if least is None else least
        self.most = self.bounds[1] if most is None else most
        self.infinite = infinite
        self.taken = core_schema.float_schema(
            ge=self.least, le=None if infinite else self.most, allow_inf_nan=infinite
        )
        accepted: list[CoreSchema | tuple[CoreSchema, str]] = [
            core_schema.float_schema(ge=self.least, le=self.most),
            core_schema.str_schema(pattern=rf"^\d{{1,9}}(\.\d{{1,9}})? ?({self.units})$"),
            *([core_schema.literal_schema(["inf"])] if infinite else []),
        ]
        self.written = core_schema.union_schema(accepted)

    @staticmethod
    def parse(text: str, field: str) -> float:
        """Read a text with its unit, or raise an InputError that names a field."""
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise InputError(field, "is not a number", value=text) from None

    def read(self, value: Any) -> Any:
        """Return a text as a number; it may leave the unit out, because the field's name has it.

        Raises an InputError if it is no number or, where inf is allowed, finite and above the most.
        """
        number = _no_flag(value)
        if isinstance(value, str):
            try:
                number = float(value)
            except ValueError:
                number = self.parse(value, "")
        if self.infinite and isinstance(number, float) and self.most < number < inf:
            raise InputError("", f"must be at most {self.most:g}, or inf", value=value)
        return number

    def read_words(self, words: Sequence[str]) -> Any:
        """Return a number from a word that says its unit."""
        return self.parse(words[-1], "")

    def to_json(self, value: float) -> float | str:
        """Return the number; infinity, which JSON lacks, as a word."""
        return "inf" if value == inf else value

    def text(self, value: float) -> str:
        """Return a number with its unit."""
        return "inf" if value == inf else f"{value:g}{self.unit}"

    def described(self) -> dict[str, Any]:
        """Return unit and bounds."""
        bounds = {"minimum": self.least, "maximum": self.most, "infinite": self.infinite}
        return {"unit": self.unit, **bounds}


class Volume(Quantity):
    """A volume in GB."""

    name, metavar, unit, units = "volume", "SIZE", "GB", "MB|GB|TB|MiB|GiB|TiB|M|G|T"
    bounds, parse = (LEAST_FIGURE, MOST_VOLUME_GB), staticmethod(parse_volume_gb)


class Number(Quantity):
    """A number, or percent."""

    metavar, units = "N", "%"


class Proportion(Quantity):
    """A share, or percent."""

    name, metavar, units = "share", "SHARE", "%"


class Duration(Quantity):
    """A duration in seconds."""

    name, metavar, unit, units = "duration", "TIME", "s", "ms|s|min|h|d"
    parse = staticmethod(parse_duration_s)


class Money(Quantity):
    """An amount of US dollars."""

    name, metavar, unit, units = "money", "USD", "USD", "usd|USD"
    parse = staticmethod(parse_money_usd)


class MoneyPerHour(Quantity):
    """US dollars for an hour."""

    name, metavar, unit, units = "money_per_hour", "USD/H", "USD/h", "usd/h|USD/h"
    parse = staticmethod(parse_time_value_usd_per_h)


class Rate(Quantity):
    """A rate in Gbit/s."""

    name, metavar, unit, units = "rate", "RATE", "Gbit/s", "mbps|gbps|tbps|Mbit/s|Gbit/s|Tbit/s"
    parse = staticmethod(parse_rate_gbps)


class Count(Kind):
    """A whole number."""

    name, metavar = "count", "N"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.taken = core_schema.int_schema(ge=least, le=most)

    def read(self, value: Any) -> Any:
        """Return a value that is not True or False."""
        return _no_flag(value)

    def described(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"minimum": self.least, "maximum": self.most}


# ---- words and names -----------------------------------------------------------------------------


class _Words(Kind):
    """Words with meanings of their own."""

    def __init__(self, meanings: Mapping[str, str] = {}) -> None:
        self.meanings = meanings

    def described(self) -> dict[str, Any]:
        """Return the words with their meanings."""
        return {"choices": [list(item) for item in self.meanings.items()]}


class OneOf(_Words):
    """One of a few words: a mapping of words to meanings, the default first."""

    name = "choice"

    def __init__(self, meanings: Mapping[str, str]) -> None:
        super().__init__(meanings)
        self.taken = core_schema.literal_schema(list(meanings))


class Region(_Words):
    """The name of a region, an alias or a city; or one of a few words that are no region."""

    name, metavar, taken = "region", "REGION", _NAME

    def __init__(self, meanings: Mapping[str, str] = {}) -> None:
        super().__init__(meanings)
        self.metavar = "|".join([*meanings, self.metavar])


class Name(Region):
    """A name of something other than a region."""

    name, metavar = "text", "NAME"


class Flag(Kind):
    """Yes or no."""

    name, taken = "flag", core_schema.bool_schema(strict=True)

    def read(self, value: Any) -> Any:
        """Return a word of a query string as True or False."""
        words = {"true": True, "1": True, "false": False, "0": False}
        return words.get(value.lower(), value) if isinstance(value, str) else value


class Names(Kind):
    """Several names: of ``regions``, ``rules`` or the like; `lone`, a single text is one name."""

    repeated = True

    def __init__(
        self, name: str, metavar: str, *, least: int = 0, most: int = MOST_PLACES, lone: bool = True
    ) -> None:
        self.name, self.metavar, self.lone = name, metavar, lone
        self.taken = core_schema.tuple_variable_schema(_NAME, min_length=least, max_length=most)

    def read(self, value: Any) -> Any:
        """Return a single name as a list of one; raises an InputError where that is not allowed."""
        if not isinstance(value, str):
            return value
        if not self.lone:
            remedy = "Pass a list of regions."
            raise InputError("", "must be several names", value=value, remedy=remedy)
        return (value,)

    def read_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words."""
        return tuple(words)

    def to_json(self, value: tuple[str, ...]) -> list[str]:
        """Return a list."""
        return list(value)


# ---- several values ------------------------------------------------------------------------------


class ByPlace(Kind):
    """A value for each of several places: a mapping, or a series.

    A place is a ``region``, a ``provider``, or both. A word without ``=`` is for `everywhere`.
    """

    name = "by_place"
    repeated = True

    def __init__(self, of: Kind, place: str, *, everywhere: str | None = None) -> None:
        self.of, self.place, self.everywhere = of, place, everywhere
        self.metavar = f"{'WHERE' if ' ' in place else place.upper()}={of.metavar}"
        self.taken = core_schema.dict_schema(_NAME, of.core(), max_length=MOST_PLACES)

    def read(self, value: Any) -> Any:
        """Return a series as a mapping."""
        return dict(value.items()) if hasattr(value, "items") else value

    def read_words(self, words: Sequence[str]) -> dict[str, Any]:
        """Return place to value, from words such as ``PLACE=VALUE``."""
        found = {}
        for place, word in assignments(words, self.everywhere).items():
            try:
                found[place] = self.of.read_words([word])
            except InputError as fault:
                raise fault.within(place) from None
        return found

    def to_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object."""
        return {place: self.of.to_json(item) for place, item in value.items()}

    def described(self) -> dict[str, Any]:
        """Return the kinds of the places and of the values."""
        return {"place": self.place, "of": {"kind": self.of.name, **self.of.described()}}


class AnswerDocument(Kind):
    """An answer: the object, its document, or its JSON; errors call it `what`: ``a plan``."""

    name, metavar = "document", "FILE"

    def __init__(self, what: str) -> None:
        self.what = what

    def read(self, value: Any) -> Any:
        """Return the object, or its document; raises an InputError if it is neither."""
        remedy = "Give what was answered: the object, or its JSON."
        try:
            found = read_json(value) if isinstance(value, str) else value
        except ValueError as fault:
            raise InputError("", str(fault), remedy=remedy) from None
        if not isinstance(found, Mapping) and not hasattr(found, "model_dump"):
            raise InputError("", f"is not {self.what}", value=type(found).__name__, remedy=remedy)
        return found

    def to_json(self, value: Any) -> Any:
        """Return the document."""
        return dict(value) if isinstance(value, Mapping) else value.model_dump("json")

    def schema(self) -> dict[str, Any]:
        """Return the schema of any object."""
        return {"type": "object"}


# ---- schemas, errors and words -------------------------------------------------------------------


def list_schema(items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def object_schema(
    title: str, properties: Mapping[str, Kind], required: Iterable[str]
) -> dict[str, Any]:
    """Return the schema of an object that knows no other keys."""
    found = {key: kind_schema(kind) for key, kind in properties.items()}
    about = {"type": "object", "title": title, "additionalProperties": False}
    return {**about, "properties": found, "required": list(required)}


def kind_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of a value of a kind."""
    return kind.adapter.json_schema(schema_generator=UntitledSchema)


class UntitledSchema(GenerateJsonSchema):
    """JSON schemas whose fields have no titles, which would repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        """Return False, for all fields."""
        return False


def check_count(count: int, least: int, most: int) -> None:
    """Refuse fewer or more of something than are allowed."""
    if not least <= count <= most:
        bound = f"at least {least}" if count < least else f"at most {most}"
        raise InputError("", f"must be {bound}", value=count)


def fault_of(error: ValidationError, where: str = "", remedy: str | None = None) -> InputError:
    """Return the first fault that pydantic found as an InputError.

    `where` is what the field, or the value, is called; the entry at fault follows it. The remedy is
    for faults that do not say so themselves.
    """
    fault = error.errors(include_url=False)[0]
    _, *inside = fault["loc"] if where else ("", *fault["loc"])
    parts = [where, *(part for part in inside if isinstance(part, str) and part != "[key]")]
    ours = fault.get("ctx", {}).get("error")
    if isinstance(ours, InputError):
        return ours.within(" ".join(parts))
    problem = _PROBLEMS.get(fault["type"], f"must{fault['msg'].partition(' should')[2]}")
    if fault["type"] == "literal_error":
        word, known = str(fault["input"]).lower(), re.findall("'(.*?)'", fault["ctx"]["expected"])
        near = [one for one in known if re.match(_SAID_FOR.get(one, one), word)]
        near += get_close_matches(word[:MOST_NAME], known, 1)
        remedy = f"Did you mean {near[0]}?" if near else remedy
    problem = problem.format_map(fault.get("ctx", {})).replace(f"{LEAST_FIGURE} or more", "above 0")
    return InputError(" ".join(parts).strip(), problem, value=fault["input"], remedy=remedy)


_SAID_FOR = {"cost": "cheap|price|money", "time": "fast|quick|soon|speed", "latency": "rtt|ping"}
"""Words that mean a choice without being close to it in letters."""


def assignments(
    words: Sequence[str], everywhere: str | None = None, field: str = ""
) -> dict[str, str]:
    """Read words such as ``WHERE=VALUE``; a bare value is for `everywhere` where allowed.

    Raises an InputError for a bare value that is not allowed, and for a place given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        where, separator, value = word.partition("=")
        if not separator:
            if everywhere is None:
                raise InputError(field, "has no `=`", value=word, remedy="Write WHERE=VALUE.")
            where, value = everywhere, word
        if where in found:
            raise InputError(field, f"is given twice for {where}", value=word)
        found[where] = value
    return found
