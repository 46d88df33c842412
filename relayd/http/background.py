"""Background work of a service: reading the store, making snapshots, watching its fleet."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.errors import RelaydError
from planner.model.link_states import Health
from probes.fleet.file import load_fleet
from relayd.catalogue.loading import load_catalogue
from relayd.http.problems import ProblemError, problem_of
from relayd.http.settings import ServiceSettings, watch_options
from relayd.http.workers import Workers
from relayd.snapshots.building import make_snapshot
from relayd.sources.wan import Wan
from relayd.store import Location, open_store
from relayd.times import utc_text

if TYPE_CHECKING:
    from relayd.watch.watcher import Watcher

LOG = logging.getLogger(__name__)
FIRST_AFTER_S = 1.0
"""Samples seldom come alone: a snapshot waits for those that come with them."""
LIMIT_S = 600.0
"""Longest time for one snapshot; no caller waits for it."""
MOST_TIMES_LATER = 16
"""After many failures in a row, the wait grows to this multiple of the usual one."""


async def forever(
    event: str,
    work: Callable[[], Awaitable[object]],
    every_s: float,
    stop: asyncio.Event,
    *,
    most_times_later: int = 1,
) -> None:
    """Do some work at intervals until stopped; what fails is logged, and tried again.

    After failures in a row it is tried later and later, up to a multiple of the interval.
    """
    failed = 0
    while not stop.is_set():
        try:
            await work()
            failed = 0
        except (RelaydError, ProblemError) as error:
            LOG.warning(event, extra={"problem": str(error)})
            failed += 1
        except Exception as error:
            LOG.error("fault", exc_info=error)
            failed += 1
        pause_s = every_s * min(2 ** max(0, failed - 1), most_times_later)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause_s)


class SnapshotMaker:
    """Makes snapshots of what was sent to this service.

    Estimating all links takes a second or more, so it is done in a further process.
    """

    def __init__(self, workers: Workers, path: Location) -> None:
        self._workers = workers
        self._path = path
        self._wanted = asyncio.Event()
        self._wanted_at_s: float | None = None
        self._problem = ""
        self._failing_since_s = 0.0
        self.failures = 0  # since the service began

    def want(self) -> None:
        """Ask for a snapshot: there are new samples."""
        if self._wanted_at_s is None:
            self._wanted_at_s = time.time()
        self._wanted.set()

    def waiting_s(self) -> float:
        """Return for how long the first of the new samples has waited; 0 where none has."""
        return 0.0 if self._wanted_at_s is None else max(0.0, time.time() - self._wanted_at_s)

    def warning(self, every_s: float) -> str | None:
        """Return since when snapshots fail and why, or are overdue."""
        if self._problem:
            return f"Snapshots fail since {utc_text(self._failing_since_s)}: {self._problem}"
        if self._wanted_at_s and self.waiting_s() > every_s + LIMIT_S:
            return (
                f"New samples wait for a snapshot since {utc_text(self._wanted_at_s)}, longer than "
                "one takes."
            )
        return None

    async def make(self, version: str) -> None:
        """Make a snapshot when one is wanted; it stays wanted if this fails."""
        await self._wanted.wait()
        await asyncio.sleep(FIRST_AFTER_S)
        self._wanted.clear()
        began_at_s = time.time()
        try:
            name = await self._workers.ask_apart(version, _make, self._path, limit_s=LIMIT_S)
        except Exception as error:
            self._wanted.set()
            self.failures += 1
            if not self._problem:
                self._failing_since_s = time.time()
            self._problem = str(problem_of(error))  # as a client may read it: without paths
            raise
        self._problem = ""
        self._wanted_at_s = began_at_s if self._wanted.is_set() else None
        seconds = round(time.time() - began_at_s, 3)
        LOG.info("made snapshot", extra={"snapshot": name, "seconds": seconds})


def _make(wan: Wan, path: Location) -> str | None:
    with open_store(path, mode="write") as store:
        snapshot = make_snapshot(store, wan.catalogue)
    return snapshot.id if snapshot else None


class FleetWatch:
    """A watcher inside the service, if a fleet and a budget are set.

    If several services share a store, one probes and the others stand by.
    """

    def __init__(self, settings: ServiceSettings, db: Location, catalogues: Sequence[Path]) -> None:
        self._settings = settings
        self._db = db
        self._catalogues = catalogues
        self._watcher: Watcher | None = None
        self.is_on = bool(settings.fleet and settings.watch_daily_budget_usd)

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until stopped."""
        self._watcher = await asyncio.to_thread(self._make)
        await self._watcher.run(stop)

    def status(self, *keys: str) -> Any:
        """Return the watcher's status, or what it has under some keys; None without it."""
        found: Any = self._watcher.status() if self._watcher else None
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def links_health(self, states: Collection[object]) -> Health:
        """Return how the watched links are together; `states` has those in trouble."""
        if states:
            return "bad"
        status = self.status() or {}
        if status.get("role") == "standby":  # another process watches, and stores what fails
            return "good"
        if (age_s := status.get("last_look_age_s")) is None:
            return "unknown"
        return "good" if age_s <= 2 * status["outages_noticed_within_s"] else "stale"

    def health(self) -> dict[str, Any] | None:
        """Return the part of the status that needs no token: no host, no address, no money."""
        if (status := self.status()) is None:
            return None
        return {
            "role": status["role"],
            "last_look_age_s": status.get("last_look_age_s"),
            "legs_down": self.status("legs", "down"),
            "legs_degraded": self.status("legs", "degraded"),
        }

    def _make(self) -> Watcher:
        from relayd.watch.watcher import Watcher  # loads asyncssh

        assert self._settings.fleet
        return Watcher(
            self._db,
            load_fleet(self._settings.fleet),
            load_catalogue(self._catalogues),
            watch_options(self._settings),
            lambda text: LOG.info("watch", extra={"note": text}),
        )
