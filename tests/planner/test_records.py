"""Records are what dataclasses are, and named tuples what the standard library makes of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import pickle
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, ClassVar, get_type_hints
from typing import NamedTuple as StandardTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from planner import records
from planner.records import KW_ONLY, NamedTuple, dataclass, field


@dataclass(frozen=True, slots=True)
class Base:
    """What has one figure."""

    figure: float
    later: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Slotted(Base):
    """What has more."""

    shared: ClassVar[int] = 3
    name: str
    tags: dict[str, int] = field(default_factory=dict)
    hidden: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class Open:
    """What keeps what it works out."""

    figure: float
    seen: list[int] = field(default_factory=list, init=False, compare=False)
    _: KW_ONLY
    name: str = "x"

    def __post_init__(self) -> None:
        if self.figure < 0:
            raise ValueError("negative")

    @cached_property
    def double(self) -> float:
        """Twice the figure."""
        return 2 * self.figure


@dataclass
class Changing:
    """What changes."""

    figure: float
    name: str = "x"


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        """Both parts."""
        return f"{self.left}{self.right}"


class StandardPair(StandardTuple):
    """The same of the standard library."""

    left: int
    right: str = "r"


@dataclasses.dataclass(frozen=True, slots=True)
class Derived(Slotted):
    """A dataclass of the standard library, derived from a record."""

    extra: int = 1


def standard(cls: type) -> Any:
    """Return the dataclass of the standard library that a record stands for."""
    return cls.__shape__.twin  # type: ignore[attr-defined]


def outcome(call: Callable[[], object]) -> object:
    """Return what a call gives, as comparable text, or the error that it raises."""
    try:
        return repr(call())
    except (TypeError, ValueError) as error:
        return type(error), str(error)


RECORDS = (Base, Slotted, Open, Changing)
values = st.one_of(st.integers(-2, 2), st.floats(allow_nan=False), st.text(max_size=2))
names = st.sampled_from(["figure", "later", "name", "tags", "hidden", "seen", "left", "right"])
calls = st.tuples(st.lists(values, max_size=5), st.dictionaries(names, values, max_size=4))


@given(st.sampled_from(RECORDS), calls)
def test_a_record_is_made_as_its_dataclass_is(cls: Any, call: tuple[Any, Any]) -> None:
    by_position, by_name = call
    made = outcome(lambda: cls(*by_position, **by_name))
    assert made == outcome(lambda: standard(cls)(*by_position, **by_name))


@given(calls)
def test_a_named_tuple_is_made_as_the_standard_library_does(call: tuple[Any, Any]) -> None:
    by_position, by_name = call
    made = outcome(lambda: Pair(*by_position, **by_name))
    wanted = outcome(lambda: StandardPair(*by_position, **by_name))
    assert str(made).replace("StandardPair", "Pair") == str(wanted).replace("StandardPair", "Pair")


@given(values, values, values)
def test_records_compare_and_hash_by_their_fields(one: Any, other: Any, hidden: Any) -> None:
    for cls in (Slotted, Open, Changing):
        assert (cls(1, name=one) == cls(1, name=other)) == (one == other)
        assert cls(1, name=one) != cls(2, name=one)
    assert hash(Base(one)) == hash(Base(one)) == hash(standard(Base)(one))
    assert hash(Open(1, name=one)) == hash(standard(Open)(1, name=one))
    assert Slotted(1, "x", hidden=hidden) == Slotted(1, "x")
    assert "__hash__" in vars(Changing)
    assert not isinstance(Changing(1), Hashable)
    alike: Any = Slotted(1, "")
    assert alike != Base(1)
    assert alike != 1


def test_constructors_are_the_same_before_and_after_they_are_compiled() -> None:
    @dataclass(frozen=True, slots=True)
    class Often:
        figure: float
        name: str = "x"

    class OftenPair(NamedTuple):
        left: int
        right: str = "r"

    made = [(Often(i, name="y"), OftenPair(i, right="y")) for i in range(records.FEW + 2)]
    assert Often.__init__.__code__.co_varnames == ("self", "figure", "name")
    assert OftenPair.__new__.__code__.co_varnames != ()
    for record, pair in (made[0], made[-1]):
        assert record.name == pair.right == "y"
    assert type(made[-1][0]) is Often
    assert type(made[-1][1]) is OftenPair
    assert Often(made[0][0].figure, name="y") == made[0][0]


def test_frozen_records_stay_as_they_are() -> None:
    for record in (Slotted(1, "x"), Open(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'figure'"):
            record.figure = 2  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'figure'"):
            del record.figure
    assert not hasattr(Slotted(1, "x"), "__dict__")
    assert Open(2).double == 4
    changing = Changing(1)
    changing.figure = 2
    assert changing == Changing(2)
    with pytest.raises(ValueError, match="negative"):
        Open(-1)


def test_mutable_defaults_are_refused() -> None:
    with pytest.raises(TypeError, match="default could be changed"):

        @dataclass
        class Wrong:
            shared: list[int] = []  # noqa: RUF012


@pytest.mark.parametrize(
    "record", [Slotted(1.5, "a", {"b": 2}, later="l"), Open(2.0, name="n"), Changing(1.0), Pair(1)]
)
def test_records_are_copied_pickled_and_replaced(record: Any) -> None:
    for made in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert made == record
        assert type(made) is type(record)
    if isinstance(record, Pair):
        assert record._replace(right="q") == Pair(1, "q") == (1, "q")
        assert record._asdict() == {"left": 1, "right": "r"}
        assert (record.both, Pair._fields, Pair._field_defaults) == (
            "1r",
            ("left", "right"),
            {"right": "r"},
        )
        assert not hasattr(record, "__dict__")
        with pytest.raises(ValueError, match="wrong"):
            record._replace(wrong=1)  # type: ignore[call-arg]
        return
    for replace in (records.replace, dataclasses.replace):
        assert replace(record, figure=9.0).figure == 9.0
        assert replace(record) == record
        with pytest.raises(TypeError, match="wrong"):
            replace(record, wrong=1)


def test_the_standard_library_and_others_take_records_for_dataclasses() -> None:
    record = Slotted(1.5, "a", {"b": 2}, later="l")
    content = {"figure": 1.5, "later": "l", "name": "a", "tags": {"b": 2}, "hidden": 0}
    assert dataclasses.is_dataclass(Slotted)
    assert records.is_dataclass(record)
    assert not records.is_dataclass(Pair(1))
    assert dataclasses.asdict(record) == records.asdict(record) == content
    assert dataclasses.astuple(record) == records.astuple(record)
    assert json.loads(orjson.dumps(record)) == content
    assert TypeAdapter(Slotted).validate_python(content) == record
    assert json.loads(TypeAdapter(Slotted).dump_json(record)) == content
    assert TypeAdapter(Pair).validate_python([1, "q"]) == Pair(1, "q")
    for cls in RECORDS:
        of_standard = dataclasses.fields(cls)
        assert [f.name for f in records.fields(cls)] == [f.name for f in of_standard]
    assert str(inspect.signature(Slotted)) == str(inspect.signature(standard(Slotted)))
    assert inspect.signature(Pair).parameters.keys() == {"left", "right"}
    assert get_type_hints(Slotted)["tags"] == dict[str, int]


def test_dataclasses_may_be_derived_from_records() -> None:
    derived = Derived(1, "x", extra=2)
    assert [f.name for f in records.fields(derived)][-1] == "extra"
    assert dataclasses.replace(derived, extra=3) == records.replace(derived, extra=3)
    assert derived != Slotted(1, "x")
