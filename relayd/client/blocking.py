"""A client of the service for programs without an event loop: ``relayd.open("http://...")``."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from planner.model.answer import Recommendation
from planner.model.catalogue import Catalogue
from planner.model.network import Network, Snapshot
from relayd.client.asynchronous import AsyncWan
from relayd.client.connection import TIMEOUT_S
from relayd.questions.asking import Asking
from relayd.store.events import Event
from relayd.tables.link_table import LinkTable
from relayd.transfers.reporting import ReportedTransfer, TransferOptions

T = TypeVar("T")
P = ParamSpec("P")


class Loop:
    """An event loop in a thread of its own, started when first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_current(self) -> bool:
        """Whether this is its thread, which can't wait for itself."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; cancel it if the waiting is interrupted."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="relayd-client", daemon=True
                )
                self._thread.start()
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_loop = Loop()
"""Of all clients of this process."""
_of_parents: list[Loop] = []


def _after_fork() -> None:
    """Begin a loop of the child's own: it has no thread of its parent, and shares its sockets."""
    global _loop
    _of_parents.append(_loop)  # not collected, which would close them
    _loop = Loop()


os.register_at_fork(after_in_child=_after_fork)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine of a client, from any thread and in forked processes."""
    return _loop.run(work)


def close(wan: AsyncWan) -> None:
    """Close the connections of a client; the garbage collector may do so in any thread."""
    if not wan.is_open:
        return
    if _loop.is_current:
        asyncio.get_running_loop().create_task(wan.close())
    else:
        wait_for(wan.close())


def _waiting(
    method: Callable[Concatenate[AsyncWan, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RemoteWan, P], T]:
    """Make a coroutine method of :class:`AsyncWan` one that waits for the answer."""

    @wraps(method)
    def waiting(self: RemoteWan, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(method(self._wan, *args, **kwargs))

    return waiting


class WaitingTransfer(ReportedTransfer):
    """A transfer for programs without an event loop: ``with wan.transfer(plan) as transfer:``."""

    def __enter__(self) -> Self:
        """Begin it."""
        wait_for(self.begin())
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """End it."""
        wait_for(self.end(error))


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
        self._wan = AsyncWan(url, token=token, ca=ca, timeout_s=timeout_s, attempts=attempts)
        self.url = self._wan.url
        weakref.finalize(self, close, self._wan)

    def __repr__(self) -> str:
        """Say which service it asks."""
        return f"<RemoteWan at {self.url}>"

    def __enter__(self) -> RemoteWan:
        """Open nothing yet: connections are made when first used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        close(self._wan)

    ask = _waiting(AsyncWan.ask)
    plans = _waiting(AsyncWan.plans)
    decide = _waiting(AsyncWan.decide)
    regions = _waiting(AsyncWan.regions)
    sites = _waiting(AsyncWan.sites)
    matrix = _waiting(AsyncWan.matrix)
    ingest = _waiting(AsyncWan.ingest)
    begin_transfer = _waiting(AsyncWan.begin_transfer)
    report_transfer = _waiting(AsyncWan.report_transfer)
    end_transfer = _waiting(AsyncWan.end_transfer)
    transfer_details = _waiting(AsyncWan.transfer_details)
    transfer_rate = _waiting(AsyncWan.transfer_rate)
    transfers = _waiting(AsyncWan.transfers)
    pools = _waiting(AsyncWan.pools)
    network_if_changed = _waiting(AsyncWan.network_if_changed)

    def transfer(
        self, plan: Recommendation | Mapping[str, Any], **options: Unpack[TransferOptions]
    ) -> WaitingTransfer:
        """Carry out a plan; see :class:`~relayd.transfers.reporting.ReportedTransfer`."""
        return WaitingTransfer(self.tell, plan, **options)

    def tell(self, call: Callable[[AsyncWan], T]) -> T:
        """Call a function with the client for asyncio, to report transfers."""
        return call(self._wan)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that the service rests on, prices included."""
        return wait_for(self._wan.catalogue())

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on now."""
        return wait_for(self._wan.snapshot())

    @property
    def network(self) -> Network:
        """The whole graph of estimates."""
        return wait_for(self._wan.network())

    def refresh(self) -> Snapshot:
        """Return the snapshot that answers rest on: the service takes up newer ones by itself."""
        return self.snapshot

    def links(self, src: str | None = None, dst: str | None = None) -> LinkTable:
        """Return links, all or those from or into one region."""
        return LinkTable(wait_for(_listed(self._wan.links(src, dst))))

    def events(self, after: int | None = None) -> Generator[Event]:
        """Yield events; see :meth:`relayd.client.asynchronous.AsyncWan.events`."""
        events = self._wan.events(after)
        try:
            while (event := wait_for(_next(events))) is not None:
                yield event
        finally:
            if self._wan.is_open:
                wait_for(events.aclose())


async def _next(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)


async def _listed(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]
