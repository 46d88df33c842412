"""JSON of a store is read as `json` reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayd.store.json_text import loads

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_JSON)
def test_what_json_writes_is_read(value: object) -> None:
    text = json.dumps(value)
    assert repr(loads(text)) == repr(json.loads(text))  # NaN, too


@pytest.mark.parametrize("text", ['{"a": 1} ', " [1]", "\n0"])
def test_white_space_around_does_not_matter(text: str) -> None:
    assert loads(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} x', "[1,]", '"\n"', "nul"])
def test_what_is_none_is_refused_in_the_same_words(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as found:
        loads(text)
    assert str(found.value) == str(expected.value)
