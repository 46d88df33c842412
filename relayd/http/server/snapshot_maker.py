"""Makes snapshots of new samples at intervals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from planner.model.errors import RelaydError
from relayd.http.middleware.logs import Log
from relayd.http.responses.problems import ProblemError
from relayd.http.server.memory import release_memory
from relayd.http.server.workers import Workers
from relayd.sources.wan import Wan
from relayd.store import Location

FIRST_AFTER_S = 1.0
"""Samples seldom come alone: wait for those that come with them."""


class SnapshotMaker:
    """Makes snapshots of what was sent to this service, at most every so often.

    Parameters
    ----------
    workers : Workers
        Estimating all links takes a second or more, so it is done there.
    path : Path or Address
        The store.
    every_s : float
        0 for never: somebody else makes them.
    """

    def __init__(self, workers: Workers, path: Location, every_s: float, log: Log) -> None:
        self._workers = workers
        self._path = path
        self._every_s = every_s
        self._log = log
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Ask for a snapshot: there are new samples."""
        self._wanted.set()

    async def run(self, version: Callable[[], str]) -> None:
        """Make snapshots as they are wanted, for ever."""
        while self._every_s:
            await self._wanted.wait()
            await asyncio.sleep(FIRST_AFTER_S)
            self._wanted.clear()
            began_s = time.monotonic()
            try:
                name = await self._workers.ask(version(), make, self._path)
                self._log.info(
                    "made snapshot", snapshot=name, seconds=round(time.monotonic() - began_s, 3)
                )
            except (RelaydError, ProblemError) as error:
                self._wanted.set()  # again, later
                self._log.warning("snapshot", problem=str(error))
            await asyncio.sleep(self._every_s)


def make(wan: Wan, path: Location) -> str | None:
    """Make a snapshot in a worker; returns its id."""
    from relayd.snapshots.building import make_snapshot
    from relayd.store import open_store

    with open_store(path, mode="write") as store:
        snapshot = make_snapshot(store, wan.catalogue)
    release_memory()
    return snapshot.id if snapshot else None
