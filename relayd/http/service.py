"""The service behind the routes: what it knows, its connections and its background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from planner.model.catalogue import Catalogue
from planner.model.errors import RelaydError
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Network, NewerSamples, Snapshot
from probes.importers.limits import PhysicalGate
from relayd.http.access import Access, RateLimits
from relayd.http.advice import advise
from relayd.http.answers import open_stored
from relayd.http.background import MOST_TIMES_LATER, FleetWatch, SnapshotMaker, forever
from relayd.http.campaigns import CampaignSupervisor, regions_of
from relayd.http.connections import Connections, most_connections
from relayd.http.fair_queue import FairQueue
from relayd.http.monitoring.metrics import Metrics, estimate_errors
from relayd.http.problems import ProblemError
from relayd.http.settings import ServiceSettings
from relayd.http.store_access import EventStream, StoreAccess
from relayd.http.workers import Workers
from relayd.questions.caveats import DisputedFigure, disputed_figures
from relayd.questions.holds import NONE_HELD, holds_of
from relayd.sources.addresses import over_addresses
from relayd.sources.stored import newer_than
from relayd.sources.wan import Wan
from relayd.store import Location, SnapshotRow, Store
from relayd.store.events import Events
from relayd.store.links import LinkStates
from relayd.store.samples.decisions import all_heeded
from relayd.store.tokens import FirstToken, Token, Tokens, first_token
from relayd.store.verifications import Verifications

LOG = logging.getLogger(__name__)
_OVERHEAD_BYTES = 250
"""Of a kept answer in addition to its key and value: two objects, a node of the table."""
NOTE_USED_EVERY_S = 60.0
"""Interval of writing to the store which tokens were used."""
RENEW_AFTER_S = 3600.0
"""Ages count in whole days, so a graph that was read an hour ago differs once a day at most."""
POLL_EVENTS_EVERY_S = 0.5
WATCH_AGAIN_S = 5.0
STOP_WATCHING_S = 15.0
"""For the watcher to store its results and to clean up its hosts."""


# ---- the state of knowledge ---------------------------------------------------------------------


class AnswerCache:
    """Bytes by key, at most so many in all; those that were not asked for longest go first.

    One cache belongs to one state of knowledge and goes with it, so nothing in it can be stale.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> bytes | None:
        """Return the value under a key."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def keep(self, key: str, value: bytes) -> None:
        """Keep a value; under two keys it counts twice, which is on the safe side."""
        cost = len(key) + _OVERHEAD_BYTES + len(value)
        if cost > self.most_bytes or key in self._entries:
            return
        self._entries[key] = value
        self.used_bytes += cost
        while self.used_bytes > self.most_bytes:
            old, gone = self._entries.popitem(last=False)
            self.used_bytes -= len(old) + _OVERHEAD_BYTES + len(gone)


@dataclass(frozen=True)
class Current:
    """A network and catalogue, with everything that was made from them."""

    wan: Wan
    """In memory: it reads nothing, so any thread may use it. Its network is widened for age."""
    version: str  # of this very object; changes also when a snapshot is read again
    network: Network  # as it was read, bounds not widened for age
    answers: AnswerCache
    read_at_s: float  # Unix time

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue, prices included."""
        return self.wan.catalogue

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of the network."""
        return self.network.snapshot

    @cached_property
    def disputes(self) -> list[DisputedFigure]:
        """The disputed figures of all links and caps."""
        network = self.network
        return disputed_figures(network, [(link.src, link.dst) for link in network])

    @cached_property
    def gate(self) -> PhysicalGate:
        """Tells which samples can't be measurements."""
        return PhysicalGate(self.catalogue)

    def answer(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return an answer that is made when first asked for."""
        if (body := self.answers.get(key)) is None:
            body = make()
            self.answers.keep(key, body)
        return body

    def with_states(self, states: Mapping[Pair, LinkState]) -> Current:
        """Return the same graph with other links that are down or degraded."""
        network = self.network.with_(link_states=states)
        other = _current(self.catalogue, network, self.answers.most_bytes)
        return replace(other, read_at_s=self.read_at_s)


def read_current(open_stored: Callable[[], Wan], cache_bytes: int) -> Current:
    """Read the newest snapshot; takes some 100 ms, so not on the event loop."""
    with closing(open_stored()) as stored:
        catalogue = stored.catalogue
        network = over_addresses(stored.as_read(), catalogue, "auto")
    return _current(catalogue, network, cache_bytes)


def _current(catalogue: Catalogue, network: Network, cache_bytes: int) -> Current:
    wan, now_s = Wan(catalogue, network), time.time()
    _ = wan.network  # widened for age here, once
    return Current(
        wan, f"{network.snapshot.id}@{now_s:.6f}", network, AnswerCache(cache_bytes), now_s
    )


# ---- the service --------------------------------------------------------------------------------


class Service:
    """Everything that handlers use.

    The store is made where there is none; `catalogues` are a user's own files.
    """

    current: Current  # the state of knowledge that answers rest on, once the service has begun

    def __init__(self, settings: ServiceSettings, db: Location, catalogues: Sequence[Path]) -> None:
        self.settings = settings
        self.access = Access(needs_tokens=not settings.no_auth)
        self.limits = RateLimits(settings.requests_per_s, settings.burst)
        self.connections = Connections(
            most_connections(settings.max_connections), settings.read_timeout_s
        )
        self.store = StoreAccess(db)
        self.in_flight = 0
        self.watcher = FleetWatch(settings, db, catalogues)
        self.campaigns = CampaignSupervisor(
            settings.fleet, db, catalogues, watched=self.watcher.is_on
        )
        self.open_stored = partial(open_stored, db, catalogues, settings.fleet)
        self._state: _State
        self.holds = NONE_HELD
        self.free_at_s: dict[str, float] = {}  # of pools, after what was granted; monotonic
        self.stopping = asyncio.Event()
        self._knows_more = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.events = EventStream(self.store)
        self.workers = Workers(settings.workers or os.cpu_count() or 1, settings.answer_limit_s)
        self.metrics = Metrics(self.store, self.workers, settings.metrics_links)
        # Each takes a process of its own and, of a large store, a core for minutes.
        self.previews = FairQueue(1, 8, 2, "the effects of a decision")
        self.snapshots = SnapshotMaker(self.workers, db)

    def want_snapshot(self) -> None:
        """Ask for a snapshot of new samples, unless another process makes them."""
        if self.settings.snapshot_every_s:
            self.snapshots.want()

    def snapshot_age_s(self) -> float | None:
        """Return the age of the newest sample that answers rest on; None for a baseline."""
        latest = self._state.latest
        return None if latest is None else max(0.0, time.time() - latest.as_of_s)

    async def begin(self) -> None:
        """Open the store, read the newest snapshot, start the workers.

        Raises RelaydError if the store or the catalogue can't be used.
        """
        await self.store.write(lambda store: store.snapshots.latest())  # makes or upgrades it
        self._state = state = await self.store.read(_state)
        if problem := self.settings.tokens_problem(state.tokens):
            await self.store.close()
            raise problem
        self._renew_tokens(state.tokens)
        await self.read_holds()
        await self._read()
        await self.workers.warm(self.current.version)
        self._add_gauges()
        if await self.store.read(lambda store: _lacks_snapshot(store, state.latest)):
            self.want_snapshot()  # it ended before it could make one
        settings, stop = self.settings, self.stopping
        work = [
            forever("store", self.refresh, settings.refresh_s, stop),
            forever("advice", self.advise, settings.refresh_s, stop),
            forever("events", self.events.poll, POLL_EVENTS_EVERY_S, stop),
            forever("store", self.note_used_tokens, NOTE_USED_EVERY_S, stop),
            forever(
                "snapshot",
                lambda: self.snapshots.make(self.current.version),
                settings.snapshot_every_s,
                stop,
                most_times_later=MOST_TIMES_LATER,
            ),
        ]
        if self.watcher.is_on:
            work.append(forever("watch", lambda: self.watcher.run(stop), WATCH_AGAIN_S, stop))
        self._tasks += map(asyncio.create_task, work)

    async def make_first_token(self) -> FirstToken | None:
        """Give the store a token if it never had one and requests need one."""
        if self.settings.no_auth:
            return None
        made = await self.store.write(lambda store: first_token(Tokens(store.database)))
        if made:
            self._renew_tokens(await self.store.read(_tokens))
        return made

    def _renew_tokens(self, tokens: Sequence[Token]) -> None:
        self.access.renew(tokens)
        self.limits.own_per_s = {
            token.id: token.requests_per_s for token in tokens if token.requests_per_s is not None
        }

    def is_declared(self, region: str) -> bool:
        """Return whether the catalogue, the snapshot or the fleet file has a region.

        Samples may only be sent of these; the operator's imports reach the snapshot.
        """
        known = region in self.current.catalogue.regions or region in self.current.network.sites
        return known or region in regions_of(self.settings.fleet)

    async def end(self) -> None:
        """Wait for the watcher, interrupt campaigns, finish writing, and close."""
        self.stopping.set()
        if self.watcher.is_on and self._tasks:
            await asyncio.wait(self._tasks[-1:], timeout=STOP_WATCHING_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.campaigns.close()
        with contextlib.suppress(RelaydError, ProblemError):
            await self.note_used_tokens()
        self.metrics.close()
        self.workers.close()
        await self.store.close()

    async def _read(self) -> None:
        cache_bytes = int(self.settings.cache_mb * 1e6)
        current = await asyncio.to_thread(read_current, self.open_stored, cache_bytes)
        await self._adopt(current)
        about = {"snapshot": current.snapshot.id, "as_of": current.snapshot.as_of}
        LOG.info("snapshot", extra=about)

    async def _adopt(self, current: Current) -> None:
        """Answer from a state of knowledge from now on, here and in workers."""
        await asyncio.to_thread(
            self.workers.give, current.version, current.catalogue, current.network
        )
        self.current = current
        self._knows_more.set()

    async def advise(self) -> None:
        """Say by events which transfers had better change, on what is known since the last time."""
        await self._knows_more.wait()
        self._knows_more.clear()
        current = self.current
        try:
            await advise(self.store, self.workers, current.version, current.network, self.holds)
        except BaseException:
            self._knows_more.set()
            raise

    async def read_holds(self) -> None:
        """Take up what transfers hold by now."""
        self.holds = await self.store.read(lambda store: holds_of(store.database, time.time()))

    async def note_used_tokens(self) -> None:
        """Keep when tokens were used; what can't be kept now is tried again."""
        if used := dict(self.access.used_at_s):
            await self.store.write(lambda store: Tokens(store.database).note_used(used))
            self.access.used_at_s = dict(self.access.used_at_s.items() - used.items())

    async def refresh(self) -> None:
        """Take up new snapshots, tokens and link states of the store."""
        current, before = self.current, self._state
        try:
            state = await self.store.read(_state)
        except (RelaydError, ProblemError):
            # Link states expire all the same.
            left = still_believed(current.network.link_states, time.time())
            if len(left) < len(current.network.link_states):
                await self._adopt(current.with_states(left))
            raise
        self._renew_tokens(state.tokens)
        if state.events_through != (*self.holds.version, 0)[0]:
            await self.read_holds()
        network = current.network
        is_new = state.snapshot_id != before.snapshot_id
        if (
            is_new
            # States are compared, because they also expire without an event.
            or state.link_states != network.link_states
            or state.verification != before.verification
            or time.time() - current.read_at_s > RENEW_AFTER_S
            or _is_other(state.newer, network.newer_samples)
        ):
            await self._read()
            self._state = state
            if is_new and (old := before.latest) and (new := state.latest):
                # Compares samples taken between two snapshots with the estimates of the first.
                samples = await self.store.read(
                    lambda store: store.samples.newest(old.as_of_s, new.as_of_s)
                )
                self.metrics.estimated(estimate_errors(network.links, samples))

    def _add_gauges(self) -> None:
        for name, meaning, value in (*_GAUGES, *(_WATCH_GAUGES if self.watcher.is_on else ())):
            self.metrics.gauge(name, meaning, partial(value, self))
        failed = "Snapshots that failed since the service began."
        self.metrics.counter("snapshot_failures", failed, lambda: self.snapshots.failures)


_OWED = "How long the store has owed an answer; 0 where it owes none."
_AGE = "Age of the newest sample that answers rest on."
_LEFT = "Space left on the disk of a store in a file."
_WAITED = "How long new samples have waited for a snapshot."
_Gauge: TypeAlias = tuple[str, str, Callable[[Service], float | None]]
_GAUGES: tuple[_Gauge, ...] = (
    ("http_in_flight", "Requests being answered.", lambda it: it.in_flight),
    ("http_connections", "Open connections.", lambda it: len(it.connections)),
    ("plan_cache_bytes", "Memory of cached answers.", lambda it: it.current.answers.used_bytes),
    ("plan_cache_entries", "Cached answers.", lambda it: len(it.current.answers)),
    ("worker_queue", "Questions that wait or run in workers.", lambda it: it.workers.turns.pending),
    ("event_readers", "Readers of events.", lambda it: it.events.readers),
    ("store_queue", "Requests that wait for the store.", lambda it: it.store.waiting),
    ("store_silent_seconds", _OWED, lambda it: it.store.silent_s()),
    ("snapshot_age_seconds", _AGE, lambda it: it.snapshot_age_s()),
    ("snapshot_waiting_seconds", _WAITED, lambda it: it.snapshots.waiting_s()),
    ("store_free_bytes", _LEFT, lambda it: it.store.free_bytes()),
)
_SPENT, _DOWN = "Egress that measuring took today.", "Links that are down."
_DEGRADED = "Links that are degraded."
_BUDGET, _LOOK = "Most egress of a day.", "Time since the last liveness probe."
_WATCH_GAUGES: tuple[_Gauge, ...] = (
    ("watch_spent_today_usd", _SPENT, lambda it: it.watcher.status("spent_today_usd")),
    ("watch_budget_usd", _BUDGET, lambda it: it.watcher.status("daily_budget_usd")),
    ("watch_links_down", _DOWN, lambda it: it.watcher.status("legs", "down")),
    ("watch_links_degraded", _DEGRADED, lambda it: it.watcher.status("legs", "degraded")),
    ("watch_last_probe_age_seconds", _LOOK, lambda it: it.watcher.status("last_look_age_s")),
)


class _State(NamedTuple):
    """The store's state at one time."""

    latest: SnapshotRow | None
    tokens: list[Token]
    link_states: Mapping[Pair, LinkState]
    verification: int
    newer: NewerSamples | None
    events_through: int

    @property
    def snapshot_id(self) -> str | None:
        return self.latest and self.latest.id


def _is_other(found: NewerSamples | None, said: NewerSamples | None) -> bool:
    """Return whether the note on newer samples must change: not for each further one."""
    if found is None or said is None:
        return found is not said
    return found.reason != said.reason or found.samples >= 2 * said.samples


def _tokens(store: Store) -> list[Token]:
    return Tokens(store.database).list()


def _state(store: Store) -> _State:
    latest = store.snapshots.latest()
    return _State(
        latest,
        _tokens(store),
        LinkStates(store.database).now(time.time()),
        Verifications(store.database).last_id(),
        newer_than(store, latest),
        Events(store.database).last_id(),
    )


def _lacks_snapshot(store: Store, latest: SnapshotRow | None) -> bool:
    """Return whether samples, or decisions about them, are newer than the latest snapshot."""
    through = latest.samples_through if latest else 0
    return store.samples.last_id() > through or not all_heeded(store.database)
