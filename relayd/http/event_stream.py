"""A stream of events: one query of the store for all readers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from planner.model.errors import RelaydError
from relayd.http.problems import ProblemError
from relayd.http.store_access import StoreAccess
from relayd.store.events import Event, Events

MOST_READERS = 256
POLL_EVERY_S = 0.5
PAGE = 500


class EventStream:
    """Events of the store, for any number of readers.

    Parameters
    ----------
    store : StoreAccess
    """

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._readers = 0
        self._last_id = 0
        self._news = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self.is_closed = False

    @property
    def readers(self) -> int:
        """How many read at the moment."""
        return self._readers

    async def last_id(self) -> int:
        """Return the id of the newest event."""
        return await self._store.read(lambda store: Events(store.database).last_id())

    async def after(self, last_id: int) -> list[Event]:
        """Return the events after one, at most a page of them."""
        return await self._store.read(
            lambda store: Events(store.database).after(last_id, limit=PAGE)
        )

    async def wait(self, last_id: int, timeout_s: float) -> None:
        """Return when there may be events after one, when time is up, or when it is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(lambda: self.is_closed or self._last_id > last_id)

    @contextlib.contextmanager
    def reader(self) -> Iterator[None]:
        """Count a reader, and poll for events while there is one."""
        if self._readers >= MOST_READERS:
            raise ProblemError(
                503,
                "unavailable",
                f"{MOST_READERS} readers of events are connected already.",
                retry_s=10,
            )
        self._readers += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._readers -= 1

    async def close(self) -> None:
        """Let all readers go."""
        self.is_closed = True
        async with self._news:
            self._news.notify_all()
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        while self._readers and not self.is_closed:
            with contextlib.suppress(RelaydError, ProblemError):  # it may go well the next time
                found = await self.last_id()
                if found > self._last_id:
                    async with self._news:
                        self._last_id = found
                        self._news.notify_all()
            await asyncio.sleep(POLL_EVERY_S)
