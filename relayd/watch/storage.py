"""The store of a watcher, in a thread of its own: waiting for a disk never holds up a probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from relayd.store import Place, Store, open_store
from relayd.store.leader_lock import Election, election

T = TypeVar("T")


class StoreThread:
    """One connection to a store, used from one thread.

    Parameters
    ----------
    db : str, Path or Address
        Made where there is none.
    """

    def __init__(self, db: str | Place) -> None:
        self.db = db
        self._pool = ThreadPoolExecutor(1, "relayd-watch-store")
        self._store: Store | None = None
        self._standing: Election | None = None

    async def __aenter__(self) -> StoreThread:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._in_thread(self._close)
        finally:
            self._pool.shutdown(wait=True)

    async def do(self, use: Callable[[Store], T]) -> T:
        """Use the store, and wait for the result.

        Raises
        ------
        StoreError
            If the database can't be used just now.
        """
        return await self._in_thread(lambda: use(self._opened()))

    async def stand(self) -> bool:
        """Take the office of prober if it is free; return whether it is held here now.

        Ask again now and then: on a server, the office ends with the session that holds it.

        Raises
        ------
        StoreError
            If that can't be found out.
        """

        def stand() -> bool:
            if self._standing is None:
                self._standing = election(self._opened(), "prober")
            return self._standing.stand()

        return await self._in_thread(stand)

    async def _in_thread(self, use: Callable[[], T]) -> T:
        # A step that has begun is finished even if nobody waits for it any more: shielded, so
        # that a cancelled watcher does not close a connection in use.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, use))

    def _opened(self) -> Store:
        if self._store is None:
            self._store = open_store(self.db, mode="create")
        return self._store

    def _close(self) -> None:
        if self._standing is not None:
            self._standing.resign()
        if self._store is not None:
            self._store.close()
