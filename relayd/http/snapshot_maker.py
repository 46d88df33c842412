"""Makes snapshots of new samples at intervals, and says what keeps it from that."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from planner.model.errors import RelaydError
from relayd.http.problems import ProblemError, problem_of
from relayd.http.workers import Workers
from relayd.snapshots.building import make_snapshot
from relayd.sources.wan import Wan
from relayd.store import Location, open_store
from relayd.times import utc_text

LOG = logging.getLogger(__name__)
FIRST_AFTER_S = 1.0
"""Samples seldom come alone: wait for those that come with them."""
LIMIT_S = 600.0
"""Longest time for one snapshot; no caller waits for it."""
MOST_TIMES_LATER = 16
"""After many failures in a row, the wait grows to this multiple of the usual one."""


class SnapshotMaker:
    """Makes snapshots of what was sent to this service, at most every so often.

    Parameters
    ----------
    workers : Workers
        Estimating all links takes a second or more, so it is done in a further process.
    path : Path or Address
        The store.
    every_s : float
        0 for never: another process makes them.

    Attributes
    ----------
    failures : int
        Attempts that failed since the service began.
    """

    def __init__(self, workers: Workers, path: Location, every_s: float) -> None:
        self._workers = workers
        self._path = path
        self._every_s = every_s
        self._wanted = asyncio.Event()
        self._wanted_at_s: float | None = None
        self._problem = ""
        self._failing_since_s = 0.0
        self.failures = 0

    def want(self) -> None:
        """Ask for a snapshot: there are new samples."""
        if self._wanted_at_s is None:
            self._wanted_at_s = time.time()
        self._wanted.set()

    def waiting_s(self) -> float:
        """Return for how long the first of the new samples has waited; 0 where none has."""
        if self._wanted_at_s is None or not self._every_s:
            return 0.0
        return max(0.0, time.time() - self._wanted_at_s)

    def warning(self) -> str | None:
        """Return since when snapshots fail and why, or are overdue."""
        if self._problem:
            return f"Snapshots fail since {utc_text(self._failing_since_s)}: {self._problem}"
        if self._wanted_at_s and self.waiting_s() > self._every_s + LIMIT_S:
            return (
                f"New samples wait for a snapshot since {utc_text(self._wanted_at_s)}, longer than "
                "one takes."
            )
        return None

    async def run(self, version: Callable[[], str]) -> None:
        """Make snapshots as they are wanted, for ever; after failures later and later."""
        failed = 0
        while self._every_s:
            await self._wanted.wait()
            await asyncio.sleep(FIRST_AFTER_S)
            self._wanted.clear()
            began_at_s, began_s = time.time(), time.monotonic()
            try:
                name = await self._workers.ask_apart(version(), make, self._path, limit_s=LIMIT_S)
                self._problem, failed = "", 0
                self._wanted_at_s = began_at_s if self._wanted.is_set() else None
                seconds = round(time.monotonic() - began_s, 3)
                LOG.info("made snapshot", extra={"snapshot": name, "seconds": seconds})
            except Exception as error:  # noqa: BLE001 - the next attempt may go well
                self._wanted.set()  # again, later
                self._note(error)
                failed += 1
            await asyncio.sleep(self._every_s * min(2 ** max(0, failed - 1), MOST_TIMES_LATER))

    def _note(self, error: Exception) -> None:
        if not self._problem:
            self._failing_since_s = time.time()
        # As a client may read it: without paths.
        self._problem = str(problem_of(error))
        self.failures += 1
        if isinstance(error, RelaydError | ProblemError):
            LOG.warning("snapshot", extra={"problem": str(error)})
        else:
            LOG.error("fault", exc_info=error)


def make(wan: Wan, path: Location) -> str | None:
    """Make a snapshot in a process of its own; return its id."""
    with open_store(path, mode="write") as store:
        snapshot = make_snapshot(store, wan.catalogue)
    return snapshot.id if snapshot else None
