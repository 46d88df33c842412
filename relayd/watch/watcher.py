"""Continuous operation as one object, for the service and for a shell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, StoreError
from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions
from relayd.store import Location, Store
from relayd.store.campaigns import Campaigns, Spending
from relayd.store.events import Events
from relayd.store.leases import CHECK_EVERY_S, Lease
from relayd.store.links import LinkStates
from relayd.times import utc_date
from relayd.watch.campaigns import CampaignScheduler, settle_killed
from relayd.watch.links import WatchedLinks, health_detail
from relayd.watch.liveness import LivenessMonitor, region_pairs
from relayd.watch.settings import WatchOptions
from relayd.watch.storage import StoreThread
from relayd.watch.upkeep import Upkeep
from relayd.watch.webhook import Notifier

STANDBY_S = 1.0
"""Between two attempts to acquire the lease."""
UPKEEP_S = 5.0
STORE_RETRY_S = 2.0


@dataclass
class Watcher:
    """Watches a fleet: run it, ask for its status, stop it.

    Of several watchers on one store, one probes and the others stand by; one of them takes over
    within seconds when it ends, however it does.
    """

    db: str | Location  # the store
    fleet: Fleet
    catalogue: Catalogue
    options: WatchOptions
    # Called with a line that the operator should read
    on_note: Callable[[str], None] = lambda _: None
    _role: str = "stopped"
    _prober: _Prober | None = None

    def __post_init__(self) -> None:
        if len({host.region for host in self.fleet}) < 2:
            remedy = "Add hosts of others."
            raise InputError(self.fleet.name, "has fewer than two regions", remedy=remedy)
        self.problem = ""  # with its store just now

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until stopped; store all results, and leave nothing on any host.

        Raises StoreError if the store can't be used at all.
        """
        async with StoreThread(self.db) as storage:
            await storage.do(lambda store: store.snapshots.latest())
            try:
                while not stop.is_set():
                    try:
                        if await self._acquire_lease(storage, stop):
                            await self._probe(storage, stop)
                    except StoreError as error:  # a database that restarts is only a pause
                        self._role = "standby"
                        self.note(error)
                        await _wait(stop, STORE_RETRY_S)
            finally:
                self._role = "stopped"

    def status(self) -> dict[str, Any]:
        """Return the status as plain values: for a health check, metrics and people."""
        status: dict[str, Any] = {
            "role": self._role,
            "problem": self.problem,
            "interval_s": self.options.interval_s,
            "daily_budget_usd": self.options.daily_budget_usd,
        }
        return status if self._prober is None else status | self._prober.status()

    async def _acquire_lease(self, storage: StoreThread, stop: asyncio.Event) -> bool:
        """Wait until no other watcher or campaign is on this store; False if stopped before."""
        is_noted = False
        while not stop.is_set():
            acquired = await storage.acquire_lease()
            self.problem = ""
            if acquired:
                return True
            if not is_noted:
                is_noted, self._role, self._prober = True, "standby", None
                self.on_note("Another process probes for this store: standing by.")
            await _wait(stop, STANDBY_S)
        return False

    async def _until_lease_runs_out(self, lease: Lease) -> None:
        """Wait until the lease can't be renewed in time, or another process has it."""
        while lease.is_held:
            await asyncio.sleep(CHECK_EVERY_S)
        self._role = "standby"
        self.on_note("The lease on probing for this store could not be renewed: standing by.")

    async def _probe(self, storage: StoreThread, stop: asyncio.Event) -> None:
        owner = await storage.do(lambda store: Campaigns(store).controller)
        # An owner of its own: a campaign's processes on a host are not ours to end.
        timeouts = Timeouts(connect_s=min(10.0, max(3.0, self.options.interval_s)))
        async with Sessions(
            self.fleet, f"{owner}-watch", timeouts=timeouts, permit=storage.lease.check
        ) as sessions:
            prober = _Prober(self, storage, sessions)
            await prober.begin()
            # The role is shown once the prober knows the hosts that it can't reach.
            self._prober, self._role = prober, "prober"
            await prober.run(stop.wait(), self._until_lease_runs_out(storage.lease))

    def note(self, error: StoreError) -> None:
        """Tell of a problem with the store; each is told once."""
        if str(error) != self.problem:
            self.on_note(f"{error} Trying again.")
        self.problem = str(error)


async def _wait(stop: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await stop.wait()


class _Prober:
    """Everything that the one probing watcher of a store does, once it has begun."""

    monitor: LivenessMonitor
    scheduler: CampaignScheduler

    def __init__(self, watcher: Watcher, storage: StoreThread, sessions: Sessions) -> None:
        self._watcher, self._storage, self._sessions = watcher, storage, sessions
        self._spent_usd = self._sent_gb = self._confirmed_s = 0.0
        options, on_note = watcher.options, watcher.on_note
        self.links = WatchedLinks(region_pairs(sessions.fleet, options.pairs), options.policy)
        self.upkeep = Upkeep(storage, watcher.catalogue, options, self.links, on_note)
        webhook = options.webhook
        self.notifier = Notifier(storage, webhook, on_note) if webhook else None

    async def begin(self) -> None:
        """Go on from the states that an earlier prober stored.

        Raises StoreError if the store can't be used.
        """
        watcher, now_s = self._watcher, time.time()
        self.links.resume(
            await self._storage.do(lambda store: LinkStates(store.database).kept()), now_s
        )
        await self._storage.do(lambda store: settle_killed(store, utc_date(now_s)))
        await self.upkeep.begin()
        if self.notifier:
            await self.notifier.begin()
        self.monitor = LivenessMonitor(
            self._sessions,
            watcher.catalogue,
            watcher.options,
            self.links,
            self._storage,
            on_probed=self._keep,
            on_note=watcher.on_note,
            loaded=lambda: bool(self.scheduler.running),
        )
        self.scheduler = CampaignScheduler(
            self._storage,
            watcher.fleet,
            watcher.catalogue,
            watcher.options,
            self.monitor.usd_per_day,
            self.links.doubtful,
            watcher.on_note,
        )

    async def run(self, *until: Coroutine[Any, Any, object]) -> None:
        """Probe until one of the other loops has ended; store all results.

        Raises Exception, the first error of any part.
        """
        pause_s = min(UPKEEP_S, self._watcher.options.interval_s)
        loops = [
            self.monitor.run(),
            self._repeated(self._upkeep, pause_s),
            self._repeated(lambda: self.scheduler.check(time.time()), pause_s),
            *until,
        ]
        if self.notifier:
            loops.append(self._repeated(self.notifier.run, STORE_RETRY_S))
        running = [asyncio.ensure_future(loop) for loop in loops]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in running:
                task.cancel()
            ended = await asyncio.gather(*running, return_exceptions=True)
            with suppress(StoreError):
                await self.upkeep.end()
                await self._keep()
                await self.monitor.budget.settle()
                await self._count_spending()
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    def status(self) -> dict[str, Any]:
        """Return the state of the links, the budget and the campaigns as plain values."""
        now_s = time.time()
        monitor, upkeep, scheduler = self.monitor, self.upkeep, self.scheduler
        unreachable = list(monitor.unreachable.items())
        return {
            "legs": dict(self.links.counts()),
            "not_up": [
                {"src": src, "dst": dst, "condition": health.condition, **health_detail(health)}
                for (src, dst), health in self.links.unusual().items()
            ],
            "unreachable": {region: error.problem for region, error in unreachable},
            "remedies": {region: error.remedy for region, error in unreachable},
            "looks_every_s": monitor.period_s,
            "outages_noticed_within_s": monitor.noticed_within_s,
            "last_look_age_s": now_s - monitor.last_probe_s if monitor.last_probe_s else None,
            "spent_today_usd": self._spent_usd,
            "sent_today_gb": self._sent_gb,
            "budget_used_up": monitor.budget.empty,
            "snapshot": upkeep.snapshot_id or None,
            "snapshot_age_s": now_s - upkeep.snapshot_at_s if upkeep.snapshot_at_s else None,
            "campaign": scheduler.running and {"why": scheduler.running, **scheduler.progress},
            "last_campaign": scheduler.last or None,
            "webhook": self.notifier
            and {
                "delivered": self.notifier.delivered,
                "failures": self.notifier.failures,
                "given_up": self.notifier.given_up,
                "problem": self.notifier.problem,
            },
        }

    # ---- loops ---------------------------------------------------------------------------------

    async def _repeated(self, do: Callable[[], Awaitable[None]], pause_s: float) -> None:
        """Do something again and again; a store that is busy or full is only a pause."""
        while True:
            await asyncio.sleep(pause_s)
            try:
                await do()
                self._watcher.problem = ""
            except StoreError as error:
                self._watcher.note(error)

    async def _upkeep(self) -> None:
        now_s, confirm_s = time.time(), self._watcher.options.valid_s / 4
        await self.upkeep.check(now_s)
        # States expire unless they are confirmed now and then.
        if now_s - self.monitor.last_probe_s < confirm_s < now_s - self._confirmed_s:
            self._confirmed_s = now_s
            await self._keep(all_of_them=True)
        else:
            await self._keep()
        await self._count_spending()

    async def _keep(self, *, all_of_them: bool = False) -> None:
        """Store the states that have changed, with their events: all readers plan by them then."""
        links, unusual = self.links, self.links.unusual()
        if not links.changed and not (all_of_them and unusual):
            return
        changes, changed = links.take_changes()
        keep = unusual if all_of_them else {p: h for p, h in unusual.items() if p in changed}
        until_s = time.time() + self._watcher.options.valid_s

        def write(store: Store) -> None:
            with store.database.transaction():
                LinkStates(store.database).keep(keep, changed - set(unusual), until_s)
                events = Events(store.database)
                for src, dst, before, health in changes:
                    detail = {"src": src, "dst": dst, "from": before, "to": health.condition}
                    events.add("leg", f"{src}>{dst}", detail | health_detail(health))

        try:
            await self._storage.do(write)
        except StoreError:
            links.give_back(changes, changed)
            raise
        for src, dst, _, health in changes:
            because = f": {health.reason}." if health.reason else " again."
            self._watcher.on_note(f"{src} -> {dst} is {health.condition}{because}")

    async def _count_spending(self) -> None:
        today = utc_date(time.time())

        def spent(store: Store) -> tuple[float, float]:
            spending = Spending(store.database)
            return spending.committed_usd(today), spending.sent_gb(today)

        self._spent_usd, self._sent_gb = await self._storage.do(spent)
