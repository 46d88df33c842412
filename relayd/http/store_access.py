"""The store from an event loop: one thread that reads, one that writes, and a stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from planner.model.errors import RelaydError, StoreError
from relayd.http.fair_queue import FairQueue
from relayd.http.problems import ProblemError
from relayd.store import Location, Store, open_store
from relayd.store.events import Event, Events
from relayd.store.failures import ConnectionLostError
from relayd.store.opening import Mode

T = TypeVar("T")
MOST_READERS = 256
PAGE = 500
MOST_WAITING = 256
STATEMENT_TIMEOUT_S = 8.0
"""For a statement on a server; a session that ended unheard is given up 5 s later."""
LIMIT_S = 30.0
"""For a function, its turn included."""
MOST_OF_ONE = 64
"""Of one caller: those of others are still taken in."""


class StoreAccess:
    """Runs functions on a store, each in the thread whose connection it is.

    A connection that failed is closed, and the next function gets a new one: the service goes
    on by itself when a database is back. A function that lost its connection before it committed
    anything is run once more on a new one. Callers take turns.
    """

    def __init__(self, path: Location) -> None:
        self.path = path
        self._reader = _Side(path, "read")
        self._writer = _Side(path, "create")

    async def read(self, function: Callable[[Store], T]) -> T:
        """Run a function that reads, and return its result.

        Raises StoreError if the store can't be read; ProblemError: 429 if too many of this caller
        wait for it already, 503 if too many of all, or if it takes longer than :data:`LIMIT_S`.
        """
        return await self._reader.run(function)

    async def write(self, function: Callable[[Store], T]) -> T:
        """Run a function that writes, and return its result; it is on disk then.

        Where it takes too long, it is left out unless it has begun.
        """
        return await self._writer.run(function)

    async def answers(self, limit_s: float) -> bool:
        """Return whether the store can be read, within a time."""
        with contextlib.suppress(StoreError, ProblemError, TimeoutError):
            await asyncio.wait_for(self.read(lambda store: store.snapshots.latest()), limit_s)
            return True
        return False

    async def takes_changes(self, limit_s: float) -> bool:
        """Tell whether the store can be written: by trying, where the last change failed."""
        if self._writer.has_failed:
            with contextlib.suppress(StoreError, ProblemError, TimeoutError):
                trying = self.write(
                    lambda it: it.database.set_metadata("written_at_s", time.time())
                )
                await asyncio.wait_for(trying, limit_s)
        return not self._writer.has_failed

    def silent_s(self) -> float:
        """Return for how long the store has owed the answer to what runs now."""
        now_s = time.monotonic()
        return max(now_s - (side.began_s or now_s) for side in (self._reader, self._writer))

    def free_bytes(self) -> int | None:
        """Return the space left for the file and its log; None for a server, or if unknown."""
        if isinstance(self.path, Path):
            with contextlib.suppress(OSError):
                found = os.statvfs(self.path.resolve().parent)
                return found.f_bavail * found.f_frsize
        return None

    @property
    def waiting(self) -> int:
        """The number of functions that wait or run."""
        return self._reader.turns.pending + self._writer.turns.pending

    async def close(self) -> None:
        """Finish what is being written, and close."""
        await self._reader.close()
        await self._writer.close()  # last, because it can empty and remove the log of SQLite


class _Side:
    def __init__(self, path: Location, mode: Mode) -> None:
        self._path = path
        self._mode: Mode = mode
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-{mode}")
        self.turns = FairQueue(1, MOST_WAITING, MOST_OF_ONE, "the store")
        self.began_s: float | None = None
        self.has_failed = False
        self._half_done = False

    async def run(self, function: Callable[[Store], T]) -> T:
        """Return a function's result, or raise a ProblemError (503) if that takes too long."""
        running: asyncio.Future[T] | None = None
        try:
            async with asyncio.timeout(LIMIT_S), self.turns.turn():
                loop = asyncio.get_running_loop()
                running = loop.run_in_executor(self._thread, self._run, function)
                # What is being written is finished, also if who asked has gone.
                return await asyncio.shield(running)
        except TimeoutError:
            if running is not None:
                running.cancel()
            detail = (
                f"The store has not answered for {LIMIT_S:g} s. What it has begun to write it "
                "still finishes. Try again: a sample that is there already is not stored, nor "
                "decided about, twice."
            )
            raise ProblemError(503, "unavailable", detail, retry_s=5) from None

    def _run(self, function: Callable[[Store], T]) -> T:
        self.began_s, self._half_done = time.monotonic(), False
        try:
            try:
                found = self._tried(function)
            except ConnectionLostError:
                if self._half_done:
                    raise
                found = self._tried(function)
        except Exception as error:
            self.has_failed = _is_of_the_store(error)
            raise
        finally:
            self.began_s = None
        self.has_failed = False
        return found

    def _tried(self, function: Callable[[Store], T]) -> T:
        if self._store is None:
            self._store = open_store(
                self._path, mode=self._mode, statement_timeout_s=STATEMENT_TIMEOUT_S
            )
        database = self._store.database
        before = database.commits
        try:
            return function(self._store)
        except Exception as error:
            self._half_done = database.commits > before
            if _is_of_the_store(error):
                self._close()
            raise

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=True)


def _is_of_the_store(error: Exception) -> bool:
    """Tell whether an error may have left a connection in disorder: it is not the request's."""
    return isinstance(error, StoreError) or not isinstance(error, RelaydError)


class EventStream:
    """Events of the store, for any number of readers; one poll serves them all."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._last_id = 0
        self._news = asyncio.Condition()
        self.readers = 0
        self.is_closed = False

    async def last_id(self) -> int:
        """Return the id of the newest event."""
        return await self._store.read(lambda store: Events(store.database).last_id())

    async def after(self, last_id: int, timeout_s: float) -> list[Event]:
        """Return the next events after one, at most a page; none once the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(lambda: self.is_closed or self._last_id > last_id)
        if self.is_closed or self._last_id <= last_id:
            return []
        return await self._store.read(
            lambda store: Events(store.database).after(last_id, limit=PAGE)
        )

    @contextlib.contextmanager
    def reader(self) -> Iterator[None]:
        """Count a reader; while there is one, the service polls for events.

        Raises a ProblemError (503) if there are :data:`MOST_READERS` already.
        """
        if self.readers >= MOST_READERS:
            detail = f"{MOST_READERS} readers of events are connected already."
            raise ProblemError(503, "unavailable", detail, retry_s=10)
        self.readers += 1
        try:
            yield
        finally:
            self.readers -= 1

    async def close(self) -> None:
        """Let all readers go."""
        self.is_closed = True
        async with self._news:
            self._news.notify_all()

    async def poll(self) -> None:
        """Look for new events, if anyone reads them."""
        with contextlib.suppress(RelaydError, ProblemError):  # it may go well the next time
            if self.readers and (found := await self.last_id()) > self._last_id:
                async with self._news:
                    self._last_id = found
                    self._news.notify_all()
