"""A service whose fleet is watched, and answers that rest on links as they are now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from planner.model.link_states import Pair
from probes.liveness.link_health import LinkHealth
from relayd.client.blocking import RemoteWan
from relayd.sources.mirror import MirroredWan
from relayd.store import open_store
from relayd.store.links import LinkStates
from tests.http.running import Served, run, settled
from tests.waiting import eventually

LINK = ("aws:us-east-1", "gcp:us-east1")
DOWN = {LINK: LinkHealth(condition="down", since_s=time.time() - 60, reason="no reply to 5 looks")}


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


def test_verdicts_leave_a_link_that_is_down_and_come_back(changing: Served) -> None:
    settled(changing)
    before = planned(changing)
    assert before["verdict"] == "direct"
    remote = RemoteWan(changing.url)
    mirror = MirroredWan(remote, refresh_s=0.1)
    plan = remote.plan(*LINK, volume_gb=500, relays="none")
    batch = {"plans": [{"src": LINK[0], "dst": LINK[1], "volume_gb": 500}]}
    keep(changing.db, DOWN, (), 3600)
    eventually(lambda: planned(changing)["verdict"] != "direct")
    during = planned(changing)
    assert list(LINK) not in [path["regions"] for path in during["paths"]]
    assert any("down" in text for text in (during["reason"], *during["warnings"]))
    answers = changing.ask("POST", "/v1/plans/batch", batch).json["results"]
    assert answers[0]["plan"]["verdict"] != "direct"  # workers know it, too
    eventually(lambda: mirror.plan(*LINK, volume_gb=500).verdict != "direct")
    # What would never end is read as such by clients.
    asked: dict[str, Any] = {"plan": plan, "moved_gb": 100, "elapsed_s": 300}
    answer = remote.replan(**asked)
    assert answer.keep.duration_s == inf
    assert answer == mirror.replan(**asked)
    keep(changing.db, {}, (LINK,), 0)
    eventually(lambda: planned(changing) == before)
    # A watcher that has died is not believed for ever.
    eventually(lambda: planned_after(changing.db, DOWN, 2, changing)["verdict"] != "direct")
    eventually(lambda: planned(changing) == before)
    mirror.close()


def test_a_watched_fleet_is_shown_to_those_who_may_see_it(watching: Served) -> None:
    def watch() -> Any:
        return watching.get("/v1/watch", **watching.by("read")).json["watch"]

    eventually(lambda: (found := watch()) and found["role"] == "prober")
    eventually(lambda: watch()["unreachable"])
    assert watch()["daily_budget_usd"] == 1
    assert watching.get("/v1/watch").status == 401
    # What needs no token names no host and no money.
    ready = watching.get("/readyz")
    assert set(ready.json["watch"]) == {"role", "last_look_age_s", "legs_down", "legs_degraded"}
    assert b"login.example" not in ready.content
    assert b"192.0.2." not in ready.content
    metrics = watching.get("/metrics", **watching.by("read")).content.decode()
    assert "relayd_watch_budget_usd 1.0" in metrics
    for name in ("links_down", "links_degraded", "last_probe_age_seconds"):
        assert f"\nrelayd_watch_{name} " in metrics


def test_without_a_fleet_nothing_is_watched(service: Served) -> None:
    assert service.get("/v1/watch").json["watch"] is None


def test_a_service_that_watches_measures_by_itself(watching: Served) -> None:
    refused = watching.ask("POST", "/v1/campaigns", {"budget_usd": 1}, watching.by("prober"))
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
