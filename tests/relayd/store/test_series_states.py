"""Snapshots of what is new: the same as those of all samples, to the last digit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count, permutations
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.estimation.current_samples import MOST_JUDGED, LinkShift
from probes.estimation.series_state import SeriesState, series_state
from probes.samples import Metric, Reported, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import estimated, make_snapshot
from relayd.snapshots.gathering import FaultySeries, gathered
from relayd.store import Store, open_store
from relayd.store.events import Events
from relayd.store.samples.decisions import Selection, decide
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.samples.new_samples import samples_of_series
from relayd.store.samples.reading import SampleNames, StoredSample
from relayd.store.samples.retention import compact
from relayd.store.samples.series_states import SeriesStates, StatesHead
from tests.properties import examples
from tests.relayd.store.engines import PostgresqlSpot

REGIONS = ("aws:us-east-1", "aws:sa-east-1", "gcp:us-east1", "gcp:europe-west1")
_WHOLE = load_catalogue()
# Of few regions: a snapshot of all takes a hundred times as long.
CATALOGUE = replace(_WHOLE, regions={name: _WHOLE.regions[name] for name in REGIONS})
NOW_S, EVERY_S = 1.79e9, 600.0
DAY_S = 86400.0


def _tests(
    values: list[float],
    *,
    first: int = 0,
    src: str = REGIONS[0],
    dst: str = REGIONS[1],
    metric: Metric = "aggregate_mbps",
    **more: Any,
) -> list[Sample]:
    times = (NOW_S + (first + n) * EVERY_S for n in count())
    return [
        Sample(src, dst, metric, value, at_s, "iperf3", 64, 10.0, True)._replace(**more)
        for at_s, value in zip(times, values, strict=False)
    ]


def _was_resumed(store: Store) -> bool:
    """Whether the next snapshot can be made of states."""
    return gathered(store, CATALOGUE, through=store.samples.last_id()).instead_of is not None


def _made(store: Store, *, anew: bool = False) -> str:
    """Make a snapshot; return what it says of links, sites and changes of level."""
    shifts: list[LinkShift] = []
    made = make_snapshot(store, CATALOGUE, on_shift=shifts.append, anew=anew)
    assert made
    links, others = store.snapshots.links(made.id), store.snapshots.others(made.id)
    return repr((list(links), list(others), store.snapshots.sites(made.id), shifts))


def _made_of_all(store: Store) -> str:
    """Make the same of all samples."""
    return _made(store, anew=True)


_batches = st.lists(
    st.tuples(
        st.lists(st.sampled_from([4000.0, 4010.0, 4100.0, 900.0, 9e6]), min_size=1, max_size=6),
        st.integers(1, 60),  # how often these values come, one after the other
        st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 3)]),
        st.sampled_from(["aggregate_mbps", "per_flow_mbps", "rtt_ms", "egress_cap_mbps"]),
        st.sampled_from(["", "ana", "bob"]),  # the own prober's, or a token's
        st.sampled_from([None, "public", "private"]),
        st.sampled_from(["", "m5.8xlarge", "n2-standard-32"]),
        st.booleans(),  # later than all others, or among them
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=examples(10))
@given(_batches)
def test_a_snapshot_of_what_is_new_is_that_of_all_samples(batches: list[Any]) -> None:
    with TemporaryDirectory() as folder, open_store(f"{folder}/s.db", mode="create") as store:
        later = 0
        for values, times, (src, dst), metric, reporter, address, vm, is_late in batches:
            samples = _tests(
                values * times,
                first=later if is_late else 3,
                src=REGIONS[src],
                dst=REGIONS[dst],
                metric=metric,
                address=address,
                src_vm=vm,
            )
            later += len(samples)
            ingest(store, Batch("service", "live", reporter=reporter), samples)
            resumed = _made(store)
        assert _was_resumed(store)
        assert resumed == _made_of_all(store)
        _check_against_samples_one_by_one(store)


def _check_against_samples_one_by_one(store: Store) -> None:
    """Compare the newest snapshot with estimates whose samples were read as objects."""
    made = store.snapshots.latest()
    assert made is not None
    found = estimated(store, CATALOGUE, through=made.samples_through).network
    assert {(link.src, link.dst): link for link in store.snapshots.links(made.id)} == {
        (link.src, link.dst): link for link in found
    }
    assert store.snapshots.sites(made.id) == [
        replace(site, private_network="") for site in found.sites.values()
    ]


_few = st.builds(
    lambda pair, **figures: Sample(REGIONS[pair[0]], REGIONS[pair[1]], **figures, tool="iperf3"),
    st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 3), (0, 0)]),
    metric=st.sampled_from(["aggregate_mbps", "per_flow_mbps", "rtt_ms", "loss_pct", "jitter_ms"]),
    value=st.sampled_from([0.5, 3.0, 90.0, 4000.0, 9e6]),  # some are no measurements
    measured_at_s=st.sampled_from([NOW_S, NOW_S + 60.0, NOW_S - 50 * DAY_S, NOW_S + 1e9]),
    connections=st.sampled_from([None, 1, 64]),
    duration_s=st.sampled_from([None, 5.0, 60.0]),
    warmed_up=st.booleans(),
    src_vm=st.sampled_from(["", "m5.8xlarge", "n2-standard-32"]),
    detail=st.sampled_from(["", '{"ramp": {"1": 300, "64": 310}}']),
    address=st.sampled_from([None, "public", "private"]),
    new_level=st.booleans(),
)


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.sampled_from(["", "ana", "bob"]), _few), min_size=1, max_size=40))
def test_series_of_few_samples_are_estimated_as_one_by_one(
    reported: list[tuple[str, Sample]],
) -> None:
    with TemporaryDirectory() as folder, open_store(f"{folder}/s.db", mode="create") as store:
        for reporter, sample in reported:
            ingest(store, Batch("service", "live", reporter=reporter), [sample])
        if make_snapshot(store, CATALOGUE):
            _check_against_samples_one_by_one(store)


def test_states_are_made_again_where_they_no_longer_hold(store: Store) -> None:
    """Samples that are retracted or summarised."""
    many = MOST_JUDGED + 40
    append(store, _tests([4000.0 + n for n in range(many)], src_vm="m5.8xlarge"))
    append(store, _tests([900.0 + n for n in range(20)], dst=REGIONS[2], address="private"))
    _made(store)
    append(store, _tests([4500.0], first=many))
    assert _made(store) == _made_of_all(store)
    assert _was_resumed(store)

    decide(store.database, "retract", Selection(dst=REGIONS[2]), who="ana", reason="a test")
    assert not _was_resumed(store)
    assert _made(store) == _made_of_all(store)
    assert _was_resumed(store)

    append(store, _tests([4500.0], first=many + 1))
    assert compact(store, DAY_S, now_s=NOW_S + 100 * DAY_S).samples
    assert not _was_resumed(store)
    assert _made(store) == _made_of_all(store)


def test_of_a_busy_series_only_the_newest_samples_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of those who reported no more, none."""
    many = 3 * MOST_JUDGED
    ingest(store, Batch("old", "csv"), _tests([3000.0 + n for n in range(40)]))
    append(store, _tests([4000.0 + n % 7 for n in range(many)], first=40))
    _made(store)
    append(store, _tests([4501.0, 900.0]))  # late: they may be older than the newest
    assert _made(store) == _made_of_all(store)
    append(store, _tests([4502.0], first=40 + many))
    read = 0
    stored = SampleNames.stored

    def counted(names: SampleNames, row: Sequence[Any]) -> StoredSample:
        nonlocal read
        read += 1
        return stored(names, row)

    with monkeypatch.context() as patch:
        patch.setattr(SampleNames, "stored", counted)
        resumed = _made(store)
    assert read == MOST_JUDGED + 1
    assert resumed == _made_of_all(store)


def test_what_is_retracted_while_a_snapshot_is_made_takes_no_series_with_it(store: Store) -> None:
    append(store, _tests([4000.0 + n for n in range(60)]))
    through = store.samples.last_id()
    ingest(store, Batch("service", "live", reporter="ana"), _tests([900.0], first=60))
    decide(store.database, "retract", Selection(token="ana"), who="bob", reason="a test")
    found = gathered(store, CATALOGUE, through=through)  # begun before the sample came
    SeriesStates(store.database).save(found.states, found.head, found.instead_of)
    assert _made(store) == _made_of_all(store)


def test_states_that_change_while_they_are_read_are_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, _tests([4000.0 + n for n in range(400)], src_vm="m5.8xlarge"))
    _made(store)
    append(store, _tests([4500.0 + n for n in range(20)], src_vm="m5.4xlarge"))  # late
    head, asked = SeriesStates.head, 0

    def head_before(states: SeriesStates) -> StatesHead | None:
        nonlocal asked
        asked += 1
        found = head(states)
        if asked == 1:  # what was found is no longer so when the states are read
            _made(store)
        return found

    monkeypatch.setattr(SeriesStates, "head", head_before)
    through = store.samples.last_id()
    found = gathered(store, CATALOGUE, through=through)
    assert found.instead_of
    assert found.instead_of.through == through
    assert not found.states


def test_of_two_who_save_states_at_once_the_first_wins(store: Store) -> None:
    append(store, _tests([4000.0 + n for n in range(40)]))
    _made(store)
    append(store, _tests([4500.0], first=40))
    late = gathered(store, CATALOGUE, through=store.samples.last_id())
    append(store, _tests([4600.0], first=41))
    now = _made(store)
    SeriesStates(store.database).save(late.states, late.head, late.instead_of)
    assert _made(store) == now == _made_of_all(store)


def test_a_server_looks_up_each_series_however_many_samples_others_have(
    postgresql_spot: PostgresqlSpot,
) -> None:
    pairs = list(permutations((f"aws:region-{n}" for n in range(12)), 2))
    with open_store(postgresql_spot.where, mode="create") as store:
        rows = (
            Sample(*pairs[n % len(pairs)], "rtt_ms", 30.0 + n * 1e-3, NOW_S + n, "ping")
            for n in range(40_000)
        )
        append(store, list(rows))
        postgresql_spot.outsider("ANALYZE")
        keys = store.database.rows("SELECT DISTINCT src_id, dst_id, metric_id FROM samples")
        values = [value for key in keys for value in (*key, NOW_S + 39_000.0)]
        query = samples_of_series("postgresql", len(keys))
        plan = store.database.rows(f"EXPLAIN {query}", [*values, "", 10**9])
    shown = "\n".join(line for (line,) in plan)
    assert "Seq Scan on samples" not in shown, shown
    assert re.search(r"Index Cond: .*measured_at_s >= ", shown), shown


def test_one_series_that_can_not_be_evaluated_keeps_no_other_from_a_snapshot(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, _tests([4000.0, 4100.0] * 10), "first")
    append(store, without := _tests([3000.0, 3100.0, 3050.0], src=REGIONS[2]), "second")

    def failing(rows: Iterable[Reported], *more: Any) -> SeriesState:
        given = list(rows)
        if given[0].sample.src == REGIONS[0]:
            raise ValueError("strange")
        return series_state(given, *more)

    monkeypatch.setattr("relayd.snapshots.gathering.series_state", failing)
    told: list[FaultySeries] = []
    for number in range(2):  # all samples read, and then what is new
        append(store, new := _tests([3200.0], first=50 + number, src=REGIONS[2]), "more")
        without += new
        made = make_snapshot(store, CATALOGUE, on_left_out=told.append)
        assert made is not None
        link = next(link for link in store.snapshots.links(made.id) if link.src == REGIONS[2])
        assert link.aggregate_gbps.origin.samples == len(without)
    assert [str(one) for one in told] == [
        f"aggregate_mbps of {REGIONS[0]} > {REGIONS[1]} (ValueError: strange)"
    ] * 2
    assert made is not None
    event = Events(store.database).last("snapshot", made.id)
    assert event is not None
    assert event.detail["left_out"] == [str(told[0])]

    monkeypatch.undo()
    append(store, _tests([3200.0], first=60, src=REGIONS[2]), "more")
    last = make_snapshot(store, CATALOGUE)
    assert last is not None
    found = estimated(store, CATALOGUE, through=store.samples.last_id()).network
    assert repr(list(store.snapshots.links(last.id))) == repr(list(found))
