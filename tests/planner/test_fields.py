"""Fields of questions: what is read, what is refused, and what is derived from a declaration."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, replace
from math import inf
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.broadcast.request import BroadcastRequest
from planner.fields.demands import demands_gb
from planner.fields.json_text import RepeatedValues, read_json
from planner.fields.kinds import (
    Count,
    Duration,
    Kind,
    Money,
    MoneyPerHour,
    Number,
    Proportion,
    Quantity,
    Rate,
    Volume,
)
from planner.fields.specified import Whole, description_of, field, fields_of, schema_of, specified
from planner.model.errors import InputError
from planner.model.units import chance_text, enough, more_usd_text, parse_volume_gb, rate_text
from planner.placement.request import Machine, ReduceRequest, TasksRequest
from planner.replanning.request import ReplanRequest
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.shuffle.request import ShuffleRequest
from planner.transfer.request import TransferRequest

# A text of each kind, with the number that it means.
WRITTEN: list[tuple[Quantity, str, float]] = [
    (Volume(), "1.5TB", 1500.0),
    (Volume(), "500 GB", 500.0),
    (Volume(), "500G", 500.0),
    (Volume(), "10T", 10_000.0),
    (Duration(), "2h", 7200.0),
    (Duration(), "90s", 90.0),
    (Money(), "$20", 20.0),
    (Money(), "20usd", 20.0),
    (MoneyPerHour(infinite=True), "inf", inf),
    (MoneyPerHour(infinite=True), "20usd/h", 20.0),
    (Rate(), "200mbps", 0.2),
    (Proportion(), "10%", 0.1),
    (Number(), "4", 4.0),
]


@pytest.mark.parametrize(
    ("kind", "text", "number"), WRITTEN, ids=lambda value: getattr(value, "name", None)
)
def test_a_text_means_its_number(kind: Quantity, text: str, number: float) -> None:
    assert kind.validate(text) == pytest.approx(number)
    assert kind.read_words([text]) == pytest.approx(number)


QUANTITIES = st.sampled_from(
    [Volume(), Duration(), Money(), MoneyPerHour(infinite=True), Rate(), Proportion(), Number()]
)


@given(QUANTITIES, st.floats(1e-6, 1e8))
def test_texts_and_numbers_agree_and_json_gives_them_back(kind: Quantity, number: float) -> None:
    read = kind.validate(number, "x")
    assert kind.validate(repr(number), "x") == read == number
    assert kind.validate(kind.to_json(read), "x") == read
    assert kind.validate(kind.text(number), "x") == pytest.approx(number, rel=1e-5)


@given(QUANTITIES, st.floats())
def test_what_is_read_is_within_the_bounds(kind: Quantity, number: float) -> None:
    within = kind.least <= number <= kind.most or (kind.infinite and number == inf)
    if within:
        assert kind.validate(number, "x") == number
    else:
        with pytest.raises(InputError, match=r"^x "):
            kind.validate(number, "x")


@pytest.mark.parametrize("value", [True, None, [], {}, "five", "5 apples", object()])
@pytest.mark.parametrize("kind", [Volume(), Duration(), Count(1, 9)], ids=lambda kind: kind.name)
def test_what_is_no_number_is_refused(kind: Kind, value: object) -> None:
    with pytest.raises(InputError, match=r"^x "):
        kind.validate(value, "x")


@pytest.mark.parametrize(
    ("text", "readings"),
    [("500Gb", ("500GB", "62.5GB")), ("8 Tbit", ("8TB", "1TB")), ("80gibits", ("80GiB", "10GiB"))],
)
def test_a_volume_in_bits_is_refused_with_both_readings(
    text: str, readings: tuple[str, str]
) -> None:
    with pytest.raises(InputError, match="is in bits") as caught:
        Volume().validate(text, "x")
    for reading in readings:
        assert f" {reading} " in str(caught.value)


# ---- requests ------------------------------------------------------------------------------------

REQUESTS = [
    TransferRequest("a", "b"),
    TransferRequest(
        "a",
        "b",
        volume_gb="1TB",
        objective="time",
        time_value_usd_per_h="inf",
        deadline_s="2h",
        budget_usd="$20",
        avoid="provider:azure",
        allow=["continent:EU"],
        vms_in={"a": 2},
        month_to_date_gb={"*": "40TB"},
        vm_types={"aws": "t2.micro"},
        frontier=True,
    ),
    ShuffleRequest({("a", "b"): 3.0, ("b", "c"): "1TB"}, deadline_s=60),
    BroadcastRequest("a", ["b", "c"], relays="ends", margin="20%"),
    ScheduleRequest([{"src": "a", "dst": "b", "volume": "1TB", "deadline": "2h"}], rates="low"),
    ReduceRequest([("a", 3), {"region": "b", "gb": "2TB"}], reduce_in="a", budget_usd=0),
    TasksRequest(["m", "r"], [[0, 2], [1, 0]], [{"region": "a", "cpus": 4}], time_limit_s="5s"),
    ReplanRequest({"plan_id": "x"}, moved_gb={("a", "b"): "5GB"}, elapsed_s="10min"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_json_gives_a_request_back(request_: Any) -> None:
    again = type(request_).from_json(request_.to_json())
    assert again == request_
    assert hash(again) == hash(request_)
    assert replace(request_) == request_


def test_texts_names_and_one_rule_are_read() -> None:
    asked = REQUESTS[1]
    assert isinstance(asked, TransferRequest)
    assert (asked.volume_gb, asked.deadline_s, asked.budget_usd) == (1000.0, 7200.0, 20.0)
    assert asked.avoid == ("provider:azure",)
    assert asked.to_json()["time_value_usd_per_h"] == "inf"
    machine = TasksRequest({"m": 1}, {}, [{"region": "a", "cpus": 4}]).machines
    assert machine == (Machine("vm1", "a", 4.0),)
    demands = ShuffleRequest(demands=[{"src": "a", "dst": "b", "volume_gb": 1}])  # type: ignore[call-arg]
    assert demands.demands_gb == {("a", "b"): 1.0}
    (named,) = ScheduleRequest([{"name": "n", "src": "a", "dst": "b", "gb": 1}]).transfers
    assert named == TimedTransfer("n", "a", "b", 1.0)
    without_units: dict[str, Any] = {"volume": "1TB", "deadline": "2h"}
    whole = TransferRequest("a", "b", volume_gb=1000, deadline_s=7200)
    assert TransferRequest("a", "b", **without_units) == whole


@pytest.mark.parametrize(
    ("given_", "field_", "words"),
    [
        ({}, "dst", "Missing dst. For example: sa"),
        ({"dst": "b", "volum_gb": 1}, "volum_gb", "Did you mean `volume_gb`"),
        ({"dst": "b", "colour": 1}, "colour", "Fields are src, dst"),
        ({"dst": "b", "src": "c"}, "src", "twice"),
        ({"dst": "b", "volume": 5}, "volume", "Write volume='500GB', or volume_gb for a number"),
        ({"dst": "b", "volume": "1TB", "volume_gb": 5}, "volume_gb", "given twice"),
        ({"dst": "b", "volume_gb": "1 apple"}, "volume_gb", "unknown unit"),
        ({"dst": "b", "volume_gb": 1e10}, "volume_gb", "at most"),
        ({"dst": "b", "volume_gb": None}, "volume_gb", "number"),
        ({"dst": "b", "vms": 1.5}, "vms", "whole number"),
        ({"dst": "b", "vms_in": {"a": 0}}, "vms_in a", "1 or more"),
        ({"dst": "b", "avoid": 5}, "avoid", "list of names"),
        ({"dst": "b", "frontier": "maybe"}, "frontier", "true or false"),
        ({"dst": "b", "objective": "beauty"}, "objective", "'value', 'time', 'cost' or 'latency'"),
    ],
)
def test_what_is_wrong_is_named(given_: dict[str, Any], field_: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        TransferRequest("a", **given_)
    assert caught.value.field == field_


def test_rules_are_not_taken_for_regions() -> None:
    with pytest.raises(InputError, match="regions for the planner"):
        _ = TransferRequest("a", "b", avoid="provider:azure").forbidden


# ---- derived -------------------------------------------------------------------------------------


@specified
class Wider(TransferRequest):
    """A transfer with a field more."""

    _: KW_ONLY
    shades_of_grey: Annotated[Whole, Count(1, 50), "Shades."] = field(default=7, group="goal")


def test_one_more_field_is_everywhere() -> None:
    asked = Wider("a", "b", shades_of_grey="9")
    assert asked.shades_of_grey == 9
    assert asked.to_json()["shades_of_grey"] == 9
    shown = schema_of(Wider)["properties"]["shades_of_grey"]
    assert (shown["maximum"], shown["default"], shown["description"]) == (50, 7, "Shades.")
    assert {"shades_of_grey", "volume_gb"} <= {one["name"] for one in description_of(Wider)}
    assert set(fields_of(Wider)) == {*fields_of(TransferRequest), "shades_of_grey"}


@pytest.mark.parametrize(
    "request_", dict.fromkeys(type(one) for one in REQUESTS), ids=lambda one: one.__name__
)
def test_every_field_has_a_help_and_an_example_that_is_read(request_: type) -> None:
    for one in fields_of(request_).values():
        assert one.help
        assert one.group or one.deprecated
        is_word = one.option and one.option.startswith("--") and one.kind.metavar != "FILE"
        if one.example and is_word:
            one.read_words([one.example])


def test_none_stands_for_no_transfers_beside_a_schedule() -> None:
    existing = {"transfers": [], "now_s": 5.0}
    asked = ScheduleRequest(None, existing=existing)
    assert (asked.transfers, asked.now_s) == ((), 5.0)
    with pytest.raises(InputError, match="Missing transfers"):
        ScheduleRequest(None)


# ---- JSON that others wrote ----------------------------------------------------------------------


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_json_is_read_as_it_is(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value).encode()):
        assert read_json(text) == value == read_json(text, keep_repeated=True)


@given(st.text(max_size=3), VALUES, VALUES, st.booleans())
def test_a_key_that_comes_twice_is_noticed_wherever_it_is(
    key: str, one: Any, other: Any, inside: bool
) -> None:
    name = json.dumps(key)
    text = f"{{{name}: {json.dumps(one)}, {name}: {json.dumps(other)}}}"
    text = f'[{{"a": [{text}]}}]' if inside else text
    with pytest.raises(ValueError, match=r"names the key .* twice"):
        read_json(text)
    found = read_json(text, keep_repeated=True)
    found = found[0]["a"][0] if inside else found
    assert found == {key: one if one == other else [one, other]}
    assert isinstance(found[key], RepeatedValues) is (one != other)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes, line 1 column 2"),
        (b'{"a": "\xff"}', r"is not UTF-8 \(byte 7\)"),
        ('{"a": -Infinity}', "holds -Infinity, which is no JSON number"),
        ("[" * 100_000, "nests too deep"),
        ("9" * 5000, "holds a whole number of thousands of digits"),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason(text: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        read_json(text)


# ---- tables of demands ---------------------------------------------------------------------------


A, B, C = "aws:us-east-1", "gcp:us-east1", "azure:eastus"
LONG = pd.DataFrame({"src": [A, A, B], "dst": [B, C, A], "volume_gb": [1.0, 2.0, 4.0]})
WIDE = LONG.pivot_table(index="src", columns="dst", values="volume_gb")
RIGHT = {(A, B): 1.0, (A, C): 2.0, (B, A): 4.0}


def test_tables_of_pandas_and_numpy() -> None:
    for table in (
        LONG,
        LONG[["volume_gb", "dst", "src"]],
        LONG.rename(columns={"src": "source", "dst": "destination", "volume_gb": "gb"}),
        LONG.groupby(["src", "dst"])["volume_gb"].sum(),
        LONG.groupby(["dst", "src"]).sum(),
        WIDE,
        WIDE.reset_index(),
        WIDE.rename_axis(None).reset_index(),
        WIDE.stack().dropna().rename_axis([None, None]),
        LONG.to_records(index=False),
    ):
        assert demands_gb(table) == RIGHT
        assert ShuffleRequest(table).demands_gb == RIGHT


@pytest.mark.engines
def test_tables_of_dask() -> None:
    dask = pytest.importorskip("dask.dataframe")
    assert demands_gb(dask.from_pandas(LONG, npartitions=2)) == RIGHT


def test_tables_of_arrow_and_xarray() -> None:
    arrow = pytest.importorskip("pyarrow").Table
    assert demands_gb(arrow.from_pandas(LONG)) == RIGHT
    assert demands_gb(arrow.from_pandas(WIDE.reset_index(), preserve_index=False)) == RIGHT
    xarray = pytest.importorskip("xarray")
    square = WIDE.reindex(index=[A, B, C], columns=[A, B, C])
    for cells, dims in ((square, ("src", "dst")), (square.T, ("dst", "src"))):
        labels = {dims[0]: [A, B, C], dims[1]: [A, B, C]}
        assert demands_gb(xarray.DataArray(cells.to_numpy(), dims=dims, coords=labels)) == RIGHT


@given(
    st.integers(2, 5).flatmap(lambda n: st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n))
)
def test_all_shapes_of_one_table_say_the_same(cells: list[int]) -> None:
    size = round(len(cells) ** 0.5)
    names = [f"aws:r{n}" for n in range(size)]
    matrix = np.array(cells, float).reshape(size, size)
    moved = matrix * (1 - np.eye(size))
    if not moved.any():
        with pytest.raises(InputError, match="nothing"):
            demands_gb(matrix, names)
        return
    wide = pd.DataFrame(matrix, index=names, columns=names)
    found = demands_gb(matrix, names)
    assert sum(found.values()) == moved.sum()
    for shape in (wide, wide.stack(), wide.reset_index(), wide.T.to_dict()):
        assert demands_gb(shape) == found


def test_what_is_wrong_in_a_table_is_told() -> None:
    wrong: dict[str, Any] = {
        "must be a finite number": LONG.assign(volume_gb=[1, 2, float("nan")]),
        "must be a finite number of GB": np.array([[0, float("nan")], [1, 0]]),
        "is given twice": pd.concat([LONG, LONG]),
        "must be rows of src, dst and volume_gb": LONG.assign(priority=1),
        "must have shape": np.array([[0, 1, 2]]),
        "is not a number of GB": [(A, B, 10**400)],
    }
    for said, table in wrong.items():
        with pytest.raises(InputError, match=said):
            demands_gb(table, [A, B])


# ---- quantities as people write and read them ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "volume_gb"),
    [("2,000 GB", 2000.0), ("1,234,567.5MB", 1234.5675), ("2_000GB", 2000.0), ("500G", 500.0)],
)
def test_digits_may_be_grouped(text: str, volume_gb: float) -> None:
    assert parse_volume_gb(text) == pytest.approx(volume_gb)


@pytest.mark.parametrize("text", ["2,00GB", "2,5TB", ",000GB", "1,0000GB"])
def test_other_commas_are_no_groups(text: str) -> None:
    with pytest.raises(InputError):
        parse_volume_gb(text)


def test_what_is_enough_is_rounded_up_to_its_words() -> None:
    assert enough(64_001) == ("17 h 47 min (64020 s)", 64_020)
    assert enough(60.2) == ("1 min 01 s (61 s)", 61)
    assert enough(64_020)[0] == "17 h 47 min (64020 s)"
    assert enough(200_000)[0] == "2.4 days (207360 s)"


def test_small_rates_small_chances_and_money_read_well() -> None:
    assert rate_text(0.00813) == "8.13 Mbit/s"
    assert rate_text(38.72) == "38.72 Gbit/s"
    assert rate_text(32.06, 39.9) == "32.06 to 39.90 Gbit/s"
    assert [chance_text(p) for p in (0.0, 0.58, 1.0)] == ["under 1%", "58%", "over 99%"]
    assert more_usd_text(-11.51) == "and saves $11.51"
    assert more_usd_text(0.001) == "at the same cost"
