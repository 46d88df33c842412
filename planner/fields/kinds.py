"""Kinds of values that fields take: how each is read, written, described and bounded.

A kind reads a value of a program (a number in the unit of the field's name), of JSON, or the text
that a person writes, and returns the normalised value. Reading a normalised value returns it.
"""

from __future__ import annotations

import json  # few fields are documents
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, ClassVar, Generic, TypeVar

from planner.model.errors import InputError

T = TypeVar("T")

MOST_NAME = 200
"""Characters of a name: of a region, an alias, a rule."""
MOST_PLACES = 1000
"""Entries of a mapping from places."""


class Kind(Generic[T]):
    """What a field takes.

    Attributes
    ----------
    name : str
        Of the kind, in descriptions.
    metavar : str
        What a command's help calls a value.
    repeated : bool
        Whether an option of a command line may be given several times.
    accepts : object
        The type that a signature shows; None for any.
    """

    name: ClassVar[str]
    metavar: str = "VALUE"
    repeated: ClassVar[bool] = False
    accepts: Any = str

    def read(self, value: Any, field: str) -> T:
        """Return a value as planners use it.

        Raises
        ------
        InputError
            Naming the field, if it can't be one.
        """
        raise NotImplementedError

    def read_words(self, words: Sequence[str], field: str) -> T:
        """Return what the words of a command line say: the last, if it is not repeated."""
        return self.read(words[-1], field)

    def to_json(self, value: T) -> Any:
        """Return a value as JSON has it."""
        return value

    def text(self, value: T) -> str:
        """Return a value as a person writes it."""
        return str(value)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Return what a form must know, beyond the kind's name."""
        return {}


class Count(Kind[int]):
    """A whole number."""

    name, metavar = "count", "N"
    accepts = int

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def read(self, value: Any, field: str) -> int:
        """Return a whole number within the bounds."""
        number = value if type(value) is int else self._whole(value, field)
        if self.least <= number <= self.most:
            return number
        raise InputError(
            field, f"must be a whole number from {self.least} to {self.most}", value=value
        )

    def _whole(self, value: Any, field: str) -> int:
        try:
            if isinstance(value, str):
                return int(value)
            if not isinstance(value, bool):
                return int(value) if value == int(value) else index(value)
        except (TypeError, ValueError, OverflowError):
            pass
        raise InputError(field, "must be a whole number", value=value)

    def schema(self) -> dict[str, Any]:
        """Return the schema of an integer."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def described(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"minimum": self.least, "maximum": self.most}


class OneOf(Kind[Any]):
    """One of several words, each with its meaning."""

    name = "choice"

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self.meanings = meanings
        self.metavar = "|".join(meanings)

    def read(self, value: Any, field: str) -> str:
        """Return the word."""
        if isinstance(value, str) and value in self.meanings:
            return value
        raise InputError(field, f"must be one of {', '.join(self.meanings)}", value=value)

    def schema(self) -> dict[str, Any]:
        """Return the schema of an enumeration."""
        return {"type": "string", "enum": list(self.meanings)}

    def described(self) -> dict[str, Any]:
        """Return the words with their meanings."""
        return {"choices": [list(item) for item in self.meanings.items()]}


class Flag(Kind[bool]):
    """Yes or no."""

    name = "flag"
    accepts = bool
    _WORDS: ClassVar[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}

    def read(self, value: Any, field: str) -> bool:
        """Return True or False, also from the words of a query string."""
        if value is True or value is False:
            return value
        word = self._WORDS.get(value.lower()) if isinstance(value, str) else None
        if word is None:
            raise InputError(field, "must be true or false", value=value)
        return word

    def schema(self) -> dict[str, Any]:
        """Return the schema of a boolean."""
        return {"type": "boolean"}


class Region(Kind[str]):
    """The name of a region, an alias or a city; or one of a few words with meanings of their own.

    Parameters
    ----------
    meanings : mapping
        Words that are no region, with their meanings.
    """

    name, metavar = "region", "REGION"

    def __init__(self, meanings: Mapping[str, str] = {}) -> None:
        self.meanings = meanings
        self.metavar = "|".join([*meanings, "REGION"])

    def read(self, value: Any, field: str) -> str:
        """Return the name."""
        return read_name(value, field)

    def schema(self) -> dict[str, Any]:
        """Return the schema of a name."""
        return {"type": "string", "minLength": 1, "maxLength": MOST_NAME}

    def described(self) -> dict[str, Any]:
        """Return the words that are no region."""
        return {"choices": [list(item) for item in self.meanings.items()]}


class Names(Kind[tuple[str, ...]]):
    """Several names: of regions, or rules.

    Parameters
    ----------
    name : str
        Of the kind: ``regions`` or ``rules``.
    least, most : int
        How many.
    lone : bool
        Whether a single text is accepted as one name.
    """

    repeated = True
    accepts = Sequence[str]

    def __init__(
        self, name: str, metavar: str, *, least: int = 0, most: int = MOST_PLACES, lone: bool = True
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.metavar, self.least, self.most, self.lone = metavar, least, most, lone

    def read(self, value: Any, field: str) -> tuple[str, ...]:
        """Return the names."""
        if isinstance(value, str):
            if not self.lone:
                raise InputError(
                    field, "must be several names", value=value, remedy="Pass a list of regions."
                )
            value = (value,)
        if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
            raise InputError(field, "must be a list of names", value=value)
        names = tuple(read_name(item, field) for item in value)
        check_count(len(names), self.least, self.most, field)
        return names

    def read_words(self, words: Sequence[str], field: str) -> tuple[str, ...]:
        """Return the words."""
        return self.read(tuple(words), field)

    def to_json(self, value: tuple[str, ...]) -> list[str]:
        """Return a list."""
        return list(value)

    def text(self, value: tuple[str, ...]) -> str:
        """Return the names with commas."""
        return ", ".join(value)

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list."""
        return list_schema(Region().schema(), self.least, self.most)


class Name(Region):
    """A name that is no region's."""

    name = "text"

    def __init__(self) -> None:
        super().__init__()
        self.metavar = "NAME"


class ByPlace(Kind[Mapping[str, Any]]):
    """A value for each of several places.

    Parameters
    ----------
    of : Kind
        Of the values.
    place : str
        What places are: ``region``, ``provider``, or both.
    everywhere : str, optional
        The place that a word without ``=`` is for.
    """

    name = "by_place"
    repeated = True

    def __init__(self, of: Kind[Any], place: str, *, everywhere: str | None = None) -> None:
        self.of, self.place, self.everywhere = of, place, everywhere
        self.metavar = f"{'WHERE' if ' ' in place else place.upper()}={of.metavar}"
        self.accepts = Mapping[str, of.accepts]  # type: ignore[name-defined]

    def read(self, value: Any, field: str) -> dict[str, Any]:
        """Return place to value."""
        if not isinstance(value, Mapping):
            if not (hasattr(value, "items") and hasattr(value, "index")):  # no series either
                raise InputError(field, f"must map each {self.place} to a value", value=value)
        elif not value:
            return {}
        found = {
            read_name(place, field): self.of.read(item, f"{field} {place}")
            for place, item in value.items()
        }
        if len(found) > MOST_PLACES:
            raise InputError(field, f"must be at most {MOST_PLACES}", value=len(found))
        return found

    def read_words(self, words: Sequence[str], field: str) -> dict[str, Any]:
        """Return place to value, from words such as ``PLACE=VALUE``."""
        pairs = assignments(words, field, self.everywhere)
        return self.read(
            {p: self.of.read_words([w], f"{field} {p}") for p, w in pairs.items()}, field
        )

    def to_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object."""
        return {place: self.of.to_json(item) for place, item in value.items()}

    def schema(self) -> dict[str, Any]:
        """Return the schema of an object."""
        return {
            "type": "object",
            "additionalProperties": self.of.schema(),
            "propertyNames": Region().schema(),
            "maxProperties": MOST_PLACES,
        }

    def described(self) -> dict[str, Any]:
        """Return what the places and the values are."""
        return {"place": self.place, "of": {"kind": self.of.name, **self.of.described()}}


class AnswerDocument(Kind[Any]):
    """An answer: the object, its document, or its JSON.

    Parameters
    ----------
    what : str
        Such as ``a plan``, for errors.
    """

    name, metavar = "document", "FILE"
    accepts = None

    def __init__(self, what: str) -> None:
        self.what = what

    def read(self, value: Any, field: str) -> Any:
        """Return the object, or its document."""
        found = value
        remedy = "Give what was answered: the object, or its JSON."
        if isinstance(value, str):
            try:
                found = json.loads(value)
            except (ValueError, RecursionError) as fault:
                raise InputError(field, f"is not JSON: {fault}", remedy=remedy) from None
        if not isinstance(found, Mapping) and not hasattr(found, "model_dump"):
            raise InputError(
                field, f"is not {self.what}", value=type(found).__name__, remedy=remedy
            )
        return found

    def to_json(self, value: Any) -> Any:
        """Return the document."""
        return dict(value) if isinstance(value, Mapping) else value.model_dump("json")

    def schema(self) -> dict[str, Any]:
        """Return the schema of any object."""
        return {"type": "object"}


def list_schema(items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def object_schema(
    title: str, properties: dict[str, Any], required: Iterable[str], **more: Any
) -> dict[str, Any]:
    """Return the schema of an object that knows no other keys."""
    return {
        "type": "object",
        "title": title,
        **more,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def check_count(count: int, least: int, most: int, field: str) -> None:
    """Refuse fewer or more of something than are allowed."""
    if not least <= count <= most:
        bound = f"at least {least}" if count < least else f"at most {most}"
        raise InputError(field, f"must be {bound}", value=count)


def read_name(value: Any, field: str) -> str:
    """Return a name without the space around it."""
    if not isinstance(value, str):
        raise InputError(field, "must be a name", value=value)
    name = value.strip()
    if not 0 < len(name) <= MOST_NAME:
        problem = "is empty" if not name else f"is longer than {MOST_NAME} characters"
        raise InputError(field, problem, value=value)
    return name


def assignments(words: Sequence[str], field: str, everywhere: str | None) -> dict[str, str]:
    """Read words such as ``WHERE=VALUE``; a bare value is for `everywhere` where allowed."""
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
