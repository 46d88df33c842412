"""Campaigns by the service: started, seen, told, ended; here with hosts that nobody answers at."""

from __future__ import annotations

import json
import re
import socket
from functools import partial
from pathlib import Path

from relayd.store import open_store
from relayd.store.campaigns import STARTED_BY_WATCHER, Campaigns
from tests.http.running import Served, eventually, run, served
from tests.http.test_samples import read_events

ASKED = {"budget_usd": 1.0, "phases": ["rtt"]}


def test_a_campaign_is_started_seen_and_told(store: Path, fleet: Path) -> None:
    with served(store, "--fleet", str(fleet)) as service:
        answer = service.ask("POST", "/v1/campaigns", ASKED)
        assert answer.status == 202, answer.content
        number = answer.json["campaign"]["id"]
        assert answer.headers["Location"] == f"/v1/campaigns/{number}"
        ended = eventually(
            lambda: (
                (found := service.get(f"/v1/campaigns/{number}").json["campaign"])
                and not found["is_running"]
                and found
            )
        )
        assert ended["probes"]["done"] == 0
        assert ended["probes"]["failed"] > 0
        assert ended["finished_at_s"] is None  # there is something left to do
        assert ended["usd"] == 0  # nobody could log in, so nothing was sent
        shown = service.get(f"/v1/campaigns/{number}").json
        (stage,) = shown["stages"]
        assert (stage["stage"], stage["failed"]) == ("rtt", ended["probes"]["failed"])
        (failures,) = shown["failures"]
        assert failures["probes"] == stage["failed"]
        assert failures["remedy"].startswith("Check that it runs")
        assert ["aws:us-east-1", "aws:sa-east-1"] in failures["pairs"]
        assert shown["progress"]["status"] == "partly done"
        listed = service.get("/v1/campaigns").json["campaigns"]
        assert [campaign["id"] for campaign in listed] == [number]
        told = [
            event
            for event in read_events(service, "/v1/events?after=1", 2)
            if event["kind"] == "campaign"
        ]
        assert told[0]["detail"]["status"] == "started"
        assert {event["subject"] for event in told} == {str(number)}
        again = service.ask("POST", "/v1/campaigns", {**ASKED, "resume": True})
        assert (again.status, again.json["campaign"]["id"]) == (202, number)
        # Who started them is kept in the store, too.
        kept = json.loads(run("data", "store", "changes", "--json", db=store).stdout)["changes"]
        assert [(each["action"], each["subject"], each["address"]) for each in kept] == [
            ("POST /v1/campaigns", f"/v1/campaigns/{number}", "127.0.0.1")
        ] * 2


def test_a_campaign_of_another_process_is_seen_to_run(store: Path) -> None:
    with served(store) as service, open_store(store, mode="write") as opened:
        campaigns = Campaigns(opened)
        first, second = (campaigns.begin({}).id for _ in range(2))

        def at_work() -> list[int]:
            listed = service.get("/v1/campaigns").json["campaigns"]
            assert [seen["id"] for seen in listed] == [second, first]
            one = service.get(f"/v1/campaigns/{second}").json["campaign"]
            assert one["is_running"] == listed[0]["is_running"]
            return [seen["id"] for seen in listed if seen["is_running"]]

        assert at_work() == []
        with campaigns.under_way():
            assert at_work() == [second]
        assert at_work() == []


def test_one_campaign_at_a_time_and_clear_refusals(store: Path, fleet: Path) -> None:
    with served(store, "--fleet", str(fleet)) as service:
        wrong = service.ask("POST", "/v1/campaigns", {**ASKED, "pairs": ["aws:us-east-1>mars"]})
        assert (wrong.status, wrong.json["kind"]) == (422, "input")
        nothing = service.ask("POST", "/v1/campaigns", {**ASKED, "resume": True})
        assert nothing.status == 422
        assert service.ask("POST", "/v1/campaigns", {}).json["field"] == "budget_usd"
        first = service.ask("POST", "/v1/campaigns", ASKED)
        assert first.status == 202, first.content
        second = service.ask("POST", "/v1/campaigns", ASKED)
        assert second.status in (202, 409)  # the first may have ended already
        if second.status == 409:
            assert "running" in json.dumps(second.json)
    # The service is gone, and with it what it started.
    done = run("plan", "--src", "us-east", "--dst", "sa", db=store)
    assert done.returncode == 0


def test_a_campaign_is_stopped_by_any_process_and_goes_on_later(store: Path, fleet: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,  # logins wait for its greeting
        served(store, "--fleet", str(fleet)) as service,
        served(store, log=store.with_name("other.log")) as other,
    ):
        port = silent.getsockname()[1]
        fleet.write_text(re.sub(r"port = \d+", f"port = {port}", fleet.read_text()))
        assert service.ask("POST", "/v1/campaigns/1/stop").status == 404
        number = service.ask("POST", "/v1/campaigns", ASKED).json["campaign"]["id"]
        stop = f"/v1/campaigns/{number}/stop"

        def runs(asking: Served) -> bool:
            found = asking.get(f"/v1/campaigns/{number}").json["campaign"]
            return bool(found["is_running"])

        for asked, resume in ((other, {**ASKED, "resume": True}), (service, None)):
            # Another process sees it a moment after the one that started it.
            eventually(partial(runs, asked))
            stopped = asked.ask("POST", stop)
            assert (stopped.status, stopped.headers["Location"]) == (202, stop[: -len("/stop")])
            eventually(lambda: not runs(service))
            left = service.get(f"/v1/campaigns/{number}").json
            assert left["progress"]["status"] == "interrupted"
            assert left["campaign"]["finished_at_s"] is None
            assert service.ask("POST", stop).status == 409
            if resume:
                again = service.ask("POST", "/v1/campaigns", resume)
                assert (again.status, again.json["campaign"]["id"]) == (202, number)
    kept = json.loads(run("data", "store", "changes", "--json", db=store).stdout)["changes"]
    assert [each["action"] for each in kept].count(f"POST {stop}") == 2


def test_what_the_watcher_measures_is_not_stopped_by_request(store: Path) -> None:
    with served(store) as service, open_store(store, mode="write") as opened:
        campaigns = Campaigns(opened)
        number = campaigns.begin({"started_by": STARTED_BY_WATCHER}).id
        with campaigns.under_way(by_watcher=True):
            seen = service.get(f"/v1/campaigns/{number}").json["campaign"]
            assert (seen["is_running"], seen["may_be_stopped"]) == (True, False)
            refused = service.ask("POST", f"/v1/campaigns/{number}/stop")
        assert (refused.status, refused.json["kind"]) == (409, "conflict")
        assert "daily budget" in refused.json["detail"]
        with campaigns.under_way():  # something else goes on with it
            stopped = service.ask("POST", f"/v1/campaigns/{number}/stop")
            assert (stopped.status, stopped.json["campaign"]["may_be_stopped"]) == (202, True)
