"""``relayd data samples``: who contradicts whom, and what an operator does about it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from probes.samples import QuarantinedSample
from relayd.store import open_store
from relayd.store.events import this_user
from relayd.store.samples.ingest import Batch, ingest
from tests.relayd.building import ping, rate, stored
from tests.relayd.conftest import Relayd

SRC, DST = "aws:us-east-1", "aws:sa-east-1"


@pytest.mark.slow
def test_disputed_samples_are_named_and_retracted_after_consent(
    relayd: Relayd, tmp_path: Path
) -> None:
    now_s = time.time()
    own = [rate(SRC, DST, 4900.0 + n, now_s - n * 86400) for n in range(1, 9)]
    db = str(stored(tmp_path / "relayd.db", own))
    false = [sample._replace(value=50.0, measured_at_s=now_s) for sample in own]
    false += [sample._replace(dst="aws:us-west-2", value=3000.0) for sample in own]
    with open_store(db, mode="write") as store:
        ingest(store, Batch("service", "live", reporter="mallory", address="192.0.2.7"), false)

    def read(*words: str) -> Any:
        return json.loads(relayd(*words, "--db", db, "--json").out)

    chosen = ("--token", "mallory", "--db", db)
    refused = relayd("data", "samples", "retract", *chosen)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert "9 samples to retract" in refused.out
    assert f"{SRC} > aws:us-west-2" in refused.out
    confirmed = relayd("data", "samples", "confirm", "--dst", "aws:us-west-2", *chosen, "--yes")
    assert "8 samples confirmed" in confirmed.out
    (row,) = read("data", "samples", "list", "--disputed")["disputed"]
    assert (row["by"], row["samples"], row["counts"]) == ("token mallory", "1 of 1", "no")
    assert read("plan", SRC, DST)["direct"]["throughput_gbps"] > 4
    done = relayd("data", "samples", "retract", *chosen, "--yes", "--reason", "it lies")
    assert "9 samples retracted." in done.out
    assert "Snapshot " in done.out
    assert relayd("data", "samples", "list", "--disputed", "--db", db).out == "None.\n"
    told, who = read("data", "samples", "decisions")["decisions"], this_user()
    assert [(each["decision"], each["by"], each["samples"]) for each in told] == [
        ("retract", who, 9),
        ("confirm", who, 8),
    ]
    assert (told[0]["reason"], told[0]["selection"]) == ("it lies", {"token": "mallory"})
    changes = read("data", "store", "changes")["changes"][:2]
    assert [(each["action"], each["who"]) for each in changes] == [
        ("samples retract", who),
        ("samples confirm", who),
    ]
    assert relayd("data", "samples", "retract", "--db", db, "--yes").code == 2


def test_what_is_in_quarantine_is_accepted_or_rejected_after_consent(
    relayd: Relayd, tmp_path: Path
) -> None:
    own = ping(SRC, DST, 115.0, time.time() - 9000)
    db = str(stored(tmp_path / "relayd.db", [own]))
    fast = [own._replace(value=1.5, measured_at_s=own.measured_at_s + n) for n in range(1, 4)]
    with open_store(db, mode="write") as store:
        apart = [QuarantinedSample(sample, "faster than light") for sample in fast]
        ingest(store, Batch("a.csv", "csv"), apart)

    refused = relayd("data", "samples", "accept", "1", "2", "--db", db)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert "2 samples to accept" in refused.out
    assert f"{SRC} > {DST}" in refused.out
    done = relayd(
        "data", "samples", "accept", "1", "2", "--db", db, "--yes", "--reason", "a tunnel"
    )
    assert "`relayd data samples retract --batch 3` takes them back" in done.out
    assert "Snapshot " in done.out
    rejected = json.loads(
        relayd("data", "samples", "reject", "3", "--db", db, "--yes", "--json").out
    )
    assert (rejected["done"], rejected["changed"], rejected["batch"]) == (True, [], None)
    for words, said in (
        (("reject", "3"), "was rejected before"),
        (("accept", "x"), "x"),
        (("accept", "9" * 23), "is too large"),
        (("retract", "--batch", "9" * 23), "is too large"),
    ):
        wrong = relayd("data", "samples", *words, "--db", db, "--yes")
        assert (wrong.code, said in wrong.err) == (2, True), words
    assert relayd("data", "samples", "quarantine", "--db", db).out == "None.\n"
    for state, numbers, because in (("accepted", [2, 1], "a tunnel"), ("rejected", [3], "")):
        shown = relayd("data", "samples", "quarantine", "--state", state, "--db", db, "--json").out
        rows = json.loads(shown)["quarantine"]
        assert [row["number"] for row in rows] == numbers
        assert {(row["decided by"], row["because"]) for row in rows} == {(this_user(), because)}
