"""A service whose fleet is watched, and answers that rest on links as they are now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planner.model.link_states import Pair
from probes.liveness.link_health import LinkHealth
from relayd.client.blocking import RemoteWan
from relayd.sources.mirror import MirroredWan
from relayd.store import open_store
from relayd.store.links import LinkStates
from tests.http.running import Served, eventually, run, served

LINK = ("aws:us-east-1", "gcp:us-east1")
QUICK = {"RELAYD_SERVE_REFRESH_S": "0.1"}


def keep(
    db: Path | str, healths: Mapping[Pair, LinkHealth], usual: tuple[Pair, ...], seconds: float
) -> None:
    with open_store(db, mode="write") as store, store.database.transaction():
        LinkStates(store.database).keep(healths, usual, time.time() + seconds)


def planned(service: Served) -> Any:
    src, dst = LINK
    return service.get(f"/v1/plans?src={src}&dst={dst}&volume_gb=500").json


def planned_after(
    db: Path | str, healths: Mapping[Pair, LinkHealth], seconds: float, service: Served
) -> Any:
    """Ask while a watcher says something, however long the service takes to hear of it."""
    keep(db, healths, (), seconds)
    return planned(service)


def test_verdicts_leave_a_link_that_is_down_and_come_back(store: Path) -> None:
    down = {
        LINK: LinkHealth(condition="down", since_s=time.time() - 60, reason="no reply to 5 looks")
    }
    with served(store, environment=QUICK) as service:
        before = planned(service)
        assert before["verdict"] == "direct"
        mirror = MirroredWan(RemoteWan(service.url), refresh_s=0.1)
        batch = {"plans": [{"src": LINK[0], "dst": LINK[1], "volume_gb": 500}]}
        keep(store, down, (), 3600)
        eventually(lambda: planned(service)["verdict"] != "direct")
        during = planned(service)
        assert list(LINK) not in [path["regions"] for path in during["paths"]]
        assert any("down" in text for text in (during["reason"], *during["warnings"]))
        answers = service.ask("POST", "/v1/plans/batch", batch).json["results"]
        assert answers[0]["plan"]["verdict"] != "direct"  # workers know it, too
        eventually(lambda: mirror.plan(*LINK, volume_gb=500).verdict != "direct")
        keep(store, {}, (LINK,), 0)
        eventually(lambda: planned(service) == before)
        # A watcher that has died is not believed for ever.
        eventually(lambda: planned_after(store, down, 2, service)["verdict"] != "direct")
        eventually(lambda: planned(service) == before)
        mirror.close()


def test_a_mirror_without_its_service_does_not_believe_for_ever_that_a_link_is_down(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = {
        LINK: LinkHealth(condition="down", since_s=time.time() - 60, reason="no reply to 5 looks")
    }
    keep(store, down, (), 900)
    with served(store, environment=QUICK) as service:
        mirror = MirroredWan(RemoteWan(service.url, attempts=1), refresh_s=0.1)
        (state,) = service.get("/v1/snapshots/current").json["leg_states"]
        assert 800 < state["valid_until_s"] - time.time() <= 900
        service.kill()
    eventually(lambda: mirror.plan(*LINK, volume_gb=500).verdict != "direct" and mirror.problem)
    later_s = time.time() + 901
    monkeypatch.setattr("relayd.sources.wan.clock", lambda: later_s)
    assert mirror.plan(*LINK, volume_gb=500).verdict == "direct"
    mirror.close()


def test_a_watched_fleet_is_shown_to_those_who_may_see_it(store: Path, fleet: Path) -> None:
    budget = {"RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": "1", "RELAYD_SERVE_WATCH_INTERVAL_S": "2"}
    made = run("serve", "token", "create", "reader", "--scope", "read", db=store)
    assert made.returncode == 0
    token = made.stdout.split()[-1]
    with served(
        store, "--fleet", str(fleet), environment={**QUICK, **budget}, auth=True
    ) as service:

        def watch() -> Any:
            answer = service.get("/v1/watch", Authorization=f"Bearer {token}")
            return answer.json["watch"]

        eventually(lambda: (found := watch()) and found["role"] == "prober")
        eventually(lambda: watch()["unreachable"])
        assert watch()["daily_budget_usd"] == 1
        assert service.get("/v1/watch").status == 401
        # What needs no token names no host and no money.
        ready = service.get("/readyz")
        assert set(ready.json["watch"]) == {"role", "last_look_age_s", "legs_down", "legs_degraded"}
        assert b"127.0.0.1" not in ready.content
        metrics = service.get("/metrics", Authorization=f"Bearer {token}").content.decode()
        assert "relayd_watch_budget_usd 1.0" in metrics
        for name in ("links_down", "links_degraded", "last_probe_age_seconds"):
            assert f"\nrelayd_watch_{name} " in metrics
    with served(store, environment=QUICK) as alone:
        answer = alone.get("/v1/watch", Authorization=f"Bearer {token}")
        assert answer.json["watch"] is None


def test_a_service_that_watches_measures_by_itself(store: Path, fleet: Path) -> None:
    budget = {"RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": "1"}
    with served(store, "--fleet", str(fleet), environment=budget) as service:
        refused = service.ask("POST", "/v1/campaigns", {"budget_usd": 1})
        assert (refused.status, refused.json["kind"]) == (409, "conflict")
        assert "watches its fleet" in refused.json["detail"]


def test_settings_of_watching_are_checked(store: Path, fleet: Path) -> None:
    (fleet.parent / "service.toml").write_text("[serve]\nwatch_daily_budget_usd = 2\n")
    config = ("--config", str(fleet.parent / "service.toml"))
    without = run("serve", "--check", *config, db=store)
    assert without.returncode == 2
    assert "needs a fleet" in without.stderr
    assert run("serve", "--check", *config, "--fleet", str(fleet), db=store).returncode == 0
    fleet.write_text("[[host]]\nregion = 3\n")
    assert run("serve", "--check", *config, "--fleet", str(fleet), db=store).returncode == 2
