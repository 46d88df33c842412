"""The prober's lease, when the database restarts or another process has taken it."""

from __future__ import annotations

import asyncio
from math import inf
from pathlib import Path

import pytest

from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.watch import watcher as watching
from relayd.watch.settings import WatchOptions
from relayd.watch.watcher import Watcher
from tests.postgresql import running_server
from tests.relayd.building import unreachable
from tests.relayd.store.engines import PostgresqlSpot
from tests.relayd.test_watching import _PAIR, _until


@pytest.mark.postgresql
def test_there_is_one_prober_also_after_the_database_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_leases: None
) -> None:
    monkeypatch.setattr(watching, "STANDBY_S", 0.2)
    monkeypatch.setattr(watching, "STORE_RETRY_S", 0.2)
    options = WatchOptions(1.0, interval_s=2.0, campaign_every_s=inf)
    notes: list[str] = []

    async def story(spot: PostgresqlSpot) -> None:
        watchers = [
            Watcher(
                spot.where, unreachable(tmp_path, *_PAIR), load_catalogue(), options, notes.append
            )
            for _ in range(3)
        ]
        stop = asyncio.Event()
        running = [asyncio.create_task(watcher.run(stop)) for watcher in watchers]

        def roles() -> list[str]:
            assert not any(task.done() for task in running)
            return sorted(watcher.status()["role"] for watcher in watchers)

        one = ["prober", "standby", "standby"]
        await _until(lambda: roles() == one)
        # The server loses power; the holder's session is gone with it.
        await asyncio.to_thread(spot.server.crash)
        await _until(lambda: all(watcher.status()["problem"] for watcher in watchers))
        await asyncio.to_thread(spot.server.start)
        await _until(lambda: not any(watcher.status()["problem"] for watcher in watchers))
        await _until(lambda: roles() == one)
        # A process that is none of these takes the lease.
        with open_store(spot.where, mode="write") as store, store.new_lease("prober") as rival:
            assert rival.acquire(even_if_held=True)
            await _until(lambda: roles() == ["standby"] * 3)
            rival.check()
        await _until(lambda: roles() == one)
        stop.set()
        await asyncio.gather(*running)

    with running_server() as server:
        spot = PostgresqlSpot(server)
        open_store(spot.where, mode="create").close()
        asyncio.run(story(spot))
    assert any("could not be renewed" in note for note in notes)
