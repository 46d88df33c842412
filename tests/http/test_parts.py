"""The parts of the service, each by its properties."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from relayd.http import store_access
from relayd.http.access import MOST_CALLERS, RateLimits
from relayd.http.problems import ProblemError
from relayd.http.route import MOST_DEPTH, cursor, position, read_json
from relayd.http.service import AnswerCache
from relayd.store import Store


@given(st.integers(1, 3 * MOST_DEPTH), st.booleans())
def test_depth_is_bounded_and_brackets_in_text_do_not_count(depth: int, in_text: bool) -> None:
    nested = b"[" * depth + b"]" * depth
    if in_text:
        assert read_json(json.dumps(nested.decode()).encode()) == nested.decode()
    elif depth > MOST_DEPTH:
        with pytest.raises(ProblemError, match="deeper"):
            read_json(nested)
    else:
        read_json(nested)


@given(
    st.integers(0, 5000),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 900), st.booleans()), max_size=60),
)
def test_a_cache_gives_back_what_was_kept_and_stays_within_its_bound(
    most: int, steps: list[tuple[int, int, bool]]
) -> None:
    cache = AnswerCache(most)
    last: dict[str, bytes] = {}
    for key, size, keep in steps:
        name = f"k{key}"
        if keep:
            value = last.setdefault(name, bytes(size))
            cache.keep(name, value)
        assert cache.get(name) in (None, last.get(name))
        assert cache.used_bytes <= most
        assert cache.used_bytes >= sum(len(last[k]) for k in last if cache.get(k) is not None)


@given(
    st.floats(0.1, 100),
    st.floats(1, 50),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 2)), max_size=200),
)
def test_nobody_gets_more_than_burst_and_rate_allow(
    per_s: float, burst: float, steps: list[tuple[int, float]]
) -> None:
    limits = RateLimits(per_s, burst)
    now_s = 0.0
    passed = dict.fromkeys(range(4), 0)
    for caller, later_s in steps:
        now_s += later_s
        wait_s = limits.wait_s(caller, now_s)
        if wait_s == 0:
            passed[caller] += 1
        else:
            assert limits.wait_s(caller, now_s + wait_s * 1.000001 + 1e-9) == 0
            passed[caller] += 1
            now_s += wait_s * 1.000001 + 1e-9
        assert passed[caller] <= burst + per_s * now_s + 1e-6


def test_the_fullest_buckets_are_forgotten_before_they_fill_the_memory() -> None:
    limits = RateLimits(1.0, 10.0)
    for _ in range(10):
        assert limits.wait_s("one that floods", 0.0) == 0
    for caller in range(2 * MOST_CALLERS):
        assert limits.wait_s(caller, 0.0) == 0
    assert limits.wait_s("one that floods", 0.0) == pytest.approx(1.0)


@given(st.lists(st.text(alphabet="abc:-1") | st.integers(0, 2**62), min_size=2, max_size=3))
def test_a_cursor_says_where_a_page_ended(parts: list[str | int]) -> None:
    kinds = [type(part) for part in parts]
    assert position(cursor(*parts), *kinds) == parts
    assert position(cursor(parts[0]), kinds[0]) == parts[0]
    for others in ([*kinds, int], [float, *kinds[1:]]):
        with pytest.raises(InputError):
            position(cursor(*parts), *others)


@given(st.text(max_size=50))
def test_what_is_no_cursor_is_refused(text: str) -> None:
    try:
        found = position(text, str, int)
    except InputError:
        return
    assert [type(part) for part in found] == [str, int]


def test_a_store_that_does_not_answer_keeps_nobody_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, begun = threading.Event(), threading.Event()
    written: list[str] = []

    def hang(_: Store) -> None:
        begun.set()
        goes_on.wait()
        written.append("begun before")

    async def story() -> None:
        store = store_access.StoreAccess(tmp_path / "relayd.db")
        assert (store.free_bytes() or 0) > 0
        assert await store.write(lambda found: found.snapshots.latest()) is None
        monkeypatch.setattr(store_access, "LIMIT_S", 0.3)
        hanging = asyncio.create_task(store.write(hang))
        await asyncio.to_thread(begun.wait)
        for waiting in (store.write(lambda _: written.append("left out")), hanging):
            with pytest.raises(ProblemError) as refused:
                await waiting
            assert refused.value.status == 503
        assert 0.3 <= store.silent_s() < 60
        monkeypatch.setattr(store_access, "LIMIT_S", 60.0)
        assert await store.answers(60)  # reading goes on
        goes_on.set()
        await store.write(lambda _: written.append("later"))
        assert store.silent_s() == 0
        await store.close()

    asyncio.run(story())
    assert written == ["begun before", "later"]
