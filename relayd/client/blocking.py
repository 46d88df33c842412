"""The service for programs without an event loop: what ``relayd.open("http://...")`` returns."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import (
    AsyncGenerator,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from planner.broadcast.plan import BroadcastPlan
from planner.model.answer import Answer
from planner.model.catalogue import Region
from planner.model.errors import RelaydError
from planner.model.network import Link, Network, Site, Snapshot
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.replanning.plan import Replan
from planner.schedule.plan import SchedulePlan
from planner.shuffle.plan import ShufflePlan
from planner.transfer.plan import Plan
from probes.samples import Sample
from relayd.client.answers import Ingested
from relayd.client.asynchronous import AsyncWan
from relayd.client.connection import TIMEOUT_S
from relayd.client.options import (
    BroadcastOptions,
    ReduceOptions,
    ScheduleOptions,
    ShuffleOptions,
    TasksOptions,
    TransferOptions,
)
from relayd.store.events import Event

if TYPE_CHECKING:
    from relayd.sources.matrices import Matrix, MatrixMetric

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, begun when first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work; it ends when the waiting is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_ours(self) -> bool:
        """Whether it runs in this process: threads do not survive a fork."""
        return self._loop is not None and self._process == os.getpid()

    @property
    def is_inherited(self) -> bool:
        """Whether it ran in the process that this one was forked from."""
        return self._loop is not None and self._process != os.getpid()

    def stop(self) -> None:
        """End the thread."""
        if self.is_ours and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if not self.is_ours:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_run_until_stopped, args=(loop,), name="relayd-client", daemon=True
                )
                thread.start()
                self._loop, self._process = loop, os.getpid()
            assert self._loop is not None
            return self._loop


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class RemoteWan:
    """A service's view of the network, with the methods of :class:`relayd.sources.wan.Wan`.

    Any thread may use it, and so may a process that was forked. Use it as a context manager, or
    call :meth:`close`.

    Parameters
    ----------
    url, token, timeout_s, attempts
        See :class:`relayd.client.asynchronous.AsyncWan`.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout_s: float = TIMEOUT_S, attempts: int = 4
    ) -> None:
        self._options = {"token": token, "timeout_s": timeout_s, "attempts": attempts}
        self._url = url
        self._lock = threading.Lock()
        self._loop = Loop()
        self._remote = AsyncWan(url, **self._options)  # type: ignore[arg-type]
        weakref.finalize(self, _close, self._loop, self._remote)

    def __repr__(self) -> str:
        """Say which service it asks."""
        return f"<RemoteWan at {self._url}>"

    def __enter__(self) -> RemoteWan:
        """Open nothing yet: connections are made when first used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        _close(self._loop, self._remote)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def _asked(self) -> AsyncWan:
        with self._lock:
            if self._loop.is_inherited:
                # A fork shares its parent's sockets, which must not be written by both.
                self._loop = Loop()
                self._remote = AsyncWan(self._url, **self._options)  # type: ignore[arg-type]
            return self._remote

    # ---- decisions -----------------------------------------------------------------------

    def plan(self, src: str, dst: str, **options: Unpack[TransferOptions]) -> Plan:
        """Recommend how to move a volume; see :meth:`.Wan.plan`."""
        return self._run(self._asked().plan(src, dst, **options))

    def plans(self, requests: Iterable[Mapping[str, Any]]) -> list[Plan | RelaydError]:
        """Answer many requests; see :meth:`relayd.client.asynchronous.AsyncWan.plans`."""
        return self._run(self._asked().plans(requests))

    def shuffle(
        self,
        demands_gb: Any,
        *,
        regions: Sequence[str] | None = None,
        **options: Unpack[ShuffleOptions],
    ) -> ShufflePlan:
        """Recommend how to run many transfers at once; see :meth:`.Wan.shuffle`."""
        return self._run(self._asked().shuffle(demands_gb, regions=regions, **options))

    def broadcast(
        self, src: str, destinations: Sequence[str], **options: Unpack[BroadcastOptions]
    ) -> BroadcastPlan:
        """Recommend how to bring one volume to several; see :meth:`.Wan.broadcast`."""
        return self._run(self._asked().broadcast(src, destinations, **options))

    def schedule(
        self,
        transfers: Any = None,
        *,
        existing: SchedulePlan | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> SchedulePlan:
        """Admit transfers with deadlines; see :meth:`.Wan.schedule`."""
        return self._run(self._asked().schedule(transfers, existing=existing, **options))

    def place_reduce(
        self, input_gb: Mapping[str, float], **options: Unpack[ReduceOptions]
    ) -> ReducePlacement:
        """Recommend where to reduce; see :meth:`.Wan.place_reduce`."""
        return self._run(self._asked().place_reduce(input_gb, **options))

    def place_tasks(
        self,
        tasks: Mapping[str, float] | Sequence[str],
        traffic_gb: Any,
        vms: Sequence[Mapping[str, Any]],
        **options: Unpack[TasksOptions],
    ) -> TaskPlacement:
        """Recommend on which VM to run which task; see :meth:`.Wan.place_tasks`."""
        return self._run(self._asked().place_tasks(tasks, traffic_gb, vms, **options))

    def replan(
        self,
        plan: Answer,
        *,
        moved_gb: float | Mapping[tuple[str, str], float],
        elapsed_s: float,
        changes: int = 0,
        month_to_date_gb: Mapping[str, float] = {},
        vm_types: Mapping[str, str] = {},
    ) -> Replan:
        """Say whether to keep to a plan in progress; see :meth:`.Wan.replan`."""
        return self._run(
            self._asked().replan(
                plan,
                moved_gb=moved_gb,
                elapsed_s=elapsed_s,
                changes=changes,
                month_to_date_gb=month_to_date_gb,
                vm_types=vm_types,
            )
        )

    # ---- what is known -------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on now."""
        return self._run(self._asked().snapshot())

    @property
    def network(self) -> Network:
        """The whole graph of estimates."""
        return self._run(self._asked().network())

    def refresh(self) -> Snapshot:
        """Return the snapshot that answers rest on: the service takes up newer ones by itself."""
        return self.snapshot

    def regions(self) -> list[Region]:
        """Return the catalogue's baseline regions and all measured ones."""
        return self._run(self._asked().regions())

    def sites(self) -> dict[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return self._run(self._asked().sites())

    def links(self, src: str | None = None, dst: str | None = None) -> Iterator[Link]:
        """Iterate over links, all or those from or into one region."""
        return iter(self._run(_listed(self._asked(), src, dst)))

    def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int | None = None,
        *,
        measured_only: bool = False,
    ) -> Matrix:
        """Return one figure for every pair of regions; see :meth:`.Wan.matrix`."""
        return self._run(self._asked().matrix(metric, connections, measured_only=measured_only))

    # ---- what is given and told ----------------------------------------------------------

    def ingest(self, samples: Iterable[Sample]) -> Ingested:
        """Send measurements; see :meth:`relayd.client.asynchronous.AsyncWan.ingest`."""
        return self._run(self._asked().ingest(samples))

    def events(self, after: int | None = None) -> Generator[Event]:
        """Yield what happens; see :meth:`relayd.client.asynchronous.AsyncWan.events`."""
        events = self._asked().events(after)
        try:
            while True:
                try:
                    yield self._run(_next(events))
                except StopAsyncIteration:
                    return
        finally:
            self._run(events.aclose())


async def _next(events: AsyncGenerator[Event]) -> Event:
    return await anext(events)


async def _listed(remote: AsyncWan, src: str | None, dst: str | None) -> list[Link]:
    return [link async for link in remote.links(src, dst)]


def _close(loop: Loop, remote: AsyncWan) -> None:
    if loop.is_ours:
        loop.run(remote.close())
        loop.stop()
