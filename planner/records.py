"""Records and named tuples that cost little to define: ``dataclass``, ``NamedTuple`` and company.

The standard library writes the methods of each dataclass and named tuple as text, compiles it when
the class is made, and loads a parser of Python for that: a third of the time in which a command
line answered. What is here is used in the same way and does the same; to type checkers it *is* the
standard library's.

- Objects are made by code that all classes share, until a class has made :data:`FEW`: it then gets
  the constructor that the standard library compiles, which is quicker.
- That constructor, and what is seldom needed (``repr``, signatures, errors of wrong calls, fields
  as :mod:`dataclasses` describes them), comes from the class's *twin*: a class of the standard
  library with the same fields, made when first asked for. So the functions of :mod:`dataclasses`,
  pydantic and orjson take records for dataclasses.

Annotations must be texts (``from __future__ import annotations``), and what a record is derived
from is a record, too. There are no ``order``, ``hash``, ``metadata`` and ``InitVar``.
"""

from __future__ import annotations

from collections import _tuplegetter, namedtuple  # type: ignore[attr-defined]
from functools import cached_property
from itertools import repeat
from operator import attrgetter, itemgetter

TYPE_CHECKING = False  # to type checkers true; `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

FEW = 4000
"""How many objects of a class are made before it gets a compiled constructor."""

_NONE: Any = object()
_place = object.__setattr__


class Stated:
    """A field as a record's class states it; see :func:`dataclasses.field`."""

    _OPTIONS = ("default", "default_factory", "init", "repr", "compare", "kw_only")
    name = type = ""

    def __init__(
        self,
        *,
        default: Any = _NONE,
        default_factory: Any = _NONE,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - what dataclasses call it
        compare: bool = True,
        kw_only: bool = False,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare, self.kw_only = init, repr, compare, kw_only

    @property
    def has_default(self) -> bool:
        """Whether its value need not be given."""
        return self.default is not _NONE or self.default_factory is not _NONE

    def value(self) -> Any:
        """Return the default; ``_NONE`` if there is none."""
        return self.default if self.default_factory is _NONE else self.default_factory()

    def for_twin(self) -> Any:
        """Return the field as the standard library has it."""
        from dataclasses import field

        options = {name: getattr(self, name) for name in self._OPTIONS}
        return field(**{name: value for name, value in options.items() if value is not _NONE})


class Shape:
    """What the objects of a class hold, and how they are made.

    Attributes
    ----------
    fields : mapping of str to Stated
        All, by name and in order.
    """

    def __init__(self, cls: Any, fields: Mapping[str, Stated], make_twin: Callable[..., Any]):
        self.cls, self.fields, self._make_twin = cls, fields, make_twin

    @cached_property
    def twin(self) -> Any:
        """A class of the standard library with the same fields."""
        return self._make_twin(self)

    @cached_property
    def initial(self) -> list[Stated]:
        """The fields that the constructor takes, in order."""
        initial = [one for one in self.fields.values() if one.init]
        return sorted(initial, key=lambda one: one.kw_only)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """Parameters of the constructor: first those that may be given by position."""
        return tuple(one.name for one in self.initial)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Those that may be given by position."""
        return tuple(one.name for one in self.initial if not one.kw_only)

    @cached_property
    def count(self) -> int:
        """How many there are, where all may be given by position; else -1."""
        return len(self.given) if self.given == self.positional else -1

    @cached_property
    def kept(self) -> list[Stated]:
        """The fields that begin with their defaults whatever the constructor is given."""
        return [one for one in self.fields.values() if not one.init and one.has_default]

    @cached_property
    def all(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads all fields."""
        return _reader(self.fields)

    @cached_property
    def compared(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the fields that are compared."""
        return _reader([one.name for one in self.fields.values() if one.compare])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values that parameters have where they are not given, but for those to be made."""
        fields = [one for one in self.initial if one.default is not _NONE]
        return {one.name: one.default for one in fields}

    @cached_property
    def factories(self) -> list[Stated]:
        """The parameters whose values are made where they are not given."""
        return [one for one in self.initial if one.default_factory is not _NONE]

    @cached_property
    def picked(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the parameters in order from a mapping."""
        several = itemgetter(*self.given)
        return several if len(self.given) > 1 else lambda found: (several(found),)

    @cached_property
    def completions(self) -> dict[int, tuple[Any, ...]]:
        """The defaults of all further parameters, by how many are given by position."""
        if self.count < 0 or self.factories:
            return {}
        last = tuple(self.defaults.values())
        return {self.count - n: last[len(last) - n :] for n in range(1, len(last) + 1)}

    def arranged(self, values: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return the values of all parameters in order; None if a call is wrong."""
        if not named and (further := self.completions.get(len(values))) is not None:
            return (*values, *further)
        positional = dict(zip(self.positional, values))  # noqa: B905 - either may be shorter
        if len(positional) < len(values) or not positional.keys().isdisjoint(named):
            return None
        found = {**self.defaults, **positional, **named}
        for one in self.factories:
            if one.name not in found:
                found[one.name] = one.default_factory()
        if len(found) != len(self.given):
            return None
        try:
            return self.picked(found)
        except KeyError:
            return None


def _reader(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads attributes as a tuple."""
    several = tuple(names)
    if len(several) > 1:
        return attrgetter(*several)
    return lambda record: tuple([getattr(record, name) for name in several])


class _FromTwin:
    """An attribute of a class that is read from its twin when asked for."""

    def __init__(self, shape: Shape, read: Callable[[Any], Any], *, inherited: bool) -> None:
        self._shape, self._read, self._inherited = shape, read, inherited

    def __get__(self, instance: object, owner: type) -> Any:
        if owner is self._shape.cls or self._inherited:
            return self._read(self._shape.twin)
        raise AttributeError(f"type object {owner.__name__!r} has no such attribute")


def _signature(twin: Any) -> Any:
    from inspect import signature

    return signature(twin)


# ---- records -------------------------------------------------------------------------------------


class _KwOnly:
    """Marks the fields after it as given by name; see :data:`dataclasses.KW_ONLY`."""


def _dataclass(cls: Any = None, /, *, slots: bool = False, **options: bool) -> Any:
    """Make a record of a class; a decorator, with or without arguments."""

    def made(cls: Any) -> Any:
        options.setdefault("frozen", False)
        fields = _fields_of(cls)
        shape = Shape(cls, fields, lambda shape: _twin_of_record(shape, slots=slots, **options))
        content = _methods(cls, shape, **options)
        if slots and options["frozen"]:
            content["__getstate__"], content["__setstate__"] = _state, _restore
        own = vars(cls)
        if slots:
            inherited = {slot for base in cls.__mro__ for slot in vars(base).get("__slots__", ())}
            left_out = {*fields, "__dict__", "__weakref__"}
            content = {name: own[name] for name in own if name not in left_out} | content
            content["__slots__"] = tuple(name for name in fields if name not in inherited)
            content["__qualname__"] = cls.__qualname__
            shape.cls = type(cls)(cls.__name__, cls.__bases__, content)
            return shape.cls
        for name, one in fields.items():
            if isinstance(own.get(name), Stated):
                if one.default is _NONE:
                    delattr(cls, name)
                else:
                    content[name] = one.default
        for name, value in content.items():
            setattr(cls, name, value)
        return cls

    return made if cls is None else made(cls)


def _fields_of(cls: Any) -> dict[str, Stated]:
    """Return the fields that a class states, after those of its bases."""
    fields: dict[str, Stated] = {}
    for base in reversed(cls.__mro__[1:]):
        if shape := vars(base).get("__shape__"):
            fields.update(shape.fields)
    by_name = False
    for name, kind in vars(cls).get("__annotations__", {}).items():
        if kind == "KW_ONLY":
            by_name = True
        elif not kind.startswith("ClassVar"):
            stated = vars(cls).get(name, _NONE)
            one = stated if isinstance(stated, Stated) else Stated(default=stated)
            if type(one.default).__hash__ is None:
                raise TypeError(f"{cls.__name__}.{name}: its default could be changed")
            one.name, one.type, one.kw_only = name, kind, one.kw_only or by_name
            fields[name] = one
    return fields


def _methods(
    cls: Any,
    shape: Shape,
    *,
    frozen: bool,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - what dataclasses call it
    eq: bool = True,
) -> dict[str, Any]:
    """Return what the class gets; what it has of its own it keeps."""
    found: dict[str, Any] = {}
    if init:
        found["__init__"] = _constructor(cls, shape)
        found["__signature__"] = _FromTwin(shape, _signature, inherited=False)
    if repr:
        found["__repr__"] = _repr
    if eq:
        found["__eq__"] = _eq
    if frozen:
        found["__setattr__"] = found["__delattr__"] = _refuse
    found = {name: method for name, method in found.items() if name not in vars(cls)}
    if eq and vars(cls).get("__hash__") is None:  # Python sets None where there is an `__eq__`
        found["__hash__"] = _hash if frozen else None
    found["__shape__"] = shape
    for name in ("__dataclass_fields__", "__dataclass_params__", "__match_args__"):
        found[name] = _FromTwin(shape, attrgetter(name), inherited=True)
    return found


def _constructor(cls: Any, shape: Shape) -> Callable[..., None]:
    check = hasattr(cls, "__post_init__")
    left = FEW

    def construct(self: Any, *given: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            shape.cls.__init__ = shape.twin.__init__
        values: Sequence[Any] = given
        if named or len(given) != shape.count:
            arranged = shape.arranged(given, named)
            if arranged is None:
                shape.twin.__init__(self, *given, **named)  # raises, with the reason
                return
            values = arranged
        any(map(_place, repeat(self), shape.given, values))  # which returns None: all of them
        for one in shape.kept:
            _place(self, one.name, one.value())
        if check:
            self.__post_init__()

    return construct


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    read = self.__shape__.compared
    return read(self) == read(other)


def _hash(self: Any) -> int:
    return hash(self.__shape__.compared(self))


def _repr(self: Any) -> Any:
    return self.__shape__.twin.__repr__(self)


def _refuse(self: Any, name: str, *value: object) -> None:
    if type(self) is self.__shape__.cls or name in self.__shape__.fields:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
    (object.__setattr__ if value else object.__delattr__)(self, name, *value)


def _state(self: Any) -> tuple[Any, ...]:
    return self.__shape__.all(self)  # type: ignore[no-any-return]


def _restore(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__shape__.fields, state, strict=True):
        _place(self, name, value)


def _twin_of_record(shape: Shape, **options: bool) -> Any:
    from dataclasses import dataclass

    content: dict[str, Any] = {name: one.for_twin() for name, one in shape.fields.items()}
    content["__annotations__"] = _types_of(shape)
    for name in ("__module__", "__qualname__", "__doc__", "__post_init__"):
        if hasattr(shape.cls, name):
            content[name] = getattr(shape.cls, name)
    return dataclass(**options)(type(shape.cls.__name__, (), content))


def _types_of(shape: Shape) -> dict[str, Any]:
    """Return the types of fields, as pydantic needs them; texts where one is for checkers alone.

    Names that modules import for type checkers alone are known here: those of `typing` and of
    :mod:`planner.literals`.
    """
    import typing

    from planner import literals

    names = {"Any": typing.Any, "Literal": typing.Literal, "ClassVar": typing.ClassVar}
    try:
        found = typing.get_type_hints(shape.cls, localns={**vars(literals), **names})
    except NameError:
        return {name: one.type for name, one in shape.fields.items()}
    return {name: found[name] for name in shape.fields}


def _fields(record: Any) -> tuple[Any, ...]:
    """Return the fields of a record, or of a dataclass of the standard library."""
    cls = record if isinstance(record, type) else type(record)
    for base in cls.__mro__:
        if shape := base.__dict__.get("__shape__"):
            return tuple(shape.fields.values())
        if "__dataclass_fields__" in base.__dict__:
            break
    from dataclasses import fields

    return fields(cls)


def _is_dataclass(thing: Any) -> bool:
    cls = thing if isinstance(thing, type) else type(thing)
    return hasattr(cls, "__shape__") or hasattr(cls, "__dataclass_fields__")


def _replace(record: Any, /, **changes: Any) -> Any:
    """Return a record with other values of some fields."""
    for one in _fields(record):
        if one.init and one.name not in changes:
            changes[one.name] = getattr(record, one.name)
    return record.__class__(**changes)


def _asdict(record: Any) -> Any:
    """Return a record, and those in it, as nested dictionaries."""
    from dataclasses import asdict

    return asdict(record)


def _astuple(record: Any) -> Any:
    """Return a record, and those in it, as nested tuples."""
    from dataclasses import astuple

    return astuple(record)


# ---- named tuples --------------------------------------------------------------------------------


class _Tuple(tuple[object, ...]):
    """What all named tuples have; see :func:`collections.namedtuple`."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        return cls(*values)

    def _replace(self, /, **changes: Any) -> Any:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{self.__class__.__name__}({', '.join(shown)})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _TupleMaker(type):
    """Makes a named tuple of a class statement."""

    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        """Return the class; what is derived from it is derived as usual."""
        if not bases:
            return super().__new__(cls, name, bases, content)
        fields = {}
        for field, kind in content.get("__annotations__", {}).items():
            fields[field] = one = Stated(default=content.get(field, _NONE))
            one.name, one.type = field, kind
        shape = Shape(None, fields, _twin_of_tuple)
        getters = {
            field: _tuplegetter(number, f"Alias for field number {number}")
            for number, field in enumerate(fields)
        }
        content |= getters | {"__slots__": (), "__new__": _maker(shape)}
        content["_fields"] = content["__match_args__"] = tuple(fields)
        content["_field_defaults"] = {
            name: one.default for name, one in fields.items() if one.default is not _NONE
        }
        content["__signature__"] = _FromTwin(shape, _signature, inherited=False)
        shape.cls = type(name, (_Tuple,), content)
        return shape.cls


def _maker(shape: Shape) -> Callable[..., Any]:
    count = len(shape.fields)
    left = FEW
    make = tuple.__new__

    def construct(cls: Any, *given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            shape.cls.__new__ = shape.twin.__new__
        values: Sequence[Any] = given
        if named or len(given) != count:
            arranged = shape.arranged(given, named)
            if arranged is None:
                return shape.twin.__new__(cls, *given, **named)  # raises, with the reason
            values = arranged
        return make(cls, values)

    return construct


def _twin_of_tuple(shape: Shape) -> Any:
    defaults = shape.cls._field_defaults.values()
    twin: Any = namedtuple(shape.cls.__name__, shape.given, defaults=defaults)  # type: ignore[misc]
    return twin


# ---- what it is to others ------------------------------------------------------------------------

if TYPE_CHECKING:
    from dataclasses import (
        KW_ONLY,
        asdict,
        astuple,
        dataclass,
        field,
        fields,
        is_dataclass,
        replace,
    )
    from typing import NamedTuple
else:
    dataclass, field, fields = _dataclass, Stated, _fields
    KW_ONLY, is_dataclass, replace = _KwOnly, _is_dataclass, _replace
    asdict, astuple = _asdict, _astuple
    NamedTuple = _TupleMaker("NamedTuple", (), {})

__all__ = [
    "FEW",
    "KW_ONLY",
    "NamedTuple",
    "asdict",
    "astuple",
    "dataclass",
    "field",
    "fields",
    "is_dataclass",
    "replace",
]
