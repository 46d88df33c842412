"""The store of a watcher, in a thread of its own: waiting for a disk never delays a probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from relayd.store import Location, Store, open_store
from relayd.store.leases import Lease

T = TypeVar("T")
STATEMENT_TIMEOUT_S = 15.0
"""For a statement on a server; long work uses connections of its own."""


class StoreThread:
    """One connection to a store, used from one thread; the store is created if missing."""

    def __init__(self, db: str | Location) -> None:
        self.db = db
        self._pool = ThreadPoolExecutor(1, "relayd-watch-store")
        self._store: Store | None = None
        self._lease: Lease | None = None

    async def __aenter__(self) -> StoreThread:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._in_thread(self._close)
        finally:
            self._pool.shutdown(wait=True)

    async def do(self, use: Callable[[Store], T]) -> T:
        """Use the store, and wait for the result; StoreError if it can't be used just now."""
        return await self._in_thread(lambda: use(self._opened()))

    @property
    def lease(self) -> Lease:
        """The prober's lease, which was acquired; writers on other connections need it, too."""
        assert self._lease is not None
        return self._lease

    async def acquire_lease(self) -> bool:
        """Acquire the prober's lease if it is free; return whether it is held here now.

        Raises StoreError if the store can't tell.
        """

        def acquire() -> bool:
            store = self._opened()
            if self._lease is None:
                self._lease = store.new_lease("prober")
            if not self._lease.acquire():
                return False
            store.lease = self._lease
            return True

        return await self._in_thread(acquire)

    async def _in_thread(self, use: Callable[[], T]) -> T:
        # Shielded: a step that has begun is finished although its caller was cancelled, so that
        # no connection in use is closed.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, use))

    def _opened(self) -> Store:
        if self._store is None:
            self._store = open_store(
                self.db, mode="create", statement_timeout_s=STATEMENT_TIMEOUT_S
            )
        return self._store

    def _close(self) -> None:
        if self._lease is not None:
            self._lease.release()
        if self._store is not None:
            self._store.close()
