"""Verifications in the store and in plans, and what `relayd measure verify` says before it runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import relayd as library
from relayd.store import Store, open_store
from relayd.store.events import Events
from relayd.store.verifications import VerificationRow, Verifications
from tests.relayd.building import fleet_file, imported, rate, table
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import Spot

SRC, DST, RELAY = "aws:us-east-1", "aws:sa-east-1", "azure:eastus"


def _row(path: str, achieved: float, at_s: float, **fields: object) -> VerificationRow:
    row = VerificationRow(
        "p", "x", SRC, DST, "plan", "relay", path, 64, 1, True, 4.5, 5.0, 5.5, achieved, at_s
    )
    return row._replace(**fields)  # type: ignore[arg-type]


def _imported(db: Path, direct_mbps: int, *others: str) -> Path:
    head, direct = "src,dst,aggregate_mbps,connections", f"{SRC},{DST},{direct_mbps},64"
    return imported(db, head, direct, *others)


def test_what_was_kept_comes_back_and_calibrates_plans(store: Store) -> None:
    now_s = time.time()
    way = f"{SRC}>{RELAY}>{DST}"
    rows = [
        _row("", 3.0, now_s - 9000),
        _row(way, 3.0, now_s - 9000),
        _row("", 4.9, now_s - 7200),
        _row(way, 4.9, now_s - 7200),
        _row("", 1.0, now_s - 60, run="direct"),
        _row(f"{SRC}>{DST}", 1.0, now_s - 60),
    ]
    kept = Verifications(store.database)
    assert kept.by_pair() == {}
    assert kept.record(rows, [rate(SRC, RELAY, 4900.0, now_s)]) == 1
    assert kept.list() == rows
    (found,) = kept.by_pair().values()
    assert store.samples.last_id() == 1
    assert (found.src, found.dst, found.achieved_gbps, found.held) == (SRC, DST, 4.9, True)
    (path,) = found.paths
    assert (path.regions, path.connections, path.achieved_gbps) == ((SRC, RELAY, DST), 64, 4.9)


def test_a_sample_is_kept_with_its_verification_or_not_at_all(store: Store, spot: Spot) -> None:
    kept = Verifications(store.database)
    with pytest.raises(spot.integrity_error):
        kept.record([_row("", 3.0, 1.0, run="other")], [rate(SRC, RELAY, 1.0, 1e9)])
    assert kept.list() == []
    assert store.samples.last_id() == 0


def test_paths_of_a_shuffle_are_kept_and_calibrate_no_plan(store: Store) -> None:
    rows = [
        _row(f"{SRC}>{RELAY}>{DST}", 3.0, time.time(), alone=False),
        _row(f"{SRC}>{RELAY}", 1.0, time.time(), dst=RELAY, alone=False),
    ]
    kept = Verifications(store.database)
    kept.record(rows, [], [("shuffle p", {"plan_id": "p", "held": False})])
    assert kept.list() == rows
    assert kept.by_pair() == {}
    (event,) = Events(store.database).after(0)
    assert (event.kind, event.subject) == ("verification", "shuffle p")
    assert event.detail == {"plan_id": "p", "held": False}


def test_plans_tell_of_the_last_verification(tmp_path: Path, relayd: Relayd) -> None:
    db = _imported(tmp_path / "one.db", 4000)
    words = ["plan", "--src", SRC, "--dst", DST, "--db", db, "--json"]
    relayd("data", "links")  # what importing said is of no interest
    before = json.loads(relayd(*words).out)
    assert "verified" not in before["confidence"]
    with open_store(db, mode="write") as store:
        Verifications(store.database).record([_row("", 2.0, time.time() - 7200)], [])
    after = json.loads(relayd(*words).out)
    assert after["confidence"].endswith("verified 2 h ago: 2.00 of 5.00 Gbit/s.")
    assert any("verified 2 h ago" in warning for warning in after["warnings"])
    assert after["plan_id"] != before["plan_id"]
    assert after["throughput_gbps"] == before["throughput_gbps"]
    assert library.open(db).network.verified[SRC, DST].achieved_gbps == 2.0


# ---- before anything runs ----------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return fleet_file(tmp_path / "fleet.toml", SRC, DST, RELAY, RELAY)


def test_a_dry_run_says_what_would_run_and_cost(
    relayd: Relayd, fleet: Path, tmp_path: Path
) -> None:
    db = _imported(tmp_path / "few.db", 500, f"{SRC},{RELAY},4000,64", f"{RELAY},{DST},4000,64")
    words = ["measure", "verify", "--src", SRC, "--dst", DST, "--fleet", fleet, "--dry-run"]
    shown = relayd(*words, "--db", db, "--objective", "time")
    assert shown.code == 0, shown.err
    (planned,) = (line for line in shown.out.splitlines() if line.startswith("plan: "))
    assert f"{SRC} -> {RELAY} -> {DST}" in planned
    assert f"direct alone: {SRC} -> {DST}" in shown.out
    assert "rechecks, if needed" in shown.out
    content = json.loads(relayd(*words, "--json", "--max-gb", "6", "--seconds", "60").out)
    assert content["plans"][0]["verdict"] == "direct"
    runs = content["plans"][0]["runs"]
    assert sum(run["volume_gb"] for run in runs) <= 6
    assert runs[0]["egress_usd"] > 0
    assert not (tmp_path / "data").exists()  # nothing was stored
    # More VMs than there are scale the prediction.
    plan = tmp_path / "plan.json"
    asked = ["plan", "--src", SRC, "--dst", DST, "--relays", "none", "--objective", "time"]
    plan.write_text(relayd(*asked, "--vms", "4", "--json").out)
    shown = relayd("measure", "verify", plan, "--fleet", fleet, "--dry-run")
    assert "Run with 25% of the plan's VMs (1 of 4 at aws:us-east-1" in shown.out


@pytest.mark.parametrize("question", ["shuffle", "broadcast"])
def test_a_dry_run_shows_all_paths_of_many_transfers_as_one_run(
    relayd: Relayd, fleet: Path, tmp_path: Path, question: str
) -> None:
    db = _imported(tmp_path / "few.db", 500, f"{SRC},{RELAY},400,64")
    rows = (f"{SRC},{end},100" for end in (DST, RELAY))
    demands = table(tmp_path / "demands.csv", "src,dst,volume_gb", *rows)
    asked: list[object] = ["plan", "shuffle", demands]
    if question == "broadcast":
        asked = ["plan", "broadcast", SRC, DST, RELAY, "--volume", "100GB"]
    relayd("data", "links")
    plan = tmp_path / "plan.json"
    plan.write_text(relayd(*asked, "--relays", "none", "--vms", "1", "--db", db, "--json").out)
    rates = [link["throughput_gbps"] for link in _links(json.loads(plan.read_text()))]
    verify = ["measure", "verify", plan, "--fleet", fleet, "--db", db]
    verify += ["--dry-run", "--seconds", 10]
    content = json.loads(relayd(*verify, "--json").out)["plans"][0]
    assert content["question"] == question
    as_planned = content["runs"][0]
    assert {tuple(path) for path in as_planned["paths"]} == {(SRC, DST), (SRC, RELAY)}
    seconds = 8 * as_planned["volume_gb"] / sum(rates)
    assert 10 <= seconds <= 15  # what is measured, and the warm-up
    assert [run["run"] for run in content["runs"][1:]] in ([], ["limits"])
    assert "plan: aws:us-east-1 -> " in relayd(*verify).out


def _links(plan: dict[str, Any]) -> list[dict[str, Any]]:
    trees = [link for tree in plan.get("trees", ()) for link in tree["legs"]]
    return trees or [path for pair in plan["pairs"] for path in pair["paths"]]


def test_what_can_not_be_run_is_told_in_a_sentence(
    relayd: Relayd, fleet: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(relayd("plan", "--src", SRC, "--dst", "aws:eu-west-1", "--json").out)
    verify = ["measure", "verify", "--fleet", fleet, "--dry-run"]
    pair = [*verify, "--src", SRC, "--dst", DST]
    for words, told in (
        ([*verify, plan], "needs a VM in aws:eu-west-1"),
        ([*verify, fleet], "is not JSON"),
        ([*verify, tmp_path / "none.json"], "can't be read"),
        ([*verify], "--src and --dst"),
        ([*pair, plan], "together with a plan"),
        ([*pair[:-1], "aws:eu-west-1"], "has no host in aws:eu-west-1"),
        ([*pair, "--seconds", "1"], "must be from 3 to 600"),
        ([*pair, "--budget", "0.0001usd"], "is too little"),
        (pair[:2] + pair[4:], "fleet"),
        ([*pair[:4], *pair[5:]], "--yes"),  # without a terminal that could be asked
    ):
        found = relayd(*words)
        assert found.code == 2, words
        assert told in found.err, found.err
