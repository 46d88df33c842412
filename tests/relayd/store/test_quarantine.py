"""What is kept apart: each sample once, read a page at a time, counted by the kind of fault."""

from __future__ import annotations

import pytest

from planner.model.errors import InputError
from probes.importers.limits import PhysicalGate
from probes.samples import QuarantinedSample, Sample
from relayd.snapshots.building import estimated, make_snapshot
from relayd.snapshots.changes import Effect, effects, effects_of
from relayd.store import Store
from relayd.store.samples.decisions import (
    QuarantineFilter,
    Selection,
    decide,
    quarantine_reasons,
    quarantined,
    selected,
    settle,
    to_decide,
)
from relayd.store.samples.ingest import Batch, append, ingest
from tests.relayd.building import catalogue_of, ping, rate

_ENDS = ("aws:us-east-1", "aws:sa-east-1")
_CATALOGUE = catalogue_of(*_ENDS, "aws:us-west-2")


def test_pages_tell_who_sent_what_and_reasons_are_counted(store: Store) -> None:
    gate = PhysicalGate(_CATALOGUE)
    fast = ping(*_ENDS, 0.001, 1e9)
    wrong = [
        fast,
        fast._replace(metric="egress_cap_mbps", dst=fast.src, value=1e6),
        *[fast._replace(value=100.0, measured_at_s=9e9 + n) for n in range(3)],
    ]
    rows = [QuarantinedSample(sample, str(gate.fault(sample))) for sample in wrong]
    batch = Batch("service", "live", reporter="mallory", address="192.0.2.7")
    assert ingest(store, batch, [*rows, *rows]).quarantined == 5
    assert ingest(store, batch, rows).quarantined == 0
    first = quarantined(store.database, limit=3)
    rest = quarantined(store.database, limit=3, before_id=first[-1].id)
    assert [row.sample for row in (*first, *rest)] == wrong[::-1]
    assert {row[4:7] for row in (*first, *rest)} == {("service", "mallory", "192.0.2.7")}
    own = QuarantineFilter(src=fast.src, dst=fast.src)
    assert len(quarantined(store.database, own, limit=9)) == 1
    assert [tuple(count) for count in quarantine_reasons(store.database)] == [
        ("in the future", 3),
        ("faster than light", 1),
        ("network card", 1),
    ]


def test_what_is_accepted_counts_as_was_foreseen_and_what_is_rejected_stays(store: Store) -> None:
    usual = ping(*_ENDS, 115.0, 1.79e9)
    apart = [
        *(usual._replace(value=20.0, measured_at_s=1.79e9 + 60 * n) for n in range(1, 4)),
        usual._replace(dst="aws:sa-east-1", src="aws:us-west-2", value=0.5),
        usual._replace(measured_at_s=9e9),
    ]
    append(store, [usual])
    ingest(
        store, Batch("service", "live", reporter="b"), [QuarantinedSample(s, "x") for s in apart]
    )
    database = store.database
    numbers = [row.id for row in quarantined(database, limit=9)][::-1]
    samples = to_decide(database, numbers[:4], accepting=True)
    assert samples == apart[:4]
    foreseen = effects_of(store, _CATALOGUE, accepted=samples)
    assert {(one.src, one.dst, one.figure) for one in foreseen} >= {
        ("aws:us-east-1", "aws:sa-east-1", "rtt_ms"),
        ("aws:us-west-2", "aws:sa-east-1", "rtt_ms"),
    }
    before = estimated(store, _CATALOGUE, through=store.samples.last_id()).network
    settle(database, "reject", numbers[:1], who="ana", reason="odd")
    accepted_in = settle(database, "accept", numbers[:4], who="bob", reason="a cable laid in 2026")
    after = estimated(store, _CATALOGUE, through=store.samples.last_id()).network
    assert effects(before, after) == foreseen
    # Also in the snapshot, which reads as few samples as it can.
    made = make_snapshot(store, _CATALOGUE)
    assert made
    found = store.snapshots.network(made.id).usual[usual.src][usual.dst]
    assert found.rtt_ms == after.usual[usual.src][usual.dst].rtt_ms
    assert [row.id for row in quarantined(database, limit=9)] == numbers[4:]
    shown = quarantined(database, QuarantineFilter("accepted"), limit=9)[::-1]
    assert [row.sample for row in shown] == apart[:4]
    assert {row[8:] for row in shown} == {
        ("bob", shown[0].decided_at_s, "a cable laid in 2026", accepted_in)
    }
    for decision, chosen, said in (
        ("accept", numbers[3:4], "was accepted before"),
        ("accept", numbers[4:], "in the future"),
        ("reject", [77], "is not in quarantine"),
    ):
        with pytest.raises(InputError, match=said):
            settle(database, decision, chosen, who="bob", reason="")  # type: ignore[arg-type]
    settle(database, "reject", numbers[4:], who="ana", reason="")
    with pytest.raises(InputError, match="was rejected before"):
        settle(database, "reject", numbers[4:], who="ana", reason="")
    assert decide(database, "retract", {"batch": accepted_in}, who="b", reason="") == 4
    undone = estimated(store, _CATALOGUE, through=store.samples.last_id()).network
    assert effects(before, undone) == []


def test_links_and_caps_that_appear_or_vanish_are_effects_over_either_address(store: Store) -> None:
    private = rate(*_ENDS, 4e3, 1.79e9, address="private")
    public = private._replace(address="public", value=3e3)
    only = ping("dc:one", "aws:sa-east-1", 180.0, 1.79e9)
    append(store, [private, public, only])

    def retracting(selection: Selection) -> dict[tuple[str | None, ...], Effect]:
        ids = selected(store.database, "retract", selection)
        found = effects_of(store, _CATALOGUE, change=("retract", ids))
        return {(one.src, one.dst, one.figure, one.address): one for one in found}

    gone = retracting({"src": "dc:one"})
    rtt = gone["dc:one", "aws:sa-east-1", "rtt_ms", "public"]
    assert rtt.before == pytest.approx(180.0, rel=0.1)
    assert rtt.after is None
    both = retracting({"metric": "aggregate_mbps", "src": "aws:us-east-1"})
    assert {key[3] for key in both if key[:2] == private[:2]} == {"private", "public"}


def test_what_the_store_has_already_is_not_accepted_in_vain(store: Store) -> None:
    twin = Sample(
        *("aws:us-east-1", "aws:sa-east-1", "aggregate_mbps", 4e3, 1.79e9, "iperf3", 8, 10.0, True),
        *("a", "b", "m5.large", "m5.large", '{"a": 1}', "private", True, 3),
    )
    plain = ping(*_ENDS, 1.0, 1.79e9)
    append(store, [twin, plain])
    batch = Batch("service", "live", reporter="b")
    ingest(store, batch, [QuarantinedSample(one, "x") for one in (twin, plain)])
    decide(store.database, "retract", {"metric": "rtt_ms"}, who="ana", reason="")
    for row in quarantined(store.database, limit=9):
        with pytest.raises(InputError, match="in the store already, in batch 1"):
            settle(store.database, "accept", [row.id], who="bob", reason="")
        settle(store.database, "reject", [row.id], who="bob", reason="")
