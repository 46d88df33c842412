"""Retracting, restoring and confirming samples: nothing is removed, and estimates come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planner.model.document import document_of
from planner.model.errors import InputError
from planner.model.network import Network
from probes.estimation import current_samples
from probes.estimation.current_samples import LinkShift
from probes.samples import Sample, Samples
from relayd.snapshots.building import estimated, make_snapshot
from relayd.store import Store
from relayd.store.events import Events
from relayd.store.samples.decisions import decide, decisions, selected
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.samples.retention import compact
from tests.relayd.building import catalogue_of, rate
from tests.relayd.store.engines import Spot

SRC, DST, OTHER = "aws:us-east-1", "aws:sa-east-1", "aws:us-west-2"
CATALOGUE = catalogue_of(SRC, DST, OTHER)
NOW_S, DAY_S = 1.79e9, 86400.0
MALLORY = Batch("service", "live", reporter="mallory", address="192.0.2.7")


def _tests(mbps: float, count: int, dst: str = DST, every_s: float = DAY_S) -> list[Sample]:
    return [rate(SRC, dst, mbps + n, NOW_S - n * every_s) for n in range(count)]


def _snapshot(store: Store) -> str:
    """Return a new snapshot as it is saved, without its name and the time it was made."""
    made = make_snapshot(store, CATALOGUE)
    assert made is not None
    network = store.snapshots.network(made.id)
    return repr((made.as_of, list(network), list(network.sites.values())))


def _network(store: Store) -> Network:
    return estimated(store, CATALOGUE, through=store.samples.last_id()).network


def test_retracting_restores_estimates_to_the_byte(store: Store) -> None:
    append(store, _tests(4900.0, 14), "campaign 1")
    honest = _snapshot(store)
    # On a link that nobody else has measured, where its samples do count.
    false = [*_tests(50.0, 20), *_tests(3500.0, 20, OTHER)]
    ingest(store, MALLORY, false)
    attacked = _snapshot(store)
    assert attacked != honest
    mallory = {"token": "mallory"}
    assert len(selected(store.database, "retract", mallory)) == 40
    through = store.samples.last_id()
    ids = frozenset(selected(store.database, "retract", mallory))
    foreseen = estimated(store, CATALOGUE, through=through, change=("retract", ids)).network

    assert decide(store.database, "retract", mallory, who="ana", reason="it lies") == 40
    assert _snapshot(store) == honest
    assert document_of(_network(store)) == document_of(foreseen)
    # Gone wherever samples are read.
    assert len(store.samples.read(metric="aggregate_mbps")) == 14
    assert not len(store.samples.page(SRC, OTHER, None, after_id=0, limit=9))
    assert len(list(store.samples.read())) == 14
    assert decide(store.database, "retract", mallory, who="ana", reason="again") == 0

    ids = frozenset(selected(store.database, "restore", mallory))
    again = estimated(store, CATALOGUE, through=through, change=("restore", ids)).network
    assert decide(store.database, "restore", mallory, who="bo", reason="it did not") == 40
    assert _snapshot(store) == attacked
    assert document_of(_network(store)) == document_of(again)
    told = [(row.decision, row.who, row.reason, row.samples) for row in decisions(store.database)]
    assert told == [("restore", "bo", "it did not", 40), ("retract", "ana", "it lies", 40)]


def test_each_part_of_a_selection_narrows_it(store: Store) -> None:
    append(store, _tests(4900.0, 3), "campaign 1")
    ingest(store, MALLORY, [*_tests(50.0, 4), *_tests(60.0, 5, OTHER)])
    stated: list[tuple[dict[str, object], int]] = [
        ({"token": "mallory"}, 9),
        ({"address": "192.0.2.7", "dst": OTHER}, 5),
        ({"tool": "iperf3"}, 12),
        ({"src": SRC}, 12),
        ({"src": DST}, 0),
        ({"metric": "rtt_ms"}, 0),
        # Literally: neither a pattern nor another case is meant.
        ({"tool": "iperf"}, 0),
        ({"tool": "iperf%"}, 0),
        ({"tool": "IPERF3"}, 0),
        ({"batch": 1}, 3),
        ({"since_s": NOW_S - DAY_S}, 6),
        ({"since_s": NOW_S - DAY_S, "until_s": NOW_S - 1}, 3),
    ]
    for parts, count in stated:
        found = selected(store.database, "retract", parts)
        assert len(found) == count, parts
    with pytest.raises(InputError, match="names no samples"):
        selected(store.database, "retract", {})


def test_confirmed_samples_are_the_own_probers(store: Store) -> None:
    append(store, _tests(4900.0, 3), "campaign 1")
    ingest(store, MALLORY, _tests(2000.0, 9))
    held = _network(store).link(SRC, DST).aggregate_gbps
    assert held.expected == pytest.approx(4.9, rel=0.05)
    assert held.origin.figures is not None
    assert held.origin.figures.disputed == 9
    decide(store.database, "confirm", {"batch": 2}, who="ana", reason="seen myself")
    found = _network(store).link(SRC, DST).aggregate_gbps
    assert found.expected < 3.0
    assert found.origin.samples == 12


def test_decisions_stay_and_retracted_samples_outlast_retention(store: Store, spot: Spot) -> None:
    rows = _tests(4900.0, 300, every_s=3600.0)
    ingest(store, MALLORY, rows)
    decide(store.database, "retract", {"until_s": NOW_S - 250 * 3600.0}, who="a", reason="")
    before = _snapshot(store)
    assert compact(store, DAY_S, now_s=NOW_S + 400 * DAY_S).samples == 0
    decide(store.database, "restore", {"batch": 1}, who="a", reason="")
    assert len(list(store.samples.read())) == 300
    decide(store.database, "retract", {"until_s": NOW_S - 280 * 3600.0}, who="a", reason="")
    # Of 280 samples, estimates may need 256 and the first to arrive.
    assert compact(store, DAY_S, now_s=NOW_S + 400 * DAY_S).samples in (23, 24)
    assert before
    for statement in (
        "DELETE FROM sample_decisions",
        "UPDATE sample_decisions SET who = 'nobody'",
        "DELETE FROM retracted_samples",
        "UPDATE retracted_samples SET restored_by = NULL",
    ):
        with pytest.raises(spot.integrity_error, match="append-only"):
            spot.outsider(statement)


def test_impossible_samples_of_old_stores_do_not_count(store: Store) -> None:
    good = _tests(4900.0, 14)
    append(store, good, "campaign 1")
    honest = _network(store)
    cap = good[0]._replace(metric="egress_cap_mbps", dst=SRC, value=100_000.0)
    fast = good[0]._replace(metric="rtt_ms", value=0.001, tool="ping")
    late = good[0]._replace(measured_at_s=9e9)
    append(store, [cap, fast, late], "before there was a gate")
    estimation = estimated(store, CATALOGUE, through=store.samples.last_id())
    assert estimation.impossible == 3
    assert document_of(estimation.network) == document_of(honest)
    # Whoever imports with --trust knows better.
    ingest(store, Batch("a.csv", "csv", "0" * 64, {"trust": True}), [cap._replace(value=9e4)])
    trusted = _network(store).sites[SRC].egress_gbps
    assert trusted.expected == pytest.approx(90.0)


def test_one_series_that_can_not_be_evaluated_keeps_no_other_from_a_snapshot(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good = _tests(4900.0, 20)
    append(store, good, "campaign 1")
    honest = _network(store)
    append(store, [one._replace(src=DST, dst=SRC) for one in good], "campaign 2")
    rows_of = current_samples._shifts

    def failing(samples: Samples) -> Iterator[LinkShift]:
        if samples[0].src == DST:
            raise ValueError("strange")
        return rows_of(samples)

    monkeypatch.setattr(current_samples, "_shifts", failing)
    made = make_snapshot(store, CATALOGUE)
    assert made is not None
    told = f"aggregate_mbps of {DST} > {SRC} (ValueError: strange)"
    event = Events(store.database).last("snapshot", made.id)
    assert event is not None
    assert event.detail["left_out"] == [told]
    assert told in caplog.text
    network = _network(store)
    assert network.link(SRC, DST).aggregate_gbps == honest.link(SRC, DST).aggregate_gbps
    back = store.snapshots.network(made.id).usual.link(DST, SRC)
    assert back is not None
    assert back.aggregate_gbps == network.link(DST, SRC).aggregate_gbps
    assert back.aggregate_gbps.source != "measured"
