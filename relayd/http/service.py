"""The service behind the routes: its state, its connections and its background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.errors import RelaydError
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Network, NewerSamples
from relayd.http.access import Access, RateLimits
from relayd.http.campaigns.supervisor import CampaignSupervisor, regions_of
from relayd.http.connections import Connections, most_connections
from relayd.http.current_state import RENEW_AFTER_S, Current, open_source, read_current, with_states
from relayd.http.fair_queue import FairQueue
from relayd.http.monitoring.metrics import Exposition, Metrics, estimate_errors
from relayd.http.problems import ProblemError
from relayd.http.settings import ServiceSettings
from relayd.http.snapshot_maker import SnapshotMaker
from relayd.http.store_access import EventStream, StoreAccess
from relayd.http.watcher_supervisor import WatcherSupervisor
from relayd.http.workers import Workers
from relayd.sources.stored import newer_than
from relayd.store import Location, SnapshotRow, Store
from relayd.store.changes import record_change
from relayd.store.links import LinkStates
from relayd.store.samples.decisions import all_heeded
from relayd.store.tokens import FirstToken, Token, Tokens, first_token
from relayd.store.verifications import Verifications

if TYPE_CHECKING:
    from relayd.http.monitoring.telemetry import Telemetry

LOG = logging.getLogger(__name__)
NOTE_USED_EVERY_S = 60.0
"""Interval of writing to the store which tokens were used."""


class Service:
    """Everything that handlers use.

    Parameters
    ----------
    settings : ServiceSettings
    db : Path or Address
        The store; made where there is none.
    catalogues : sequence of Path
        A user's own catalogue files.
    telemetry : Telemetry | None
        Where traces and metrics are sent.

    Attributes
    ----------
    current : Current
        The state of knowledge that answers rest on, once the service has begun.
    """

    current: Current

    def __init__(
        self,
        settings: ServiceSettings,
        db: Location,
        catalogues: Sequence[Path],
        telemetry: Telemetry | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.access = Access(needs_tokens=not settings.no_auth)
        self.limits = RateLimits(settings.requests_per_s, settings.burst)
        self.connections = Connections(most_connections(settings.max_connections))
        self.store = StoreAccess(db)
        self.telemetry = telemetry
        self.is_stopping = False
        self.in_flight = 0
        self.watcher = WatcherSupervisor(settings, db, catalogues)
        self.campaigns = CampaignSupervisor(
            settings.fleet, db, catalogues, watched=self.watcher.is_on
        )
        self.open_source = partial(open_source, db, catalogues, settings.fleet)
        self._cache_bytes = int(settings.cache_mb * 1e6)
        self._latest: SnapshotRow | None = None
        self._verification = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.events = EventStream(self.store)
        self.workers = Workers(settings.workers or os.cpu_count() or 1, settings.answer_limit_s)
        if telemetry:
            self.workers.span = self.store.span = telemetry.span
        self.exposition = Exposition(
            self.metrics, settings.metrics_links, self.store, self.workers, lambda: self.current
        )
        # Each takes a process of its own and, of a large store, a core for minutes.
        self.previews = FairQueue(1, 8, 2, "the effects of a decision")
        self.snapshots = SnapshotMaker(self.workers, db, settings.snapshot_every_s)

    async def kept_answer(
        self, current: Current, key: str, question: Callable[..., bytes], *arguments: Any
    ) -> bytes:
        """Return an answer that a worker makes once for each state of knowledge."""
        if (body := current.plans.get(key)) is None:
            body = await self.workers.ask(current.version, question, *arguments)
            current.plans.keep(key, body)
        return body

    def snapshot_age_s(self) -> float | None:
        """Return the age of the newest sample that answers rest on; None for a baseline."""
        return None if self._latest is None else max(0.0, time.time() - self._latest.as_of_s)

    async def begin(self) -> None:
        """Open the store, read the newest snapshot, start the workers.

        Raises
        ------
        RelaydError
            If the store or the catalogue can't be used.
        """
        await self.store.write(lambda store: store.snapshots.latest())  # makes or upgrades it
        state = await self.store.read(_state)
        self._latest, self._verification = state.latest, state.verification
        if problem := self.settings.tokens_problem(state.tokens):
            await self.store.close()
            raise problem
        self._renew_tokens(state.tokens)
        await self._read()
        await self.workers.warm(self.current.version)
        self._add_gauges()
        if await self.store.read(lambda store: _lacks_snapshot(store, state.latest)):
            self.snapshots.want()  # it ended before it could make one
        work = [
            self._forever(self.settings.refresh_s, self.refresh),
            self._forever(NOTE_USED_EVERY_S, self.note_used_tokens),
            self.watcher.run(),
            self.snapshots.run(lambda: self.current.version),
        ]
        if self.telemetry:
            version = lambda: self.current.version  # noqa: E731
            work.append(self.telemetry.push_forever(self.exposition.text, self.workers, version))
        self._tasks += map(asyncio.create_task, work)

    async def make_first_token(self) -> FirstToken | None:
        """Give the store a token if it never had one and requests need one."""
        if self.settings.no_auth:
            return None
        if await self.store.read(lambda store: Tokens(store.database).list()):
            return None
        made = await self.store.write(lambda store: first_token(Tokens(store.database)))
        self._renew_tokens(await self.store.read(lambda store: Tokens(store.database).list()))
        return made

    def _renew_tokens(self, tokens: Sequence[Token]) -> None:
        self.access.renew(tokens)
        self.limits.own_per_s = {
            token.id: token.requests_per_s for token in tokens if token.requests_per_s is not None
        }

    async def record_change(self, action: str, subject: str, *, who: str, address: str) -> None:
        """Keep in the store who made or started something; the log has it in any case."""
        try:
            await self.store.write(
                lambda store: record_change(
                    store.database, action, subject, who=who, address=address
                )
            )
        except (RelaydError, ProblemError) as error:
            about = {"action": action, "problem": str(error)}
            LOG.warning("change not recorded", extra=about)

    def is_declared(self, region: str) -> bool:
        """Return whether the catalogue, the snapshot or the fleet file has a region.

        Samples may only be sent of these; the operator's imports reach the snapshot.
        """
        known = region in self.current.catalogue.regions or region in self.current.network.sites
        return known or region in regions_of(self.settings.fleet)

    async def begin_shutdown(self) -> None:
        """Say that the service is stopping, and end streams that never end by themselves."""
        self.is_stopping = True
        await self.events.close()

    async def end(self) -> None:
        """Stop background tasks, finish writing, and close."""
        await self.watcher.stop()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.campaigns.close()
        await self.note_used_tokens()
        self.exposition.close()
        if self.telemetry:
            await asyncio.to_thread(self.telemetry.close)
        self.workers.close()
        await self.store.close()

    async def _read(self) -> None:
        current = await asyncio.to_thread(read_current, self.open_source, self._cache_bytes)
        await self._adopt(current)
        about = {"snapshot": current.snapshot.id, "as_of": current.snapshot.as_of}
        LOG.info("snapshot", extra=about)

    async def _adopt(self, current: Current) -> None:
        """Answer from a state of knowledge from now on, here and in workers."""
        await asyncio.to_thread(
            self.workers.give, current.version, current.catalogue, current.network
        )
        self.current = current

    async def _expire_link_states(self) -> None:
        """Forget link states that expired, while the store can't be read."""
        now_s, states = time.time(), self.current.network.link_states
        left = still_believed(states, now_s)
        if len(left) < len(states):
            await self._adopt(with_states(self.current, left, self._cache_bytes, now_s))

    async def _forever(self, every_s: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do something at intervals; where it fails, the next attempt may go well."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await work()
            except (RelaydError, ProblemError) as error:
                LOG.warning("store", extra={"problem": str(error)})
            except Exception as error:
                LOG.error("fault", exc_info=error)

    async def note_used_tokens(self) -> None:
        """Keep when tokens were used; what can't be kept now is tried again."""
        if used := self.access.used():
            with contextlib.suppress(RelaydError, ProblemError):
                await self.store.write(lambda store: Tokens(store.database).note_used(used))
                self.access.forget_used(used)

    async def refresh(self) -> None:
        """Take up new snapshots, tokens and link states of the store."""
        try:
            state = await self.store.read(_state)
        except (RelaydError, ProblemError):
            await self._expire_link_states()
            raise
        self._renew_tokens(state.tokens)
        known = self._latest.id if self._latest else None
        found = state.latest.id if state.latest else None
        stale = time.time() - self.current.read_at_s > RENEW_AFTER_S
        verified = state.verification != self._verification
        # States are compared, because they also expire without an event.
        down = state.link_states != self.current.network.link_states
        behind = _is_other(state.newer, self.current.network.newer_samples)
        if found != known or down or verified or stale or behind:
            before, network = self._latest, self.current.network
            await self._read()
            self._latest, self._verification = state.latest, state.verification
            if before and state.latest and found != known:
                await self._record_estimate_errors(network, before, state.latest)

    async def _record_estimate_errors(
        self, network: Network, before: SnapshotRow, after: SnapshotRow
    ) -> None:
        """Compare samples taken between two snapshots with the estimates of the first."""
        found = await self.store.read(
            lambda store: store.samples.newest(before.as_of_s, after.as_of_s)
        )
        self.metrics.estimated(estimate_errors(network.links, found))

    def _add_gauges(self) -> None:
        add = self.metrics.gauge
        add("http_in_flight", "Requests being answered.", lambda: self.in_flight)
        add("http_connections", "Open connections.", lambda: len(self.connections))
        add("plan_cache_bytes", "Memory of cached answers.", lambda: self.current.plans.used_bytes)
        add("plan_cache_entries", "Cached answers.", lambda: len(self.current.plans))
        add("worker_queue", "Questions that wait or run in workers.", lambda: self.workers.waiting)
        add("event_readers", "Readers of events.", lambda: self.events.readers)
        add("store_queue", "Requests that wait for the store.", lambda: self.store.waiting)
        add(
            "store_silent_seconds",
            "How long the store has owed an answer; 0 where it owes none.",
            self.store.silent_s,
        )
        add(
            "snapshot_age_seconds",
            "Age of the newest sample that answers rest on.",
            self.snapshot_age_s,
        )
        add(
            "snapshot_waiting_seconds",
            "How long new samples have waited for a snapshot.",
            self.snapshots.waiting_s,
        )
        self.metrics.counter(
            "snapshot_failures",
            "Snapshots that failed since the service began.",
            lambda: self.snapshots.failures,
        )
        for name, (meaning, read) in self.watcher.gauges().items():
            add(name, meaning, read)
        add(
            "store_free_bytes",
            "Space left on the disk of a store in a file.",
            self.store.free_bytes,
        )


class _State(NamedTuple):
    """The store's state at one time."""

    latest: SnapshotRow | None
    tokens: list[Token]
    link_states: Mapping[Pair, LinkState]
    verification: int
    newer: NewerSamples | None


def _is_other(found: NewerSamples | None, said: NewerSamples | None) -> bool:
    """Return whether the note on newer samples must change: not for each further one."""
    if found is None or said is None:
        return found is not said
    return found.reason != said.reason or found.samples >= 2 * said.samples


def _state(store: Store) -> _State:
    latest = store.snapshots.latest()
    return _State(
        latest,
        Tokens(store.database).list(),
        LinkStates(store.database).now(time.time()),
        Verifications(store.database).last_id(),
        newer_than(store, latest),
    )


def _lacks_snapshot(store: Store, latest: SnapshotRow | None) -> bool:
    """Return whether samples, or decisions about them, are newer than the latest snapshot."""
    through = latest.samples_through if latest else 0
    return store.samples.last_id() > through or not all_heeded(store.database)
