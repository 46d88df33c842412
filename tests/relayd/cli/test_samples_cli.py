"""``relayd samples``: who contradicts whom, and what an operator does about it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from probes.samples import Quarantined, Sample
from relayd.store import open_store
from relayd.store.changes import this_user
from relayd.store.samples.ingest import Batch, append, ingest
from tests.relayd.conftest import Outcome

SRC, DST = "aws:us-east-1", "aws:sa-east-1"


def test_disputed_samples_are_named_and_retracted_after_consent(
    relayd: Callable[..., Outcome], tmp_path: Path
) -> None:
    db, now_s = str(tmp_path / "relayd.db"), time.time()
    own = [
        Sample(SRC, DST, "aggregate_mbps", 4900.0 + n, now_s - n * 86400, "iperf3", 64, 10.0, True)
        for n in range(1, 9)
    ]
    false = [sample._replace(value=50.0, measured_at_s=now_s) for sample in own]
    false += [sample._replace(dst="aws:us-west-2", value=300.0) for sample in own]
    with open_store(db, mode="create") as store:
        append(store, own, "campaign 1")
        ingest(store, Batch("service", "live", reporter="mallory", address="192.0.2.7"), false)
    chosen = ("--token", "mallory", "--db", db)

    refused = relayd("samples", "retract", *chosen)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "9 samples to retract" in refused.out
    assert f"{SRC} > aws:us-west-2" in refused.out
    confirmed = relayd("samples", "confirm", "--dst", "aws:us-west-2", *chosen, "--yes")
    assert "8 samples confirmed" in confirmed.out

    (row,) = json.loads(relayd("samples", "list", "--disputed", "--db", db, "--json").out)[
        "disputed"
    ]
    assert (row["by"], row["samples"], row["counts"]) == ("token mallory", "1 of 1", "no")
    plan = json.loads(relayd("plan", SRC, DST, "--db", db, "--json").out)
    assert plan["direct"]["throughput_gbps"] > 4

    done = relayd("samples", "retract", *chosen, "--yes", "--reason", "it lies")
    assert "9 samples retracted." in done.out
    assert "Snapshot " in done.out
    assert relayd("samples", "list", "--disputed", "--db", db).out == "None.\n"
    told = json.loads(relayd("samples", "decisions", "--db", db, "--json").out)["decisions"]
    who, selection = this_user(), {"token": "mallory"}
    assert [(each["decision"], each["by"], each["samples"]) for each in told] == [
        ("retract", who, 9),
        ("confirm", who, 8),
    ]
    assert (told[0]["reason"], told[0]["selection"]) == ("it lies", selection)
    changes = json.loads(relayd("store", "changes", "--db", db, "--json").out)["changes"]
    assert [(each["action"], each["who"]) for each in changes[:2]] == [
        ("samples retract", who),
        ("samples confirm", who),
    ]
    assert relayd("samples", "retract", "--db", db, "--yes").code == 2


def test_what_is_in_quarantine_is_accepted_or_rejected_after_consent(
    relayd: Callable[..., Outcome], tmp_path: Path
) -> None:
    db = str(tmp_path / "relayd.db")
    own = Sample(SRC, DST, "rtt_ms", 115.0, time.time() - 9000, "ping")
    apart = [
        Quarantined(
            own._replace(value=1.5, measured_at_s=own.measured_at_s + n), "faster than light"
        )
        for n in range(1, 4)
    ]
    with open_store(db, mode="create") as store:
        append(store, [own])
        ingest(store, Batch("a.csv", "csv"), apart)

    refused = relayd("samples", "accept", "1", "2", "--db", db)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "2 samples to accept" in refused.out
    assert f"{SRC} > {DST}" in refused.out
    done = relayd("samples", "accept", "1", "2", "--db", db, "--yes", "--reason", "a tunnel")
    assert "`relayd samples retract --batch 3` takes them back" in done.out
    assert "Snapshot " in done.out
    rejected = json.loads(relayd("samples", "reject", "3", "--db", db, "--yes", "--json").out)
    assert (rejected["done"], rejected["changed"], rejected["batch"]) == (True, [], None)
    again = relayd("samples", "reject", "3", "--db", db, "--yes")
    assert (again.code, "was rejected before" in again.err) == (2, True)
    assert relayd("samples", "accept", "x", "--db", db, "--yes").code == 2
    for words in (("accept", "9" * 23), ("retract", "--batch", "9" * 23)):
        large = relayd("samples", *words, "--db", db, "--yes")
        assert (large.code, "is too large" in large.err) == (2, True)
    assert relayd("samples", "quarantine", "--db", db).out == "None.\n"
    for state, numbers in (("accepted", [2, 1]), ("rejected", [3])):
        shown = relayd("samples", "quarantine", "--state", state, "--db", db, "--json").out
        rows = json.loads(shown)["quarantine"]
        assert [row["number"] for row in rows] == numbers
        because = "a tunnel" if state == "accepted" else ""
        assert {(row["decided by"], row["because"]) for row in rows} == {(this_user(), because)}
    changes = json.loads(relayd("store", "changes", "--db", db, "--json").out)["changes"]
    assert [each["action"] for each in changes[:2]] == ["samples reject", "samples accept"]
