"""Campaigns of a service: started, seen, told, ended; here with hosts that do not answer."""

from __future__ import annotations

import json
import socket
from functools import partial
from pathlib import Path
from typing import Any

from relayd.store import open_store
from relayd.store.campaigns import STARTED_BY_WATCHER, Campaigns
from tests.http.running import Served, fleet_at_port, read_events, run, served
from tests.waiting import eventually

ASKED = {"budget_usd": 1.0, "phases": ["rtt"]}


def seen(service: Served, number: int) -> Any:
    return service.get(f"/v1/campaigns/{number}").json["campaign"]


def runs(service: Served, number: int) -> bool:
    return bool(seen(service, number)["is_running"])


def changes(service: Served, subject: str) -> list[tuple[str, str]]:
    """Return what the store says was done to something, and from where."""
    told = json.loads(run("data", "store", "changes", "--json", db=service.db).stdout)
    return [(one["action"], one["address"]) for one in told["changes"] if one["subject"] == subject]


def test_a_campaign_is_started_seen_and_told(changing: Served) -> None:
    answer = changing.ask("POST", "/v1/campaigns", ASKED)
    assert answer.status == 202, answer.content
    number = answer.json["campaign"]["id"]
    address = f"/v1/campaigns/{number}"
    assert answer.headers["Location"] == address
    eventually(lambda: not runs(changing, number))
    shown = changing.get(address).json
    ended = shown["campaign"]
    assert ended["probes"]["done"] == 0
    assert ended["probes"]["failed"] > 0
    assert ended["finished_at_s"] is None  # there is something left to do
    assert ended["usd"] == 0  # nobody could log in, so nothing was sent
    (stage,) = shown["stages"]
    assert (stage["stage"], stage["failed"]) == ("rtt", ended["probes"]["failed"])
    (failures,) = shown["failures"]
    assert failures["probes"] == stage["failed"]
    assert failures["remedy"].startswith("Check that it runs")
    assert ["aws:us-east-1", "aws:sa-east-1"] in failures["pairs"]
    assert shown["progress"]["status"] == "partly done"
    assert changing.get("/v1/campaigns").json["campaigns"][0]["id"] == number
    of = {"kind": "campaign", "subject": str(number)}
    told = read_events(changing, "/v1/events?after=0", 2, of)
    assert told[0]["detail"]["status"] == "started"
    again = changing.ask("POST", "/v1/campaigns", {**ASKED, "resume": True})
    assert (again.status, again.json["campaign"]["id"]) == (202, number)
    # Who started them is kept in the store, too.
    assert changes(changing, address) == [("POST /v1/campaigns", "127.0.0.1")] * 2
    eventually(lambda: not runs(changing, number))


def test_a_campaign_of_another_process_is_seen_to_run(changing: Served) -> None:
    with open_store(changing.db, mode="write") as opened:
        campaigns = Campaigns(opened)
        first, second = (campaigns.begin({}).id for _ in range(2))

        def at_work() -> list[int]:
            listed = changing.get("/v1/campaigns").json["campaigns"]
            assert [one["id"] for one in listed[:2]] == [second, first]
            assert runs(changing, second) == listed[0]["is_running"]
            return [one["id"] for one in listed if one["is_running"]]

        assert at_work() == []
        with campaigns.under_way():
            assert at_work() == [second]
        assert at_work() == []


def test_what_the_watcher_measures_is_not_stopped_by_request(changing: Served) -> None:
    with open_store(changing.db, mode="write") as opened:
        campaigns = Campaigns(opened)
        number = campaigns.begin({"started_by": STARTED_BY_WATCHER}).id
        stop = f"/v1/campaigns/{number}/stop"
        with campaigns.under_way(by_watcher=True):
            one = seen(changing, number)
            assert (one["is_running"], one["may_be_stopped"]) == (True, False)
            refused = changing.ask("POST", stop)
        assert (refused.status, refused.json["kind"]) == (409, "conflict")
        assert "daily budget" in refused.json["detail"]
        with campaigns.under_way():  # something else goes on with it
            stopped = changing.ask("POST", stop)
            assert (stopped.status, stopped.json["campaign"]["may_be_stopped"]) == (202, True)


def test_one_campaign_runs_until_any_process_stops_it_and_goes_on_later(
    changing: Served, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # logins wait for its greeting
        fleet = fleet_at_port(tmp_path, silent.getsockname()[1])
        with served(changing.db, "--fleet", str(fleet), log=tmp_path / "log") as owner:
            number = owner.ask("POST", "/v1/campaigns", ASKED).json["campaign"]["id"]
            stop = f"/v1/campaigns/{number}/stop"
            for asked in (changing, owner):
                # Another process sees it a moment after the one that started it.
                eventually(partial(runs, asked, number))
                second = owner.ask("POST", "/v1/campaigns", ASKED)
                assert (second.status, "running" in second.json["detail"]) == (409, True)
                stopped = asked.ask("POST", stop)
                assert (stopped.status, stopped.headers["Location"]) == (202, stop[: -len("/stop")])
                eventually(lambda: not runs(owner, number))
                left = owner.get(f"/v1/campaigns/{number}").json
                assert left["progress"]["status"] == "interrupted"
                assert left["campaign"]["finished_at_s"] is None
                assert owner.ask("POST", stop).status == 409
                again = owner.ask("POST", "/v1/campaigns", {**ASKED, "resume": True})
                assert (again.status, again.json["campaign"]["id"]) == (202, number)
            eventually(partial(runs, changing, number))
    # The service is gone, and with it what it started.
    eventually(lambda: not runs(changing, number))
    actions = [action for action, _ in changes(changing, stop[: -len("/stop")])]
    assert actions.count(f"POST {stop}") == 2


def test_what_is_no_campaign_is_refused_clearly(changing: Served, guarded: Served) -> None:
    wrong = changing.ask("POST", "/v1/campaigns", {**ASKED, "pairs": ["aws:us-east-1>mars"]})
    assert (wrong.status, wrong.json["kind"]) == (422, "input")
    assert changing.ask("POST", "/v1/campaigns", {}).json["field"] == "budget_usd"
    assert changing.ask("POST", "/v1/campaigns/99999/stop").status == 404
    # There is none in this store.
    resumed = guarded.ask("POST", "/v1/campaigns", {**ASKED, "resume": True}, guarded.by("probe"))
    assert resumed.status == 422
