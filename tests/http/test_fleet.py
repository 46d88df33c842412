"""Who measures, what it would cost, and what has changed: told without secrets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from probes.estimation import Estimator
from probes.estimation.current_samples import LinkShift
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.sources.stored import snapshot_of
from relayd.store import SnapshotRow, open_store
from relayd.store.campaigns import in_two
from relayd.store.links import LevelShifts
from relayd.store.samples.ingest import append
from tests.http.running import REGIONS, Served, served
from tests.waiting import eventually

DAY_S = 86400.0


def rates(src: str, dst: str, mbps: float, ago_s: float) -> list[Sample]:
    """Return five samples of a link; the newest was measured some time ago."""
    newest_s = time.time() - ago_s
    return [
        Sample(src, dst, "aggregate_mbps", mbps, newest_s - 100 * n, "iperf3", 64, 60.0, True)
        for n in range(5)
    ]


def snapshot_then(db: Path, ago_s: float) -> str:
    """Keep a snapshot of all samples so far, as if it had been made some time ago."""
    catalogue = load_catalogue()
    with open_store(db, mode="write") as store:
        through = store.samples.last_id()
        estimator = Estimator(store.samples.read(through=through), catalogue)
        then_s, name = time.time() - ago_s, f"then-{ago_s:.0f}"
        row = SnapshotRow(name, then_s, then_s, "mixed", catalogue.digest, through)
        return store.snapshots.save(row, estimator.network(snapshot_of(row))).id


def test_what_has_changed_since_yesterday(tmp_path: Path) -> None:
    db = tmp_path / "relayd.db"
    src, dst, new_region = REGIONS[0], REGIONS[1], "acme:new-1"
    with open_store(db, mode="create") as store:
        for pair in ((src, dst), (dst, src)):
            append(store, rates(*pair, 4000.0, 2 * DAY_S))
    old = snapshot_then(db, 1.5 * DAY_S)
    with open_store(db, mode="write") as store:
        for hours in range(12):
            append(store, rates(src, dst, 1000.0, 3600.0 * hours))
        append(store, [Sample(new_region, dst, "rtt_ms", 20.0, time.time() - 50, "ping")])
        with store.database.transaction():
            shift = LinkShift(src, dst, "aggregate_mbps", time.time() - 3600, time.time(), 4e3, 1e3)
            LevelShifts(store.database).add(shift)
        new = make_snapshot(store, load_catalogue())
        assert new
    with served(db) as service:
        found = service.get("/v1/changes?limit=1000").json
        assert (found["before"]["id"], found["snapshot"]["id"]) == (old, new.id)
        change = next(
            each
            for each in found["changes"]
            if (each["src"], each["dst"], each["metric"]) == (src, dst, "aggregate_gbps")
        )
        before, after = change["before"], change["after"]
        assert before["expected"] == pytest.approx(4.0, rel=0.1)
        assert after["expected"] == pytest.approx(1.0, rel=0.1)
        assert change["ratio"] == pytest.approx(after["expected"] / before["expected"])
        sizes = [max(each["ratio"], 1 / each["ratio"]) for each in found["changes"]]
        assert sizes == sorted(sizes, reverse=True)
        assert found["new_regions"] == [new_region]
        assert found["lost_regions"] == []
        assert [(s["src"], s["dst"], s["after"]) for s in found["shifts"]] == [(src, dst, 1e3)]
        # In pages, the same; and what stayed within its bounds is not told.
        pages: list[Any] = []
        cursor = ""
        while True:
            page = service.get(f"/v1/changes?limit=60{cursor}").json
            pages += page["changes"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert pages == found["changes"]
        assert len(pages) == found["total"] == sum(found["total_by_source"].values())
        measured = service.get("/v1/changes?source=measured").json
        assert measured["changes"] == [c for c in pages if c["after"]["source"] == "measured"]
        assert measured["total"] == found["total_by_source"]["measured"]
        for each in pages:
            held = each["before"]["low"] <= each["after"]["expected"] <= each["before"]["high"]
            assert not held
        # No snapshot is as old as that.
        longer = service.get("/v1/changes?since_s=864000").json
        assert (longer["before"], longer["oldest"]["id"], longer["total"]) == (None, old, 0)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - DAY_S))
        assert service.get(f"/v1/changes?since={since}").json["before"]["id"] == old
        assert service.get("/v1/changes?since=yesterday").json["field"] == "since"


def test_the_fleet_is_shown_without_what_logging_in_takes(watching: Served) -> None:
    def seen(who: str) -> Any:
        return watching.get("/v1/fleet", **watching.by(who)).json

    found = eventually(lambda: (a := seen("read")) and a["hosts"][0]["unreachable"] and a)
    first, second = found["hosts"]
    assert (first["name"], first["region"]) == ("us", REGIONS[0])
    assert (first["vm_type"], second["zone"]) == ("m5.8xlarge", "a")
    assert first["remedy"].endswith(".")
    assert [state["condition"] for state in found["leg_states"]] == ["down"]
    assert [(c["host"], c["mbps"], c["catalogue_mbps"]) for c in found["vm_caps"]] == [
        ("us", 4200.0, 5000.0)
    ]
    text = json.dumps(first | {"unreachable": "", "remedy": ""})
    assert not [secret for secret in ("operator", "/keys", "login.", "192.0") if secret in text]
    of_prober = seen("prober")
    assert not of_prober["may_start_campaigns"]
    assert "watches its fleet" in of_prober["why_not"]


def test_the_caps_of_regions_stand_beside_their_types(service: Served) -> None:
    sites = service.get("/v1/sites").json["sites"]
    graph = service.get("/v1/snapshots/current").json["sites"]
    assert {site["region"] for site in sites} == {site["region"] for site in graph}
    known = load_catalogue().vm_types
    for site in sites:
        vm, reference = known[site["vm_type"]], site["reference"]
        assert (reference["egress_gbps"], reference["source"]) == (vm.egress_gbps, vm.source)


def test_a_dry_run_costs_nothing_and_only_those_who_may_measure_ask(guarded: Served) -> None:
    asked = {"budget_usd": 5.0, "phases": ["rtt", "per-flow"]}
    path, reader, prober = "/v1/campaigns/forecast", guarded.by("read"), guarded.by("probe")
    assert guarded.ask("POST", path, asked, reader).status == 403
    answer = guarded.ask("POST", path, asked, prober)
    assert answer.status == 200, answer.content
    campaign = answer.json["campaign"]
    assert set(campaign["phases"]) == {"rtt", "per-flow"}
    assert set(campaign["regions"]) == set(REGIONS[:2])
    total_usd = sum(part["egress_usd"] for part in campaign["regions"].values())
    assert 0 < total_usd == pytest.approx(campaign["egress_usd"])
    wrong = guarded.ask("POST", path, {**asked, "pairs": ["us>mars"]}, prober)
    assert (wrong.status, wrong.json["kind"]) == (422, "input")
    assert guarded.get("/v1/campaigns", **reader).json["campaigns"] == []
    for who, may in (("read", False), ("prober", True)):
        found = guarded.get("/v1/fleet", **guarded.by(who)).json
        assert (found["may_start_campaigns"], bool(found["why_not"])) == (may, not may)


def test_a_fleet_file_that_has_been_spoilt_leaves_the_rest_as_it_was(guarded: Served) -> None:
    fleet = Path(guarded.db).with_name("fleet.toml")
    good = fleet.read_text()
    fleet.write_text("[[host]]\nregion = 3\n")
    try:
        found = guarded.get("/v1/fleet", **guarded.by("read")).json
        assert (found["configured"], found["hosts"]) == (True, [])
        assert "can't be used" in found["problem"]
        asked = {"budget_usd": 5.0}
        refused = guarded.ask("POST", "/v1/campaigns/forecast", asked, guarded.by("probe"))
        assert refused.status == 503
    finally:
        fleet.write_text(good)


def test_problems_are_told_from_remedies() -> None:
    assert in_two("no SSH (10.0.0.1. gone). Check it. Twice.") == (
        "no SSH (10.0.0.1. gone)",
        "Check it. Twice.",
    )
    assert in_two("it hung.") == ("it hung", "")
    assert in_two("a is no longer in the fleet file") == ("a is no longer in the fleet file", "")
