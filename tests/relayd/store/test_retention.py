"""Old samples become small: totals stay, estimates stay, and nothing else may take samples away."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.errors import InputError
from probes.estimation.current_samples import MOST_JUDGED
from probes.metrics import Metric
from probes.samples import Sample
from relayd.snapshots.building import estimated
from relayd.store import Store, open_store
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.samples.retention import Period, compact
from tests.properties import examples
from tests.relayd.building import catalogue_of, ping, rate

_NOW_S = 1.8e9
_DAY_S = 86400.0
_LINKS: tuple[tuple[str, str, Metric, float], ...] = (
    ("aws:us-east-1", "gcp:us-east1", "rtt_ms", 12.0),
    ("gcp:us-east1", "aws:us-east-1", "per_flow_mbps", 900.0),
    ("aws:us-east-1", "azure:eastus", "aggregate_mbps", 4800.0),
)
_CATALOGUE = catalogue_of(*(src for src, *_ in _LINKS), "azure:eastus")


def _series(seed: int, count: int, span_days: float, level_change: bool) -> list[Sample]:
    random = Random(seed)
    found = []
    for src, dst, metric, usual in _LINKS:
        connections = {"aggregate_mbps": 64, "per_flow_mbps": 1}.get(metric)
        for number in range(count):
            share = number / count
            value = usual * random.uniform(0.95, 1.05) * (2 if level_change and share > 0.9 else 1)
            at_s = _NOW_S - span_days * _DAY_S * (1 - share)
            src_vm = "m5.8xlarge" if share < 0.7 and src.startswith("aws") else ""
            test = rate(src, dst, value, at_s, metric=metric, src_vm=src_vm)
            found.append(test._replace(connections=connections))
    return found


def _total(store: Store) -> tuple[int, float]:
    """How many samples there ever were, and the sum of their values."""
    (count, total) = store.database.row(
        "SELECT (SELECT count(*) FROM samples) + (SELECT total(samples) FROM sample_summaries), "
        "(SELECT total(value) FROM samples) + (SELECT total(total) FROM sample_summaries)"
    )
    return int(count), float(total)


def _estimates(store: Store) -> dict[object, object]:
    network = estimated(store, _CATALOGUE, through=store.samples.last_id()).network
    ends = {end for src, dst, *_ in _LINKS for end in (src, dst)}
    links: dict[object, object] = {
        (link.src, link.dst): link for link in network if {link.src, link.dst} <= ends
    }
    return links | {end: network.sites[end] for end in ends}


@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from([3, 70, 300, 700]),
    span_days=st.sampled_from([2.0, 45.0, 400.0]),
    level_change=st.booleans(),
    older_days=st.sampled_from([1.0, 30.0, 90.0]),
    period=st.sampled_from(["day", "hour"]),
)
def test_totals_and_estimates_are_as_before(
    seed: int, count: int, span_days: float, level_change: bool, older_days: float, period: Period
) -> None:
    rows = _series(seed, count, span_days, level_change)
    old = [row for row in rows if row.measured_at_s < _NOW_S - older_days * _DAY_S]
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "relayd.db", mode="create") as store,
    ):
        append(store, rows)
        totals, estimates = _total(store), _estimates(store)
        done = compact(store, older_days * _DAY_S, period=period, now_s=_NOW_S)
        again = _total(store)
        assert again[0] == totals[0] == len(set(rows)) == store.samples.counts().samples
        assert again[1] == pytest.approx(totals[1], rel=1e-12)
        assert _estimates(store) == estimates
        assert done.summaries <= done.samples <= len(old)
        assert done.samples > 0 or count <= MOST_JUDGED or span_days <= older_days + 1
        # What is summarised once stays as it is.
        assert compact(store, older_days * _DAY_S, period=period, now_s=_NOW_S).samples == 0


def test_a_summary_says_what_its_samples_did(store: Store) -> None:
    hour_s = 1.7e9 // 3600 * 3600
    old = [ping("aws:a", "gcp:b", value, hour_s + 10 * value) for value in range(1, 12)]
    newer = [ping("aws:a", "gcp:b", 5.0, _NOW_S - number) for number in range(MOST_JUDGED)]
    append(store, old + newer)
    done = compact(store, 90 * _DAY_S, now_s=_NOW_S)
    assert (done.samples, done.summaries, done.kept) == (11, 1, 0)
    figures = "begin_s, period_s, samples, total, least, p10, median, p90, most"
    (summary,) = store.database.rows(f"SELECT {figures} FROM sample_summaries")
    assert tuple(summary) == (hour_s, 3600.0, 11, 66.0, 1.0, 2.0, 6.0, 10.0, 11.0)
    # A sample of that hour that arrives late gets a row of its own at the next run.
    append(store, [old[0]._replace(value=3.5)])
    assert compact(store, 90 * _DAY_S, now_s=_NOW_S).samples == 1
    rows = store.database.rows("SELECT samples FROM sample_summaries ORDER BY compaction_id")
    assert [tuple(row) for row in rows] == [(11,), (1,)]


def test_imported_files_stay_unless_asked_for(store: Store) -> None:
    rows = [ping("aws:a", "gcp:b", 5.0, 1.7e9 + number) for number in range(MOST_JUDGED + 40)]
    file = Batch("old.csv", "csv", "0" * 64)
    ingest(store, file, rows)
    done = compact(store, 90 * _DAY_S, now_s=_NOW_S)
    assert (done.samples, done.kept) == (0, len(rows))
    assert ingest(store, file, rows).accepted == 0
    asked = compact(store, 90 * _DAY_S, files_too=True, now_s=_NOW_S)
    assert asked.samples == 39  # all but the first
    for age_s in (0.0, -1.0, 3600.0, float("nan")):
        with pytest.raises(InputError, match="at least one day"):
            compact(store, age_s)


def test_samples_leave_on_this_way_only(store: Store) -> None:
    append(store, _series(1, MOST_JUDGED + 50, 300.0, False))
    database = store.database
    for forbidden in (
        "DELETE FROM samples",
        "UPDATE samples SET value = 1",
        "INSERT INTO compactions (at_s, older_than_s) VALUES (1, 1); DELETE FROM samples",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            _in_one_transaction(store, *forbidden.split(";"))
    compact(store, 90 * _DAY_S, now_s=_NOW_S)
    for forbidden in (
        "DELETE FROM samples",
        "DELETE FROM sample_summaries",
        "UPDATE sample_summaries SET samples = samples + 1",
        "DELETE FROM compactions",
        "INSERT INTO sample_summaries SELECT * FROM sample_summaries",
        "UPDATE compactions SET samples = 1",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"append-only|once"):
            database.change(forbidden)
    with pytest.raises(sqlite3.IntegrityError, match="counts what"):
        _in_one_transaction(
            store,
            "INSERT INTO compactions (at_s, older_than_s) VALUES (1, 1)",
            "UPDATE compactions SET samples = 7, summaries = 0 WHERE samples IS NULL",
        )


def _in_one_transaction(store: Store, *statements: str) -> None:
    with store.database.transaction():
        for statement in statements:
            store.database.change(statement)
