"""The watcher: all of continuous operation as one object, for the service and for a shell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, StoreError
from probes.fleet.hosts import Fleet
from probes.fleet.liveness import parameters_for
from probes.fleet.sessions import Sessions, Timeouts
from relayd.campaigns.running import CampaignRunner
from relayd.store import Place, Store
from relayd.store.campaigns.log import Campaigns
from relayd.store.campaigns.spending import Spending, day_of
from relayd.store.events import Events
from relayd.store.links.states import LinkStates
from relayd.times import utc_text
from relayd.watch.budget import LivenessBudget
from relayd.watch.campaigns import CampaignScheduler
from relayd.watch.links import WatchedLinks
from relayd.watch.liveness import LivenessMonitor, period_s, region_pairs
from relayd.watch.notifier import Notifier
from relayd.watch.settings import DAY_S, WatchOptions
from relayd.watch.storage import StoreThread
from relayd.watch.upkeep import Upkeep

STANDBY_S = 3.0
"""Between two looks whether the office of prober is free, or still held."""
UPKEEP_S = 5.0
BLOCK_S = 300.0
"""Light probes of so long are paid for in advance."""
LIGHT_SHARE = 0.5
"""Of the daily budget that light probing may take; beyond that it is done less often."""
USUAL_FAR_MS = 300.0
STORE_AGAIN_S = 2.0


@dataclass
class Watcher:
    """Watches a fleet: run it, ask it how it is, stop it.

    Of several watchers on one store, one probes and the others stand by, to take over within
    seconds when it ends, however it does.

    Parameters
    ----------
    db : str, Path or Address
        The store.
    fleet : Fleet
    catalogue : Catalogue
    options : WatchOptions
    on_note : callable
        Called with a line about something worth notifier.
    """

    db: str | Place
    fleet: Fleet
    catalogue: Catalogue
    options: WatchOptions
    on_note: Callable[[str], None] = lambda _: None
    _role: str = "stopped"
    _problem: str = ""
    _parts: _Parts | None = None
    _spent_usd: float = 0.0
    _sent_gb: float = 0.0

    def __post_init__(self) -> None:
        if len({host.region for host in self.fleet}) < 2:
            raise InputError(
                self.fleet.name, "has fewer than two regions", remedy="Add hosts of others."
            )

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until told to stop; what was seen is kept, and nothing is left on any host.

        Raises
        ------
        StoreError
            If the store can't be used at all.
        """
        async with StoreThread(self.db) as storage:
            await storage.do(lambda store: store.snapshots.latest())
            try:
                while not stop.is_set():
                    try:
                        if await self._become_prober(storage, stop):
                            await self._probe(storage, stop)
                    except StoreError as error:  # a database that restarts is only a pause
                        self._role = "standby"
                        self._noted(error)
                        await _wait(stop, STORE_AGAIN_S)
            finally:
                self._role = "stopped"

    def status(self) -> dict[str, Any]:
        """Return how things are, as plain values: for a health check, metrics and people."""
        found: dict[str, Any] = {
            "role": self._role,
            "problem": self._problem,
            "interval_s": self.options.interval_s,
            "daily_budget_usd": self.options.daily_budget_usd,
        }
        if (parts := self._parts) is None:
            return found
        monitor, upkeep, notifier = parts.monitor, parts.upkeep, parts.notifier
        now_s = time.time()
        found |= {
            "legs": dict(parts.links.counts()),
            "not_up": [
                {
                    "src": src,
                    "dst": dst,
                    "condition": health.condition,
                    "since": utc_text(health.since_s),
                    "reason": health.reason,
                }
                for (src, dst), health in parts.links.unusual().items()
            ],
            "unreachable": dict(monitor.unreachable),
            "remedies": dict(monitor.remedies),
            "looks_every_s": monitor.period_s,
            "outages_noticed_within_s": monitor.noticed_within_s,
            "last_look_age_s": now_s - monitor.last_probe_s if monitor.last_probe_s else None,
            "spent_today_usd": self._spent_usd,
            "sent_today_gb": self._sent_gb,
            "budget_used_up": monitor.budget.empty,
            "snapshot": upkeep.snapshot_id or None,
            "snapshot_age_s": now_s - upkeep.snapshot_at_s if upkeep.snapshot_at_s else None,
            "campaign": parts.scheduler.running
            and {"why": parts.scheduler.running, **parts.scheduler.progress},
            "last_campaign": parts.scheduler.last or None,
            "webhook": notifier
            and {
                "delivered": notifier.delivered,
                "failures": notifier.failures,
                "given_up": notifier.given_up,
                "problem": notifier.problem,
            },
        }
        return found

    # ---- roles ---------------------------------------------------------------------------------

    async def _become_prober(self, storage: StoreThread, stop: asyncio.Event) -> bool:
        """Wait until no other watcher or campaign is on this store; False if stopped before."""
        told = False
        while not stop.is_set():
            elected = await storage.stand()
            self._problem = ""
            if elected:
                return True
            if not told:
                told, self._role, self._parts = True, "standby", None
                self.on_note("Another process probes for this store: standing by.")
            await _wait(stop, STANDBY_S)
        return False

    async def _while_in_office(self, storage: StoreThread) -> None:
        """Return when another process has become the prober.

        The office ends with its session, when the server is restarted or the session is ended.
        While the server is away nobody else can be elected, and what is sent is only light probes
        that are paid for: no reason to forget what is known of the links.
        """
        while True:
            await asyncio.sleep(STANDBY_S)
            try:
                if not await storage.stand():
                    self.on_note("Another process has become the prober for this store.")
                    return
            except StoreError as error:
                self._noted(error)

    async def _probe(self, storage: StoreThread, stop: asyncio.Event) -> None:
        owner, campaigns_due = await storage.do(
            lambda store: (
                Campaigns(store).controller,
                CampaignRunner(self.fleet, self.catalogue, None),
            )
        )
        # A name of its own: what a campaign of this store has begun is not ours to end.
        timeouts = Timeouts(connect_s=min(10.0, max(3.0, self.options.interval_s)))
        async with Sessions(self.fleet, f"{owner}-watch", timeouts=timeouts) as sessions:
            parts = await self._prepared(storage, sessions, campaigns_due)
            # A prober can say from the first moment which hosts it can't reach.
            self._parts, self._role = parts, "prober"
            running = [
                asyncio.create_task(parts.monitor.run()),
                asyncio.create_task(self._now_and_then(parts)),
                asyncio.create_task(self._campaigns(parts)),
                asyncio.create_task(self._while_in_office(storage)),
            ]
            if parts.notifier:
                running.append(asyncio.create_task(_patiently(parts.notifier.run, self._noted)))
            stopping = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopping.cancel()
                for task in running:
                    task.cancel()
                ended = await asyncio.gather(*running, return_exceptions=True)
                with suppress(StoreError):
                    await parts.upkeep.end()
                    await self._keep(parts)
                    await parts.monitor.budget.settle()
                    self._spent_usd, self._sent_gb = await storage.do(_spent)
            for outcome in ended:
                if isinstance(outcome, BaseException) and not isinstance(
                    outcome, asyncio.CancelledError
                ):
                    raise outcome

    async def _prepared(
        self, storage: StoreThread, sessions: Sessions, measuring: CampaignRunner
    ) -> _Parts:
        options = self.options
        links = WatchedLinks(region_pairs(self.fleet, options.pairs), options.policy)
        upkeep = Upkeep(storage, self.catalogue, options, links, self.on_note)
        now_s = time.time()
        kept = await storage.do(lambda store: LinkStates(store.database).kept())
        links.resume(kept, now_s)
        await upkeep.begin()
        longest_ms = max(links.usual_ms.values(), default=USUAL_FAR_MS)
        parameters = parameters_for(options.interval_s, longest_ms)
        meter = measuring.meter()
        # Requests are billed where they leave, replies where those do.
        usd_per_probe = {
            (src, dst): meter.price(src, dst, parameters.probe_gb / 2)
            + meter.price(dst, src, parameters.probe_gb / 2)
            for src, dst in links.healths
        }
        every_s = period_s(options.interval_s, parameters, options.policy.confirmations)
        per_round_usd = sum(usd_per_probe.values())
        most_usd = LIGHT_SHARE * options.daily_budget_usd
        least_s = 0.0
        if per_round_usd * DAY_S / every_s > most_usd > 0:
            least_s = every_s = per_round_usd * DAY_S / most_usd
            self.on_note(
                f"Light probing of {len(links.healths)} links every {options.interval_s:g} s would "
                f"take over half of the daily budget: it is done every {every_s:.0f} s."
            )
        light_usd_per_day = per_round_usd * DAY_S / every_s
        budget = LivenessBudget(
            storage, options.daily_budget_usd, light_usd_per_day * BLOCK_S / DAY_S
        )
        scheduler = CampaignScheduler(
            storage,
            self.fleet,
            self.catalogue,
            options,
            light_usd_per_day,
            links.collapsed,
            self.on_note,
        )
        notifier = None
        if options.webhook:
            notifier = Notifier(storage, options.webhook, self.on_note)
            await notifier.begin()
        parts = _Parts(storage, links, upkeep, scheduler, notifier)

        async def on_probed() -> None:
            if links.changed:
                await self._keep(parts)

        parts.monitor = LivenessMonitor(
            sessions,
            links,
            budget,
            parameters,
            options.interval_s,
            least_s,
            usd_per_probe,
            on_probed,
            self.on_note,
            loaded=lambda: bool(scheduler.running),
        )
        return parts

    # ---- loops ---------------------------------------------------------------------------------

    async def _now_and_then(self, parts: _Parts) -> None:
        confirmed_s = 0.0

        async def once() -> None:
            nonlocal confirmed_s
            now_s = time.time()
            await parts.upkeep.check(now_s)
            # States that nobody sees confirmed are not believed for ever.
            seeing = now_s - parts.monitor.last_probe_s < self.options.valid_s / 4
            if seeing and now_s - confirmed_s > self.options.valid_s / 4:
                confirmed_s = now_s
                await self._keep(parts, all_of_them=True)
            elif parts.links.changed:
                await self._keep(parts)
            self._spent_usd, self._sent_gb = await parts.storage.do(_spent)

        while True:
            await self._safely(once)
            await asyncio.sleep(min(UPKEEP_S, self.options.interval_s))

    async def _campaigns(self, parts: _Parts) -> None:
        while True:
            await asyncio.sleep(min(UPKEEP_S, self.options.interval_s))
            await self._safely(lambda: parts.scheduler.check(time.time()))

    async def _keep(self, parts: _Parts, *, all_of_them: bool = False) -> None:
        """Keep what has changed, with its events: every reader plans by it from then on."""
        links = parts.links
        unusual = links.unusual()
        news, changed = links.take_news()
        keep = unusual if all_of_them else {p: h for p, h in unusual.items() if p in changed}
        until_s = time.time() + self.options.valid_s

        def write(store: Store) -> None:
            with store.database.transaction():
                LinkStates(store.database).keep(keep, changed - set(unusual), until_s)
                events = Events(store.database)
                for item in news:
                    events.add("leg", f"{item.src}>{item.dst}", item.detail())

        if not keep and not changed and not news:
            return
        try:
            await parts.storage.do(write)
        except StoreError:
            links.give_back(news, changed)
            raise
        for item in news:
            self.on_note(
                f"{item.src} -> {item.dst} is {item.health.condition}"
                + (f": {item.health.reason}." if item.health.reason else " again.")
            )
        if news and parts.notifier:
            parts.notifier.news.set()

    async def _safely(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do something that needs the store; a store that is busy or full is only a pause."""
        try:
            await do()
            self._problem = ""
        except StoreError as error:
            self._noted(error)

    def _noted(self, error: StoreError) -> None:
        if str(error) != self._problem:
            self.on_note(f"{error} Trying again.")
        self._problem = str(error)


@dataclass
class _Parts:
    """What a prober is made of."""

    storage: StoreThread
    links: WatchedLinks
    upkeep: Upkeep
    scheduler: CampaignScheduler
    notifier: Notifier | None
    monitor: LivenessMonitor = field(init=False)


def _spent(store: Store) -> tuple[float, float]:
    spending, today = Spending(store.database), day_of(time.time())
    return spending.committed_usd(today), spending.sent_gb(today)


async def _patiently(
    run: Callable[[], Awaitable[None]], on_error: Callable[[StoreError], None]
) -> None:
    while True:
        try:
            await run()
        except StoreError as error:
            on_error(error)
            await asyncio.sleep(STORE_AGAIN_S)


async def _wait(stop: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await stop.wait()
