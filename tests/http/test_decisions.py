"""Deciding about samples over HTTP: what it would do is told first, and who did it is kept."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from relayd.store import open_store
from relayd.store.samples.decisions import decide
from tests.http.running import LIVELY, REGIONS, Answer, Served, copied, run, served, with_limit
from tests.waiting import eventually

EFFECTS, DECISIONS = "/v1/samples/decisions/effects", "/v1/samples/decisions"
US, SA, AZURE, GCP = REGIONS


@pytest.fixture(scope="module")
def impatient(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service with little time, on a store in which a decision waits to be heeded."""
    store = copied(measured, tmp_path_factory.mktemp("impatient"))
    with open_store(store, mode="write") as opened:
        assert decide(opened.database, "retract", {"src": US, "dst": SA}, who="me", reason="")
    shown = ("relayd.http.routes.samples", "EFFECTS_LIMIT_S", 0.001)
    quick = with_limit("relayd.http.store_access", "LIMIT_S", 3.0, shown)
    with served(store, environment=LIVELY, within=quick) as service:
        yield service


def test_accepting_and_rejecting_what_is_in_quarantine(guarded: Served) -> None:
    admin, ids = guarded.by("admin"), list[str]()
    here = f"/v1/quarantine?src={US}&dst={SA}"

    def post(path: str, body: Any) -> Answer:
        answer = guarded.ask("POST", path, body, admin)
        ids.append(answer.headers["X-Request-ID"])
        return answer

    now_s = time.time()
    sent = [
        {"src": US, "dst": SA, "metric": "rtt_ms", "value": value, "measured_at_s": now_s - 60 - at}
        for at, value in enumerate((1.5, 1.6, 1.7))
    ]
    told = guarded.ask("POST", "/v1/samples", {"samples": sent}, guarded.by("ingest")).json
    assert (told["accepted"], told["quarantined"]) == (0, 3)
    listed = guarded.get(here, **admin).json["samples"]
    first, second, third = (each["id"] for each in listed[::-1])
    accepting = {"decision": "accept", "quarantined": [first, second], "reason": "a tunnel"}
    seen = post(EFFECTS, accepting).json
    assert seen["samples"] == 2
    (rtt,) = (
        each
        for each in seen["changed"]
        if (each["src"], each["dst"], each["figure"]) == (US, SA, "rtt_ms")
    )
    assert rtt["after"] < rtt["before"]
    assert len(guarded.get(here, **admin).json["samples"]) == 3
    done = post(DECISIONS, accepting)
    assert (done.status, done.json["samples"]) == (200, 2), done.content
    rejecting = {"decision": "reject", "quarantined": [third]}
    assert post(EFFECTS, rejecting).json["total"] == 0
    assert post(DECISIONS, rejecting).json["batch_id"] is None
    again = post(DECISIONS, accepting)
    assert (again.status, again.json["field"]) == (422, "quarantined")
    assert guarded.get(here, **admin).json["reasons"] == []
    accepted = guarded.get(f"{here}&state=accepted", **admin).json["samples"]
    assert [each["id"] for each in accepted] == [second, first]
    assert accepted[0]["decided_because"] == "a tunnel"
    # The next snapshot heeds it.
    link = f"/v1/links/{US}/{SA}"
    eventually(
        lambda: guarded.get(link, **admin).json["link"]["rtt_ms"]["expected"] == rtt["after"]
    )
    lines = [line for line in guarded.lines() if line["event"] == "change"]
    own = [line for line in lines if line["path"] == DECISIONS and line["request_id"] in ids]
    assert [line["status"] for line in own] == [200, 200, 422]
    kept = changes(guarded)
    assert [(each["who"], each["action"], each["address"]) for each in kept[:2]] == [
        ("admin", "samples reject", "127.0.0.1"),
        ("admin", "samples accept", "127.0.0.1"),
    ]
    assert f"{first}, {second}" in kept[1]["subject"]


def test_retracting_and_restoring_by_a_selection(changing: Served) -> None:
    retracting = {"decision": "retract", "selection": {"src": GCP, "dst": AZURE}}
    seen = changing.ask("POST", EFFECTS, retracting).json
    assert seen["samples"] > 0
    assert seen["changed"]
    done = changing.ask("POST", DECISIONS, retracting).json
    assert done["samples"] == seen["samples"]
    assert changing.ask("POST", EFFECTS, retracting).json["samples"] == 0
    restoring = {**retracting, "decision": "restore"}
    assert changing.ask("POST", DECISIONS, restoring).json["samples"] == seen["samples"]


def test_a_decision_made_while_no_service_runs_is_heeded(impatient: Served) -> None:
    eventually(lambda: not _is_measured(impatient, US, SA))


def test_a_decision_that_nobody_waits_for_any_more_is_audited_and_heeded(impatient: Served) -> None:
    retracting = {"decision": "retract", "selection": {"src": SA, "dst": US}}
    with closing(sqlite3.connect(impatient.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = impatient.ask("POST", DECISIONS, retracting)
        assert (answer.status, answer.json["kind"]) == (503, "unavailable")
        assert "still finishes" in answer.json["detail"]
        assert _is_measured(impatient, SA, US)
        other.execute("ROLLBACK")
    eventually(lambda: not _is_measured(impatient, SA, US))
    (kept, *_) = changes(impatient)
    assert (kept["action"], kept["address"]) == ("samples retract", "127.0.0.1")


def test_effects_that_take_too_long_say_what_can_be_decided_without_them(impatient: Served) -> None:
    retracting = {"decision": "retract", "selection": {"src": US, "dst": AZURE}}
    answer = impatient.ask("POST", EFFECTS, retracting)
    assert (answer.status, answer.json["kind"]) == (503, "timeout")
    shown = {**retracting, "through": answer.json["through"]}
    assert impatient.ask("POST", DECISIONS, shown).json["samples"] == answer.json["samples"] > 0


def test_samples_that_came_after_the_effects_were_shown_are_not_decided_about(
    changing: Served,
) -> None:
    ends = {"src": GCP, "dst": SA}
    retracting = {"decision": "retract", "selection": ends}
    seen = changing.ask("POST", EFFECTS, retracting).json
    later = {**ends, "metric": "rtt_ms", "value": 117.0, "measured_at_s": time.time() - 60}
    assert changing.ask("POST", "/v1/samples", {"samples": [later]}).json["accepted"] == 1
    shown = {**retracting, "through": seen["through"]}
    assert changing.ask("POST", DECISIONS, shown).json["samples"] == seen["samples"] > 0
    assert changing.ask("POST", EFFECTS, retracting).json["samples"] == 1
    assert changing.ask("POST", DECISIONS, shown).json["samples"] == 0


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


def _is_measured(service: Served, src: str, dst: str) -> bool:
    link = service.get(f"/v1/links/{src}/{dst}").json["link"]
    return bool(link["aggregate_gbps"]["source"] == "measured")


def changes(service: Served) -> Any:
    """Return what the store says was changed, the newest first."""
    return json.loads(run("data", "store", "changes", "--json", db=service.db).stdout)["changes"]
