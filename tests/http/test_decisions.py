"""Deciding about samples over HTTP: what it would do is told first, and who did it is kept."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from relayd.store import open_store
from relayd.store.samples.decisions import decide
from tests.http.running import REGIONS, Served, eventually, run, served, with_limit
from tests.http.test_tokens import QUICK, bearer, make

EFFECTS, DECISIONS = "/v1/samples/decisions/effects", "/v1/samples/decisions"
US, SA, AZURE, _ = REGIONS


def test_accepting_and_rejecting_what_is_in_quarantine(store: Path) -> None:
    admin, sender = make(store, "admin"), make(store, "ingest")
    now_s = time.time()
    sent = [
        {"src": US, "dst": SA, "metric": "rtt_ms", "value": value, "measured_at_s": now_s - 60 - at}
        for at, value in enumerate((1.5, 1.6, 1.7))
    ]
    with served(store, environment=QUICK, auth=True) as service:
        told = service.ask("POST", "/v1/samples", {"samples": sent}, bearer(sender)).json
        assert (told["accepted"], told["quarantined"]) == (0, 3)
        listed = service.get("/v1/quarantine", **bearer(admin)).json
        first, second, third = (each["id"] for each in listed["samples"][::-1])
        accepting = {"decision": "accept", "quarantined": [first, second], "reason": "a tunnel"}
        assert service.ask("POST", EFFECTS, accepting, bearer(sender)).status == 403
        seen = service.ask("POST", EFFECTS, accepting, bearer(admin)).json
        assert seen["samples"] == 2
        (rtt,) = (
            each
            for each in seen["changed"]
            if (each["src"], each["dst"], each["figure"]) == (US, SA, "rtt_ms")
        )
        assert rtt["after"] < rtt["before"]
        assert len(service.get("/v1/quarantine", **bearer(admin)).json["samples"]) == 3
        done = service.ask("POST", DECISIONS, accepting, bearer(admin))
        assert (done.status, done.json["samples"]) == (200, 2), done.content
        rejecting = {"decision": "reject", "quarantined": [third]}
        assert service.ask("POST", EFFECTS, rejecting, bearer(admin)).json["total"] == 0
        assert service.ask("POST", DECISIONS, rejecting, bearer(admin)).json["batch_id"] is None
        again = service.ask("POST", DECISIONS, accepting, bearer(admin))
        assert (again.status, again.json["field"]) == (422, "quarantined")
        assert service.get("/v1/quarantine", **bearer(admin)).json["reasons"] == []
        of = "/v1/quarantine?state=accepted"
        accepted = service.get(of, **bearer(admin)).json["samples"]
        assert [each["id"] for each in accepted] == [second, first]
        assert accepted[0]["decided_because"] == "a tunnel"
        # The next snapshot heeds it.
        eventually(
            lambda: (
                service.get(f"/v1/links/{US}/{SA}", **bearer(admin)).json["link"]["rtt_ms"][
                    "expected"
                ]
                == rtt["after"]
            )
        )
        audited = [line for line in service.lines() if line["event"] == "change"]
    assert [line["status"] for line in audited if line["path"] == DECISIONS] == [200, 200, 422]
    kept = json.loads(run("data", "store", "changes", "--json", db=store).stdout)["changes"]
    assert [(each["who"], each["action"], each["address"]) for each in kept[:2]] == [
        ("test", "samples reject", "127.0.0.1"),
        ("test", "samples accept", "127.0.0.1"),
    ]
    assert f"{first}, {second}" in kept[1]["subject"]


def test_retracting_and_restoring_by_a_selection(changing: Served) -> None:
    service = changing
    retracting = {"decision": "retract", "selection": {"src": US, "dst": SA}}
    seen = service.ask("POST", EFFECTS, retracting).json
    assert seen["samples"] > 0
    assert seen["changed"]
    done = service.ask("POST", DECISIONS, retracting).json
    assert done["samples"] == seen["samples"]
    assert service.ask("POST", EFFECTS, retracting).json["samples"] == 0
    restoring = {**retracting, "decision": "restore"}
    assert service.ask("POST", DECISIONS, restoring).json["samples"] == seen["samples"]


def test_a_decision_made_while_no_service_runs_is_heeded(store: Path) -> None:
    with open_store(store, mode="write") as opened:
        assert decide(opened.database, "retract", {"src": US, "dst": SA}, who="me", reason="")
    with served(store, environment=QUICK) as service:
        eventually(lambda: not _is_measured(service))


def test_a_decision_that_nobody_waits_for_any_more_is_audited_and_heeded(store: Path) -> None:
    retracting = {"decision": "retract", "selection": {"src": US, "dst": SA}}
    quick = with_limit("relayd.http.store_access", "LIMIT_S", 3.0)
    with served(store, environment=QUICK, within=quick) as service:
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = service.ask("POST", DECISIONS, retracting)
            assert (answer.status, answer.json["kind"]) == (503, "unavailable")
            assert "still finishes" in answer.json["detail"]
            other.execute("ROLLBACK")
        eventually(lambda: not _is_measured(service))
    kept = json.loads(run("data", "store", "changes", "--json", db=store).stdout)["changes"]
    assert (kept[0]["action"], kept[0]["address"]) == ("samples retract", "127.0.0.1")


def test_samples_that_came_after_the_effects_were_shown_are_not_decided_about(store: Path) -> None:
    retracting = {"decision": "retract", "selection": {"src": US, "dst": SA}}
    sample = {"src": US, "dst": SA, "metric": "rtt_ms", "value": 117.0}
    with served(store, environment=QUICK) as service:
        seen = service.ask("POST", EFFECTS, retracting).json
        later = {"samples": [{**sample, "measured_at_s": time.time() - 60}]}
        assert service.ask("POST", "/v1/samples", later).json["accepted"] == 1
        shown = {**retracting, "through": seen["through"]}
        assert service.ask("POST", DECISIONS, shown).json["samples"] == seen["samples"]
        assert service.ask("POST", EFFECTS, retracting).json["samples"] == 1
        assert service.ask("POST", DECISIONS, shown).json["samples"] == 0


def test_effects_that_take_too_long_say_what_can_be_decided_without_them(store: Path) -> None:
    retracting = {"decision": "retract", "selection": {"src": US, "dst": SA}}
    quick = with_limit("relayd.http.routes.samples", "EFFECTS_LIMIT_S", 0.001)
    with served(store, environment=QUICK, within=quick) as service:
        answer = service.ask("POST", EFFECTS, retracting)
        assert (answer.status, answer.json["kind"]) == (503, "timeout")
        shown = {**retracting, "through": answer.json["through"]}
        assert service.ask("POST", DECISIONS, shown).json["samples"] == answer.json["samples"] > 0


def test_regions_are_meant_by_any_of_their_names(changing: Served) -> None:
    service = changing
    by_id = service.ask("POST", EFFECTS, {"decision": "retract", "selection": {"src": US}}).json
    selection = {"src": "us-east-1"}
    asked = {"decision": "retract", "selection": selection}
    assert service.ask("POST", EFFECTS, asked).json["samples"] == by_id["samples"] > 0
    assert service.get("/v1/quarantine?src=us-east-1&dst=aws:sa-east-1").status == 200
    assert service.get("/v1/quarantine?src=aws:gone-1").json["samples"] == []
    selection["src"] = "nowhere"
    wrong = [service.ask("POST", path, asked) for path in (EFFECTS, DECISIONS)]
    wrong.append(service.get("/v1/quarantine?src=nowhere"))
    assert [(each.status, each.json["field"]) for each in wrong] == [
        (422, "selection.src"),
        (422, "selection.src"),
        (422, "src"),
    ]


def test_what_is_no_decision_is_refused(changing: Served) -> None:
    service = changing
    for wrong in (
        {"decision": "accept"},
        {"decision": "accept", "quarantined": [77]},
        {"decision": "accept", "quarantined": [1], "selection": {"src": US}},
        {"decision": "retract", "quarantined": [1]},
        {"decision": "retract"},
        {"decision": "retract", "selection": {}},
        {"decision": "forget", "selection": {"src": US}},
        {"decision": "reject", "quarantined": [0]},
        {"decision": "retract", "selection": {"src": f"{US}\0"}},
        {"decision": "retract", "selection": {"source": "token \0"}},
        {"decision": "retract", "selection": {"src": US}, "reason": "\0"},
    ):
        for path in (EFFECTS, DECISIONS):
            answer = service.ask("POST", path, wrong)
            assert (answer.status, answer.json["kind"]) == (422, "input"), wrong
    assert service.get("/v1/quarantine?src=a%00b").status == 422


def _is_measured(service: Served) -> bool:
    link = service.get(f"/v1/links/{US}/{SA}").json["link"]
    return bool(link["aggregate_gbps"]["source"] == "measured")
