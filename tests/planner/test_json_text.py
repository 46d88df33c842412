"""JSON that others wrote: what is no JSON, or would lose a value, is refused with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fields.json_text import RepeatedValues, read_json

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
