"""Failover on emulated datacenters: links that die are left within an interval, and used again."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import relayd
from planner.transfer.plan import Plan
from probes.campaign.specification import CampaignSpec
from probes.fleet.file import load_fleet
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.store.campaigns import Spending
from relayd.store.events import Event, Events
from relayd.times import utc_date
from relayd.watch.settings import WatchOptions
from relayd.watch.watcher import Watcher
from relayd.watch.webhook import SIGNATURE, Webhook
from tests.lab.end_to_end.campaigns import RELAYD, ROOT
from tests.lab.end_to_end.true_store import true_store
from tests.waiting import eventually

# Near each other: round trips of the lab below must not be faster than light.
_REGIONS = ("aws:us-east-1", "gcp:us-east1", "azure:eastus", "aws:us-east-2", "gcp:us-east4")
_SRC, _DST = _REGIONS[3], _REGIONS[4]
_INTERVAL_S = 4.0
_SECRET = "a secret of this test"
_MOMENT_S = 1.5
"""A busy machine, where all sites of the lab share the processors with the watcher."""


def _topology() -> Topology:
    sites = tuple(Site(name, 30.0, 30.0, 200_000) for name in _REGIONS)
    rtts = tuple(
        tuple(0.0 if i == j else 15.0 + 12.0 * abs(i - j) for j in range(len(_REGIONS)))
        for i in range(len(_REGIONS))
    )
    return Topology(sites, rtts)


@pytest.fixture
def lab(lab_of: Callable[..., Lab]) -> Iterator[Lab]:
    found = lab_of(_topology(), "watching")
    yield found
    found.clear()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store in which every link of the lab was measured, each of which fills a VM."""
    return true_store(tmp_path / "store.db", _topology(), len(_REGIONS), 64)


def _plan(db: Path) -> Plan:
    return relayd.open(db).plan(_SRC, _DST, volume_gb=1, vms=1, allow=list(_REGIONS))


def _links(db: Path) -> list[Event]:
    with open_store(db, mode="read") as store:
        return [event for event in Events(store.database).after(0) if event.kind == "leg"]


def _committed_usd(db: Path) -> float:
    with open_store(db, mode="read") as store:
        return Spending(store.database).committed_usd(utc_date(time.time()))


async def _until(what: Callable[[], Any], limit_s: float = 60.0) -> Any:
    return await asyncio.to_thread(partial(eventually, what, limit_s, every_s=0.2))


async def _changed(db: Path, subject: str, to: str, after_s: float) -> Event:
    """Wait for the event of a link's change; cheap, so that waiting does not slow the watcher."""

    def found() -> Event | None:
        return next(
            (
                event
                for event in _links(db)
                if event.at_s >= after_s and (event.subject, event.detail["to"]) == (subject, to)
            ),
            None,
        )

    event: Event = await _until(found)
    return event


@contextmanager
def _receiver() -> Iterator[tuple[str, list[tuple[dict[str, Any], str]]]]:
    """A real HTTP server that refuses the first event once; gives what it took, with signatures."""
    taken: list[tuple[dict[str, Any], str]] = []
    refused: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            at = self.headers[SIGNATURE].partition(",")[0].removeprefix("t=")
            expected = hmac.new(_SECRET.encode(), f"{at}.".encode() + body, sha256).hexdigest()
            genuine = self.headers[SIGNATURE] == f"t={at},v1={expected}"
            if refused:
                taken.append((json.loads(body), "genuine" if genuine else "forged"))
            self.send_response(204 if refused else 503)
            refused.append(1)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/relayd?key=1", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def _watching(lab: Lab, db: Path, options: WatchOptions) -> AsyncIterator[Watcher]:
    watcher = Watcher(db, load_fleet(lab.fleet_file), load_catalogue(), options, print)
    stop = asyncio.Event()
    running = asyncio.create_task(watcher.run(stop))
    try:
        yield watcher
    finally:
        stop.set()
        await running


def _soon_s(watcher: Watcher) -> float:
    """Within which an outage is to be known: an interval, unless the machine is too busy for it."""
    noticed_s: float = watcher.status()["outages_noticed_within_s"]
    return max(_INTERVAL_S, noticed_s) + _MOMENT_S


@pytest.mark.alone
def test_verdicts_leave_a_link_that_dies_and_come_back(lab: Lab, db: Path) -> None:
    async def story(url: str, taken: list[tuple[dict[str, Any], str]]) -> None:
        options = WatchOptions(
            5.0,
            interval_s=_INTERVAL_S,
            hold_intervals=2,
            campaign_every_s=float("inf"),
            webhook=Webhook(url, _SECRET),
        )
        async with _watching(lab, db, options) as watcher:
            await _until(lambda: watcher.status().get("legs", {}).get("up") == 20)
            assert _plan(db).verdict == "direct"

            begun_s = cut_s = time.time()
            lab.set_link(_SRC, _DST, {"state": "blackhole"})
            event = await _changed(db, f"{_SRC}>{_DST}", "down", cut_s)
            assert event.at_s - cut_s <= _soon_s(watcher)
            plan = _plan(db)
            assert plan.verdict == "relay"
            assert "is down since" in plan.reason
            assert "until it is back" in plan.reason
            assert any("plans will change" in warning for warning in plan.warnings)
            first = plan.paths[0].regions[1]

            # The relay's link dies as well: what survives is another one.
            cut_s = time.time()
            lab.set_link(first, _DST, {"state": "blackhole"})
            event = await _changed(db, f"{first}>{_DST}", "down", cut_s)
            assert event.at_s - cut_s <= _soon_s(watcher)
            plan = _plan(db)
            assert plan.verdict == "relay"
            assert plan.paths[0].regions[1] != first
            assert any(first in warning for warning in plan.warnings)

            # Each end notices by itself, in its own rhythm.
            await _changed(db, f"{_DST}>{_SRC}", "down", begun_s)
            await _changed(db, f"{_DST}>{first}", "down", begun_s)
            lab.clear()
            restored_s = time.time()
            back = await _changed(db, f"{_SRC}>{_DST}", "up", cut_s)
            assert back.at_s - restored_s >= options.policy.hold_s - 1.0
            assert _plan(db).verdict == "direct"
            for pair in ((_DST, _SRC), (first, _DST), (_DST, first)):
                await _changed(db, ">".join(pair), "up", cut_s)
            told = len(_links(db))
            await _until(lambda: len(taken) >= told)

    with _receiver() as (url, taken):
        asyncio.run(story(url, taken))
    assert {genuine for _, genuine in taken} == {"genuine"}
    assert [(body["id"], body["subject"]) for body, _ in taken] == [
        (event.id, event.subject) for event in _links(db)
    ]
    # Links fail both ways, and nothing else failed.
    assert len({body["subject"] for body, _ in taken}) == 4


@pytest.mark.alone
def test_a_slow_link_is_degraded_and_a_dead_host_is_judged_by_others(lab: Lab, db: Path) -> None:
    async def story() -> None:
        options = WatchOptions(5.0, interval_s=4.0, campaign_every_s=float("inf"))
        async with _watching(lab, db, options) as watcher:

            def states() -> dict[tuple[str, str], str]:
                return {(s["src"], s["dst"]): s["condition"] for s in watcher.status()["not_up"]}

            await _until(lambda: watcher.status().get("legs", {}).get("up") == 20)
            lab.set_link(_SRC, _DST, {"rtt_ms": 250})
            await _until(lambda: states().get((_SRC, _DST)) == "degraded")
            link = relayd.open(db).links(_SRC, _DST)[0]
            assert 240 < link.rtt_ms.expected < 270
            lab.set_host(_REGIONS[0], {"state": "blackhole"})
            # It can't be probed from any more; the probes of it stand in for those.
            await _until(
                lambda: all(
                    states().get(pair) == "down"
                    for other in _REGIONS[1:]
                    for pair in ((_REGIONS[0], other), (other, _REGIONS[0]))
                )
            )
            assert len(states()) == 10
            assert _REGIONS[0] in watcher.status()["unreachable"]

    asyncio.run(story())


@pytest.mark.alone
def test_a_killed_watcher_goes_on_where_it_was(lab: Lab, db: Path) -> None:
    def down() -> bool:
        query = "SELECT count(*) FROM link_states WHERE condition = 'down'"
        with closing(sqlite3.connect(db)) as connection:
            return int(connection.execute(query).fetchone()[0]) == 2

    watch = f"measure watch --fleet {lab.fleet_file} --db {db} --interval 4s --hold 1"
    watch += " --daily-budget 1usd --campaign-every never --json"
    command = [*RELAYD, *watch.split()]

    async def story() -> None:
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as first:
            try:
                await _until(lambda: _committed_usd(db) > 0)
                lab.set_link(_SRC, _DST, {"state": "blackhole"})
                await _until(down)
            finally:
                os.kill(first.pid, signal.SIGKILL)
        assert _plan(db).verdict == "relay"
        spent_usd, events = _committed_usd(db), len(_links(db))
        assert events == 2
        with subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as second:
            try:
                await _until(lambda: _committed_usd(db) > spent_usd)
                await asyncio.sleep(3)
                assert down()
                assert len(_links(db)) == events  # known already: no news
                lab.clear()
                await _until(lambda: _plan(db).verdict == "direct")
            finally:
                second.send_signal(signal.SIGTERM)
            assert second.stdout
            status = json.loads(second.stdout.read())
        assert second.returncode == 0
        assert status["legs"]["watched"] == 20
        assert spent_usd < status["spent_today_usd"] <= 1.0

    asyncio.run(story())


@pytest.mark.thorough
def test_a_daily_budget_holds(lab: Lab, db: Path) -> None:
    budget_usd = 0.01
    options = WatchOptions(
        budget_usd,
        interval_s=4.0,
        campaign_every_s=3600.0,
        spec=CampaignSpec(phases=("rtt", "per-flow"), thorough=True, flow_s=4.0),
    )

    async def story() -> dict[str, Any]:
        async with _watching(lab, db, options) as watcher:
            await _until(lambda: watcher.status().get("last_campaign"), 150.0)
            assert watcher.status()["last_campaign"]["left_out"] > 0
        return watcher.status()

    status = asyncio.run(story())
    with closing(sqlite3.connect(db)) as connection:
        ((probes_usd, done),) = connection.execute(
            "SELECT sum(usd), count(*) FILTER (WHERE stage = 'per-flow' AND status = 'done') "
            "FROM probes"
        )
        days = connection.execute(
            "SELECT sum(reserved_usd), sum(spent_usd) FROM watch_spending GROUP BY day ORDER BY day"
        ).fetchall()  # two where it runs over midnight
    assert done > 0
    assert 0 < probes_usd < sum(spent for _, spent in days)
    assert all(spent <= budget_usd for _, spent in days)
    assert abs(sum(reserved for reserved, _ in days)) < 1e-12
    assert status["spent_today_usd"] == pytest.approx(days[-1][1])
