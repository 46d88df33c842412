"""A client of the service for programs without an event loop: ``relayd.open("http://...")``."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from planner.model.network import Network, Snapshot
from relayd.client.asynchronous import AsyncWan
from relayd.client.connection import TIMEOUT_S
from relayd.client.errors import ServiceError
from relayd.questions.methods import Asking
from relayd.store.events import Event
from relayd.tables.link_table import LinkTable

T = TypeVar("T")
P = ParamSpec("P")


class Loop:
    """An event loop in a thread of its own, started when first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = 0
        self._loop: asyncio.AbstractEventLoop
        self._last: asyncio.Future[Callable[[], Awaitable[None]] | None]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; cancel it if the waiting is interrupted."""
        self._start()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_running(self) -> bool:
        """Return whether the loop runs in this process."""
        return self._thread is not None and not self.is_inherited

    @property
    def is_inherited(self) -> bool:
        """Return whether it ran in the parent of a fork, whose threads this process lacks."""
        return self._thread is not None and self._process != os.getpid()

    def stop(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Await ``last``, cancel what still runs, and end the thread.

        The garbage collector may call this in any thread, the loop's own included.
        """
        with self._lock:
            thread, is_running, self._thread = self._thread, self.is_running, None
            if thread is None or not is_running:
                return
            self._loop.call_soon_threadsafe(self._last.set_result, last)
        if thread is not threading.current_thread():
            thread.join()

    def _start(self) -> None:
        with self._lock:
            if not self.is_running:
                started: Future[None] = Future()
                self._thread = threading.Thread(
                    target=asyncio.run,
                    args=(self._until_stopped(started),),
                    name="relayd-client",
                    daemon=True,
                )
                self._process = os.getpid()
                self._thread.start()
                started.result()

    async def _until_stopped(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        stopped = self._last = self._loop.create_future()
        started.set_result(None)
        if last := await stopped:
            await last()


class Driver:
    """An :class:`AsyncWan` on a :class:`Loop`, for any thread and for forked processes.

    Parameters
    ----------
    owner : object
        When it is collected, or at the end of the process, connections are closed.
    url, **options
        See :class:`relayd.client.asynchronous.AsyncWan`.
    """

    def __init__(self, owner: object, url: str, **options: Any) -> None:
        self.url = url
        self._make = partial(AsyncWan, url, **options)
        self._lock = threading.Lock()
        self._loop, self._wan = Loop(), self._make()
        self._inherited: list[object] = []
        weakref.finalize(owner, self.close)

    @property
    def wan(self) -> AsyncWan:
        """The client; a forked process has its own."""
        with self._lock:
            if self._loop.is_inherited:
                # A fork shares its parent's sockets and selector: neither use nor close them.
                self._inherited += [self._loop, self._wan]
                self._loop, self._wan = Loop(), self._make()
            return self._wan

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine of :attr:`wan`, and return its result."""
        try:
            return self._loop.run(work)
        except CancelledError:
            raise ServiceError(self.url, "was not waited for: the client was closed") from None

    @property
    def is_open(self) -> bool:
        """Return whether the loop is running, so that closing must stop it."""
        return self._loop.is_running

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._loop.stop(self._wan.close)


def _driven(
    method: Callable[Concatenate[AsyncWan, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RemoteWan, P], T]:
    """Return a coroutine method of :class:`AsyncWan` as one that waits for the answer."""

    @wraps(method)
    def waiting(self: RemoteWan, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._driver.run(method(self._driver.wan, *args, **kwargs))

    return waiting


class RemoteWan(Asking):
    """A service's view of the network, with the methods of :class:`relayd.sources.wan.Wan`.

    Any thread may use it, and so may a process that was forked. Use it as a context manager, or
    call :meth:`close`; else connections are closed when it is collected or the process ends.

    Parameters
    ----------
    url, token, ca, timeout_s, attempts
        See :class:`relayd.client.asynchronous.AsyncWan`.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        attempts: int = 4,
    ) -> None:
        self._driver = Driver(self, url, token=token, ca=ca, timeout_s=timeout_s, attempts=attempts)

    def __repr__(self) -> str:
        """Say which service it asks."""
        return f"<RemoteWan at {self._driver.url}>"

    def __enter__(self) -> RemoteWan:
        """Open nothing yet: connections are made when first used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._driver.close()

    ask = _driven(AsyncWan.ask)
    plans = _driven(AsyncWan.plans)
    regions = _driven(AsyncWan.regions)
    sites = _driven(AsyncWan.sites)
    matrix = _driven(AsyncWan.matrix)
    ingest = _driven(AsyncWan.ingest)
    begin_transfer = _driven(AsyncWan.begin_transfer)
    report_transfer = _driven(AsyncWan.report_transfer)
    end_transfer = _driven(AsyncWan.end_transfer)
    transfer = _driven(AsyncWan.transfer)
    transfers = _driven(AsyncWan.transfers)
    outcomes = _driven(AsyncWan.outcomes)

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on now."""
        return self._driver.run(self._driver.wan.snapshot())

    @property
    def network(self) -> Network:
        """The whole graph of estimates."""
        return self._driver.run(self._driver.wan.network())

    def refresh(self) -> Snapshot:
        """Return the snapshot that answers rest on: the service takes up newer ones by itself."""
        return self.snapshot

    def links(self, src: str | None = None, dst: str | None = None) -> LinkTable:
        """Return links, all or those from or into one region."""
        return LinkTable(self._driver.run(_listed(self._driver.wan.links(src, dst))))

    def events(self, after: int | None = None) -> Generator[Event]:
        """Yield events; see :meth:`relayd.client.asynchronous.AsyncWan.events`."""
        events = self._driver.wan.events(after)
        try:
            while True:
                yield self._driver.run(_next(events))
        except StopAsyncIteration:
            return
        finally:
            if self._driver.is_open:
                self._driver.run(events.aclose())


async def _next(events: AsyncGenerator[Event]) -> Event:
    return await anext(events)


async def _listed(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]
