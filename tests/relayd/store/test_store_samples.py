"""Samples: each once, whole files or nothing, and back as they went in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import groupby, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.metrics import CAPS
from probes.samples import Sample, SkippedRow
from relayd.catalogue.loading import load_catalogue
from relayd.history import open_history
from relayd.report.data import ReportData
from relayd.store import Store, open_store
from relayd.store.samples.ingest import Batch, Limits, append, content_digest, ingest
from tests.properties import examples
from tests.relayd.building import ping, rate
from tests.relayd.store.engines import Spot

_A_FILE = Batch("a.csv", "csv", "0" * 64, {"force": False})


def _sample(number: int, **fields: Any) -> Sample:
    src, dst = f"aws:region-{number % 7}", f"gcp:region-{number % 5}"
    return rate(src, dst, 100.0 + number, 1.64e9 + number)._replace(**fields)


_finite = st.floats(0, 1e12)
_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
_samples = st.builds(
    Sample,
    src=st.sampled_from(["aws:a", "aws:b", "azure:ü'; DROP TABLE samples"]),
    dst=st.sampled_from(["aws:a", "gcp:c"]),
    metric=st.sampled_from(["rtt_ms", "per_flow_mbps"]),
    value=st.sampled_from([0.0, 1.5, 1e-300]) | _finite,
    measured_at_s=st.sampled_from([0.0, 1.64e9]) | st.floats(-1e12, 1e12),
    tool=st.sampled_from(["ping", "iperf3"]),
    connections=st.none() | st.integers(1, 128),
    duration_s=st.none() | st.floats(0.1, 1e6),
    warmed_up=st.booleans(),
    src_zone=st.sampled_from(["", "a"]),
    dst_zone=_text,
    src_vm=_text,
    dst_vm=st.sampled_from(["", "m5.8xlarge"]),
    detail=st.sampled_from(["", '{"tier":"PREMIUM"}', '{"tier":"STANDARD"}', "\x01 \u2028"]),
    address=st.sampled_from([None, "public", "private"]),
    new_level=st.booleans(),
    intervals=st.sampled_from([None, 1, 60]),
).filter(lambda one: (one.src == one.dst) == (one.metric in CAPS))


@given(files=st.lists(st.lists(_samples, max_size=12), max_size=5))
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_overlapping_files_make_a_set_of_samples(spot: Spot, files: list[list[Sample]]) -> None:
    where = spot.another().where
    known: set[Sample] = set()
    with open_store(where, mode="create") as store:
        for number, rows in enumerate(files):
            report = ingest(store, Batch(f"{number}", "csv"), rows)
            new = set(rows) - known
            assert (report.accepted, report.duplicates) == (len(new), len(rows) - len(new))
            known |= new
    with open_store(where, mode="read") as store:
        read = list(store.samples.read())
        assert len(read) == len(known) == store.samples.counts().samples
        assert set(read) == known


def test_a_file_twice_leaves_the_database_as_it_was_and_a_grown_one_adds_its_rows(
    store: Store, spot: Spot
) -> None:
    rows = [_sample(number) for number in range(50)]
    rows_and_skips: list[Sample | SkippedRow] = [*rows, SkippedRow(51, "no value"), rows[3]]
    first = ingest(store, _A_FILE, rows_and_skips)
    assert (first.accepted, first.duplicates, first.batch_id) == (50, 1, 1)
    before = spot.dump()
    again = ingest(store, _A_FILE, rows_and_skips)
    assert (again.accepted, again.duplicates, again.batch_id) == (0, 51, None)
    assert again.skipped == first.skipped
    assert spot.dump() == before
    grown = ingest(store, _A_FILE._replace(digest="1" * 64), [*rows, _sample(60)])
    assert (grown.accepted, grown.duplicates) == (1, 50)
    assert [batch.accepted for batch in store.samples.batches()] == [50, 1]


def test_samples_that_differ_in_one_value_are_two(store: Store) -> None:
    others: list[dict[str, Any]] = [
        {"value": 101.5},
        {"measured_at_s": 1.64e9 + 0.5},
        {"connections": None},
        {"connections": 1},
        {"duration_s": None},
        {"warmed_up": False},
        {"tool": "iperf3 3.16"},
        {"src_zone": "b"},
        {"dst_vm": "t3.nano"},
        {"metric": "per_flow_mbps"},
        {"detail": '{"tier":"STANDARD"}'},
        {"address": "private"},
        {"new_level": True},
        {"intervals": 9},
    ]
    rows = [_sample(0), *(_sample(0, **other) for other in others)]
    assert ingest(store, _A_FILE, rows).accepted == len(rows)
    assert set(store.samples.read()) == set(rows)


def test_an_importer_that_fails_midway_leaves_nothing(
    store: Store, spot: Spot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relayd.store.samples.ingest._CHUNK", 500)
    ingest(store, _A_FILE, [_sample(1)])
    before = spot.dump()

    def damaged() -> Iterator[Sample]:
        for number in range(2, 1_200):  # more than two chunks
            yield _sample(number, src=f"new:{number % 100}")
        raise FormatError("big.csv", "ends in the middle of a row")

    with pytest.raises(FormatError):
        ingest(store, _A_FILE, damaged())
    assert spot.dump() == before
    # And the connection is of use again.
    assert ingest(store, _A_FILE, [_sample(2)]).accepted == 1


def test_what_no_measurement_can_be_is_refused(store: Store, spot: Spot) -> None:
    before = spot.dump()
    wrong: list[tuple[str, object]] = [
        *(("value", value) for value in (math.nan, math.inf, -1.0, "fast")),
        *(("measured_at_s", value) for value in (math.nan, -math.inf)),
        *(("connections", value) for value in (-1, 10**30)),
        *(("src", value) for value in ("", "aws:\0")),
        *(("detail", value) for value in ("\udcff", "\0")),
        *(("tool", value) for value in (None, "\0")),
        *(("duration_s", math.inf), ("metric", "speed")),
    ]
    for field, value in wrong:
        with pytest.raises(InputError) as caught:
            ingest(store, _A_FILE, [_sample(1), _sample(2), _sample(3, **{field: value})])
        assert "\n" not in str(caught.value)
    assert spot.dump() == before


def test_the_report_counts_reasons_and_shows_their_first_rows(store: Store) -> None:
    rows: list[Sample | SkippedRow] = [_sample(1)]
    rows += [SkippedRow(number, "failed test") for number in range(10, 30)]
    rows += [SkippedRow(number, f"odd value {number}") for number in range(1000)]
    seen: list[int] = []
    report = ingest(store, _A_FILE, rows, progress=seen.append)

    assert report.skipped["failed test"] == (20, (10, 11, 12, 13, 14))
    assert len(report.skipped) <= 101
    assert sum(rows.total for rows in report.skipped.values()) == 1020
    assert seen[-1] == len(rows)


def test_history_tells_where_each_sample_is_from(store: Store, spot: Spot, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("content")
    pair = {"src": "aws:a", "dst": "aws:b"}
    late, early = _sample(9, **pair), _sample(4, **pair)
    ingest(store, Batch("one.csv", "csv", content_digest(path), {"force": True}), [late])
    through = store.samples.last_id()
    append(store, [early, _sample(5)], "campaign 7")

    history = store.samples.read(src="aws:a", dst="aws:b")

    assert list(history) == [early, late]
    batches = {batch.id: batch for batch in store.samples.batches()}
    assert [batches[number].name for number in history.column("batch_id")] == [
        "campaign 7",
        "one.csv",
    ]
    assert batches[1].digest is not None
    assert len(batches[1].digest) == 64
    assert batches[1].options == '{"force": true}'
    assert list(store.samples.read(src="aws:a", dst="aws:b", through=through)) == [late]
    spelled_out = spot.outsider(
        "SELECT src, dst, metric, value, measured_at, batch FROM measurements WHERE src = 'aws:a'"
    )
    at = "2021-12-20 11:33:29"
    assert ("aws:a", "aws:b", "aggregate_mbps", 109.0, at, "one.csv") in spelled_out


def test_filters(store: Store) -> None:
    rows = [_sample(number) for number in range(100)]
    rows += [row._replace(metric="rtt_ms") for row in rows]
    ingest(store, _A_FILE, rows)
    since = 1.64e9 + 40
    kept: dict[str, tuple[object, Callable[[Sample], bool]]] = {
        "src": ("aws:region-1", lambda row: row.src == "aws:region-1"),
        "dst": ("gcp:region-2", lambda row: row.dst == "gcp:region-2"),
        "metric": ("rtt_ms", lambda row: row.metric == "rtt_ms"),
        "since_s": (since, lambda row: row.measured_at_s >= since),
        "until_s": (since, lambda row: row.measured_at_s < since),
    }
    for name, (value, keeps) in kept.items():
        found = store.samples.read(**{name: value})  # type: ignore[arg-type]
        assert set(found) == set(filter(keeps, rows)), name
    assert not list(store.samples.read(src="nowhere:else"))
    groups = [key for key, _ in groupby((s.src, s.dst, s.metric) for s in store.samples.read())]
    assert len(groups) == len(set(groups))


def test_a_token_may_bring_so_many_series(store: Store) -> None:
    """Samples of series that are known, and commands, it does not concern."""

    def send(token: str, samples: list[Sample], most: int = 6) -> int:
        batch = Batch("service", "live", reporter=token)
        return ingest(store, batch, samples, limits=Limits(series=most)).accepted

    first, second, third = (
        [ping(*pair, 20.0, at_s) for pair in permutations(("x:a", "x:b", "x:c"), 2)]
        for at_s in (1.0, 2.0, 3.0)
    )
    other, private = third[0]._replace(metric="loss_pct"), third[0]._replace(address="private")
    assert send("one", first) == 6
    assert send("one", second) == 6
    for beyond in (other, private):
        with pytest.raises(InputError, match=r"series would be 7, more than the 6 .*'token one'"):
            send("one", [*third, beyond])
    assert store.samples.counts().samples == 12  # nothing of the refused ones
    assert send("two", third) == 6
    assert send("two", [other], most=0) == 1
    assert append(store, [private]).accepted == 1
    assert store.samples.series_by_source() == {"token one": 6, "token two": 7}


def test_no_sample_can_be_changed(store: Store, spot: Spot) -> None:
    ingest(store, _A_FILE, [_sample(1)])
    statements = [
        "UPDATE samples SET value = 1",
        "UPDATE batches SET name = 'other.csv'",
        "UPDATE regions SET name = 'aws:elsewhere' WHERE id = 1",
        *(f"DELETE FROM {table}" for table in ("samples", "batches", "regions", "setups")),
    ]
    if spot.engine == "postgresql":
        statements += ["TRUNCATE samples", "TRUNCATE batches CASCADE"]
    else:
        statements = [text for text in statements if text[-7:] not in ("regions", " setups")]
    for statement in statements:
        with pytest.raises(spot.integrity_error, match="append-only"):
            spot.outsider(statement)


def test_reports_read_what_tools_said_of_tests_that_kept_their_intervals(store: Store) -> None:
    plain = rate("aws:a", "gcp:b", 5.0, 1e9, warmed_up=False)
    told = plain._replace(measured_at_s=2e9, warmed_up=True, detail='{"findings": []}', intervals=9)
    odd = [
        plain._replace(measured_at_s=t, detail=d, intervals=n)
        for t, d, n in (
            (1.5e9, '{"other": "intervals"}', None),
            (1.9e9, '["intervals"]', 3),
            (4e9, '"intervals" no', None),
        )
    ]
    append(store, [plain, told, *odd, plain._replace(metric="per_flow_mbps")], "test")
    read = store.samples.read(metric="aggregate_mbps", details=False)
    assert read.rows["warmed_up"].tolist() == [False, False, False, True, False]
    assert {sample.detail for sample in read} == {""}
    with open_history(store.database.location) as history:
        data = ReportData(history, load_catalogue())
        strange, found = data.tests("aggregate_mbps", "intervals")
        assert strange.read_detail() == {}
        assert (found.src, found.dst, found.measured_at_s) == ("aws:a", "gcp:b", 2e9)
        assert found.read_detail() == {"findings": []}
        later = ReportData(history, load_catalogue(), since_s=2.1e9)
        assert not list(later.tests("aggregate_mbps", "intervals"))
        assert not list(data.tests("per_flow_mbps", "intervals"))
