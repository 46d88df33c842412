"""Upkeep of a watched store: snapshots, events of level shifts, summaries of old samples."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from math import inf

from planner.model.catalogue import Catalogue
from planner.model.link_states import Pair
from planner.model.network import Network
from probes.estimation.current_samples import LinkShift
from probes.metrics import THROUGHPUT
from probes.samples import OWN, Sample
from relayd.snapshots.building import make_snapshot
from relayd.sources.stored import StoredWan
from relayd.store import Store, open_store
from relayd.store.events import Events
from relayd.store.links import LevelShifts, LinkStates
from relayd.store.samples.ingest import append
from relayd.store.samples.retention import compact
from relayd.times import utc_text
from relayd.transfers.register import forget_reports
from relayd.watch.links import WatchedLinks
from relayd.watch.settings import DAY_S, WatchOptions
from relayd.watch.storage import StoreThread

COMPACTED = "compacted_s"
"""Of a change of level, in its event."""


@dataclass
class Upkeep:
    """Does the work that is due, each time it is called."""

    storage: StoreThread
    catalogue: Catalogue
    options: WatchOptions
    links: WatchedLinks
    on_note: Callable[[str], None] = lambda _: None
    snapshot_at_s: float = 0.0
    snapshot_id: str = ""
    _began_s: float = field(default_factory=time.time)
    _kept_at_s: float = field(default_factory=time.time)
    _seen_id: int = -1
    _measured_since_s: float = 0.0
    _busy: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take over the latest snapshot."""
        self._measured_since_s = time.time() - self.links.policy.trust_rate_s
        await self._expect_latest()

    async def check(self, now_s: float) -> None:
        """Do the work that is due; slow work continues in its own threads."""
        await self._store_probes(now_s)
        last_id, latest, compacted_s = await self.storage.do(
            lambda store: (
                store.samples.last_id(),
                store.snapshots.latest(),
                store.database.metadata(COMPACTED),
            )
        )
        if last_id != self._seen_id:
            # First, while the expected rates do not yet rest on these samples.
            self._seen_id = last_id
            await self._judge_throughput(now_s)
        if latest and latest.id != self.snapshot_id:
            await self._expect_latest()  # by a campaign, an import, or another process
        if self._busy and self._busy.done():
            ended, self._busy = self._busy, None
            ended.result()  # a busy store is reported, and tried again next time
        if self._busy is None:
            known = latest.samples_through if latest else 0
            age_s = now_s - latest.created_at_s if latest else inf
            if last_id != known and age_s >= self._every_s(self.options.snapshot_every_s, now_s, 6):
                self._busy = asyncio.create_task(asyncio.to_thread(self._new_snapshot))
            elif now_s - (compacted_s or 0.0) >= DAY_S and self.options.retain_s < inf:
                self._busy = asyncio.create_task(asyncio.to_thread(self._compact))

    async def end(self) -> None:
        """Store the probes, and wait for the work under way."""
        await self._store_probes(inf)
        if self._busy:
            await asyncio.wait([self._busy])
            self._busy.exception()  # there is no next time

    # ---- liveness probes and throughput --------------------------------------------------------

    def _every_s(self, usual_s: float, now_s: float, intervals: int) -> float:
        """Return a period, which is shorter at first: no round trip is slow before one is known."""
        learns = not self.links.answered <= self.links.usual_ms.keys()
        if learns and now_s - self._began_s < self.options.keep_every_s:
            return min(usual_s, intervals * self.options.interval_s)
        return usual_s

    async def _store_probes(self, now_s: float) -> None:
        if now_s - self._kept_at_s < self._every_s(self.options.keep_every_s, now_s, 3):
            return
        self._kept_at_s = time.time()
        if samples := self.links.take_samples():
            await self.storage.do(lambda store: append(store, samples, "liveness probes"))

    async def _judge_throughput(self, now_s: float) -> None:
        since_s, self._measured_since_s = self._measured_since_s, now_s
        pairs = list(self.links.healths)
        # A probe is stored some time after it began.
        samples = await self.storage.do(lambda store: new_throughput(store, pairs, since_s - 600.0))
        self.links.measured(samples)

    async def _expect_latest(self) -> None:
        # On its own connection: a network takes a while to read.
        network, at_s = await asyncio.to_thread(self._latest)
        if network is not None:
            self.links.expect(network)
            self.snapshot_id, self.snapshot_at_s = network.snapshot.id, at_s

    def _latest(self) -> tuple[Network | None, float]:
        with open_store(self.storage.db, mode="read") as store:
            latest = store.snapshots.latest()
        if latest is None:
            return None, 0.0
        with closing(StoredWan(self.catalogue, self.storage.db)) as wan:
            return wan.as_read(), latest.created_at_s

    # ---- in threads ----------------------------------------------------------------------------

    def _new_snapshot(self) -> None:
        shifts: list[LinkShift] = []
        with open_store(self.storage.db, mode="write") as store:
            store.lease = self.storage.lease
            snapshot = make_snapshot(store, self.catalogue, on_shift=shifts.append)
            with store.database.transaction():
                events, known = Events(store.database), LevelShifts(store.database)
                if snapshot:
                    events.add("snapshot", snapshot.id, {"as_of": snapshot.as_of})
                for shift in shifts:
                    if known.add(shift):
                        detail = {
                            "src": shift.src,
                            "dst": shift.dst,
                            "metric": shift.metric,
                            "before": shift.before,
                            "after": shift.after,
                            "since": utc_text(shift.at_s),
                        }
                        events.add("shift", f"{shift.src}>{shift.dst}", detail)
            store.snapshots.prune(self.options.snapshots_kept)

    def _compact(self) -> None:
        with open_store(self.storage.db, mode="write") as store:
            store.lease = self.storage.lease
            done = compact(store, self.options.retain_s)
            forget_reports(store.database, time.time() - self.options.retain_s)
            with store.database.transaction():
                store.database.set_metadata(COMPACTED, time.time())
                LinkStates(store.database).forget_before(time.time() - DAY_S)
        if done.samples:
            self.on_note(f"Summarised {done.samples} old samples: {done.summaries} summaries.")


def new_throughput(store: Store, pairs: list[Pair], since_s: float) -> list[Sample]:
    """Return the throughput samples of pairs since a time, the oldest first.

    Those of the own prober, or of a link's only source: reports of others on a link that the
    prober measures do not degrade it.
    """
    throughput: list[Sample] = []
    for src, dst in pairs:
        for metric in THROUGHPUT:
            samples = store.samples.read(src=src, dst=dst, metric=metric, since_s=since_s)
            if not len(samples):
                continue
            sources = store.samples.sources(src, dst, metric)
            if OWN in sources:
                throughput += samples[samples.rows["source"] == samples.names[OWN]]
            elif len(sources) == 1:
                throughput += samples
    return sorted(throughput, key=lambda sample: sample.measured_at_s)
