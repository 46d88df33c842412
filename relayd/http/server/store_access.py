"""The store from an event loop: one thread that reads and one that writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from planner.model.errors import StoreError
from relayd.http.responses.problems import ProblemError
from relayd.store import Location, Store, open_store
from relayd.store.opening import Mode

T = TypeVar("T")
MOST_WAITING = 256


class StoreAccess:
    """Runs functions on a store, each in the thread whose connection it is.

    A connection that failed is closed, and the next function gets a new one: the service goes
    on by itself when a database is back.

    Parameters
    ----------
    path : Path or Address
    """

    def __init__(self, path: Location) -> None:
        self.path = path
        self._reader = _Side(path, "read")
        self._writer = _Side(path, "create")

    async def read(self, function: Callable[[Store], T]) -> T:
        """Run a function that reads, and return its result.

        Raises
        ------
        StoreError
            If the store can't be read.
        ProblemError
            503 if too many wait for it already.
        """
        return await self._reader.run(function)

    async def write(self, function: Callable[[Store], T]) -> T:
        """Run a function that writes, and return its result; it is on disk then."""
        return await self._writer.run(function)

    @property
    def waiting(self) -> int:
        """How many functions wait or run."""
        return self._reader.waiting + self._writer.waiting

    async def close(self) -> None:
        """Finish what is being written, and close."""
        await self._writer.close()
        await self._reader.close()


class _Side:
    def __init__(self, path: Location, mode: Mode) -> None:
        self._path = path
        self._mode: Mode = mode
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-{mode}")
        self.waiting = 0

    async def run(self, function: Callable[[Store], T]) -> T:
        if self.waiting >= MOST_WAITING:
            raise ProblemError(
                503,
                "unavailable",
                "Too many requests wait for the store. Try again.",
                headers={"Retry-After": "1"},
            )
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            # What is being written is finished, also if who asked has gone.
            return await asyncio.shield(loop.run_in_executor(self._thread, self._run, function))
        finally:
            self.waiting -= 1

    def _run(self, function: Callable[[Store], T]) -> T:
        try:
            if self._store is None:
                self._store = open_store(self._path, mode=self._mode)
            return function(self._store)
        except StoreError:
            self._close()
            raise

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=True)
