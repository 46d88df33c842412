"""Campaigns that a watcher starts: their dates, their scope, and their budget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from planner.model.catalogue import Catalogue
from planner.model.errors import RelaydError
from planner.model.link_states import Pair
from probes.campaign.engine import StageProgress
from probes.campaign.selection import first_hosts
from probes.campaign.specification import AS_ASKED, CampaignSpec
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import CampaignLimits
from probes.fleet.hosts import Fleet
from relayd.campaigns.running import SUBJECT, CampaignRunner
from relayd.store import Store, open_store
from relayd.store.campaigns import STARTED_BY_WATCHER, Campaigns, Spending
from relayd.store.events import Events
from relayd.store.links import LevelShifts
from relayd.times import utc_date
from relayd.watch.settings import DAY_S, WatchOptions, day_left_s
from relayd.watch.storage import StoreThread

LAST = "campaign_last_s"
LAST_BY_REGRET = "campaign_by_regret_last_s"
NOT_BEFORE = "campaign_not_before_s"
BEFORE_USD, BEFORE_GB = "campaign_before_usd", "campaign_before_gb"
"""Spending of all campaigns of watchers before the newest one reserved its money."""
JITTER = 0.1
RETRY_S = 3600.0
"""Before another try of a campaign that failed as a whole."""
BETWEEN_S = 600.0
"""Least time between campaigns."""
DOUBTFUL_AGAIN_S = 1800.0
MOST_CHANGED_LINKS = 20
LONGEST_S = 6 * 3600.0
LEAST_S = 120.0


@dataclass(frozen=True, slots=True)
class DueCampaign:
    """A campaign to run now, and why as a clause."""

    why: str
    spec: CampaignSpec
    changed: tuple[Pair, ...] = ()  # links of regions that have changed, and are measured again
    is_resumed: bool = False  # whether it is the store's unfinished campaign


@dataclass
class CampaignRun:
    """The state of a campaign in its thread."""

    id: int | None = None
    usd: float = 0.0
    sent_gb: float = 0.0
    left_out: int = 0
    ended: bool = False
    problem: str = ""
    cancel: Callable[[], object] | None = None

    @property
    def status(self) -> str:
        """The final status of the campaign, as the service names it."""
        if self.problem:
            return "failed"
        if self.ended:
            return "done"
        return "partly done" if self.left_out else "interrupted"


@dataclass
class CampaignScheduler:
    """Runs campaigns when they are due."""

    storage: StoreThread
    fleet: Fleet
    catalogue: Catalogue
    options: WatchOptions
    liveness_usd_per_day: float  # share of liveness probes in the budget, USD
    # Returns the links whose throughput is in doubt and was not measured since a time
    doubtful: Callable[[float], list[Pair]] = lambda _: []
    on_note: Callable[[str], None] = lambda _: None
    running: str = ""
    progress: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)

    async def check(self, now_s: float) -> None:
        """Run a campaign if one is due and the hour and the budget allow it."""
        if self.time_left_s(now_s) < LEAST_S:
            return
        day = utc_date(now_s)
        due = await self.storage.do(lambda store: self.due(store, now_s))
        if due and (usd := await self.storage.do(lambda s: self.reserve(s, day, now_s))) > 0:
            await self.run(due, day, usd)

    def time_left_s(self, now_s: float) -> float:
        """Return the time left for measuring throughput by the budget of this day, in s."""
        quiet = self.options.quiet
        longest_s = min(LONGEST_S, day_left_s(now_s))
        return longest_s if quiet is None else min(longest_s, quiet.begins_in_s(now_s))

    def due(self, store: Store, now_s: float) -> DueCampaign | None:
        """Return the campaign that is due at ``now_s`` (Unix time), or None if none is."""
        database = store.database
        if now_s < (database.metadata(NOT_BEFORE) or 0.0):
            return None
        unfinished = Campaigns(store).unfinished()
        if unfinished and unfinished.options.get("started_by") == STARTED_BY_WATCHER:
            options = unfinished.options
            changed = tuple((src, dst) for src, dst in options.get("changed", ()))
            return DueCampaign("one was not finished", unfinished.spec, changed, is_resumed=True)
        if due := self._changed(store, now_s):
            return due
        last_s = database.metadata(LAST)
        if last_s is None:
            (last_s,) = store.database.row("SELECT max(finished_at_s) FROM campaigns")
        every_s = self.options.campaign_every_s
        if every_s < inf and (last_s is None or now_s >= last_s + _spread(every_s, last_s)):
            return DueCampaign("measurements have come of age", self.options.campaign)
        if self.options.regret is None:
            return None
        last_s = max(last_s or 0.0, database.metadata(LAST_BY_REGRET) or 0.0)
        if now_s < last_s + _spread(DAY_S, last_s):
            return None
        # Estimates age in whole days. The campaign itself chooses the links worth measuring.
        return DueCampaign(
            f"links may have drifted to an expected regret above {self.options.regret:.1%}",
            replace(self.options.campaign, phases=("aggregate",)),
        )

    def _changed(self, store: Store, now_s: float) -> DueCampaign | None:
        changed = LevelShifts(store.database).open()
        # A collapse may be over, and transfers may have been held by their programs: only a
        # measurement can tell.
        links = dict.fromkeys([*changed, *self.doubtful(now_s - DOUBTFUL_AGAIN_S)])
        first = first_hosts(self.fleet.region_of)
        chosen = [(src, dst) for src, dst in links if src in first and dst in first]
        chosen = chosen[:MOST_CHANGED_LINKS]
        if not chosen:
            return None
        spec = replace(
            self.options.spec,
            phases=("per-flow", "aggregate"),
            pairs=tuple((first[src], first[dst]) for src, dst in chosen),
        )
        many = f"{len(chosen)} links have" if len(chosen) > 1 else "a link has"
        return DueCampaign(f"{many} changed or are in doubt", spec, tuple(chosen))

    def reserve(self, store: Store, day: str, now_s: float) -> float:
        """Reserve the rest of the budget of ``day``, without the share of liveness probes.

        Returns what was reserved, in USD: 0 where nothing is left.
        """
        spending = Spending(store.database)
        liveness_usd = self.liveness_usd_per_day * day_left_s(now_s) / DAY_S
        left_usd = self.options.daily_budget_usd - spending.committed_usd(day) - liveness_usd
        if left_usd <= 0:
            return 0.0
        # Where it ends after this, nothing is reserved that would need it.
        gb, usd = Campaigns(store).spent(STARTED_BY_WATCHER)
        with store.database.transaction():
            store.database.set_metadata(BEFORE_USD, usd)
            store.database.set_metadata(BEFORE_GB, gb)
        granted = spending.reserve(day, "campaign", left_usd, self.options.daily_budget_usd)
        return left_usd if granted else 0.0

    async def run(self, due: DueCampaign, day: str, reserved_usd: float) -> None:
        """Run a campaign and settle what it spent, also if it fails or is cancelled."""
        self.running = due.why
        self.on_note(f"A campaign begins, because {due.why}; at most {reserved_usd:.4f} USD.")
        run = CampaignRun()
        deadline_s = time.monotonic() + self.time_left_s(time.time())
        measuring = asyncio.create_task(
            asyncio.to_thread(self._measure, due, run, reserved_usd, deadline_s)
        )
        try:
            await _ended_in_order(measuring, run)
            figures = {"failed": len(measuring.result().failed), "left_out": run.left_out}
            self.last = {"ended_at_s": time.time(), "why": due.why, "usd": run.usd, **figures}
        except RelaydError as error:
            run.problem = str(error)
            self.on_note(f"The campaign ended early: {error}")
            self.last = {"ended_at_s": time.time(), "why": due.why, "problem": run.problem}
        finally:
            self.running, self.progress = "", {}
            settled = asyncio.ensure_future(
                self.storage.do(lambda store: self._settle(store, due, day, reserved_usd, run))
            )
            try:
                await asyncio.shield(settled)
            except asyncio.CancelledError:  # the watcher is stopping: an error is still told
                await settled
                raise

    def _settle(
        self, store: Store, due: DueCampaign, day: str, reserved_usd: float, run: CampaignRun
    ) -> None:
        database, now_s = store.database, time.time()
        Spending(database).settle(day, "campaign", reserved_usd, run.usd, run.sent_gb)
        pause_s = 0.0
        if run.problem:
            pause_s = RETRY_S
        elif run.left_out:
            # Tomorrow there is money again; where the hour ended it, quiet hours hold.
            out_of_time = self.time_left_s(now_s) < LEAST_S
            pause_s = LEAST_S if out_of_time else day_left_s(now_s)
        elif run.ended:
            pause_s = BETWEEN_S
        with database.transaction():
            for src, dst in due.changed if run.ended else ():
                LevelShifts(database).close(src, dst)
            if pause_s:
                database.set_metadata(NOT_BEFORE, now_s + pause_s)
            if run.ended and not due.changed:
                is_whole = "rtt" in due.spec.phases
                database.set_metadata(LAST if is_whole else LAST_BY_REGRET, now_s)
            told = {"status": run.status, "why": due.why, "usd": run.usd, "sent_gb": run.sent_gb}
            told |= {"ended": run.ended, "left_out": run.left_out, "problem": run.problem}
            Events(database).add(SUBJECT, str(run.id), told)

    def _measure(
        self, due: DueCampaign, run: CampaignRun, budget_usd: float, deadline_s: float
    ) -> CampaignReport:
        """Run a campaign in a thread with its own event loop and its own connection to the store.

        Choosing links and making snapshots take processor time; liveness probes must not wait.
        """
        with open_store(self.storage.db, mode="write") as store:
            store.lease = self.storage.lease
            runner = CampaignRunner(self.fleet, self.catalogue, store)
            campaign = Campaigns(store).unfinished() if due.is_resumed else None
            if campaign is None:
                changed = [list(pair) for pair in due.changed]
                options = {"started_by": STARTED_BY_WATCHER, "changed": changed}
                campaign = runner.begin(due.spec, AS_ASKED, budget_usd, **options)
            run.id = campaign.id
            before_gb, before_usd = campaign.spent()
            run.usd = budget_usd  # all of it, where the store can't tell at the end
            limits = CampaignLimits(budget_usd=before_usd + budget_usd, deadline_s=deadline_s)

            def on_progress(now: StageProgress) -> None:
                self.progress = {
                    "id": run.id,
                    "stage": now.stage,
                    "done": now.done,
                    "failed": now.failed,
                    "total": now.total,
                    "usd": now.usd,
                }

            async def cancellable() -> CampaignReport:
                loop, task = asyncio.get_running_loop(), asyncio.current_task()
                assert task
                run.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
                return await runner.run(
                    campaign, limits, why=due.why, by_watcher=True, on_progress=on_progress
                )

            try:
                report = asyncio.run(cancellable())
                run.left_out = report.left_out
                if not run.left_out:
                    # The next campaign repeats failed probes, not this one for ever.
                    campaign.finish()
                    run.ended = True
                return report
            finally:
                run.cancel = None
                now_gb, now_usd = campaign.spent()
                run.sent_gb, run.usd = now_gb - before_gb, now_usd - before_usd


async def _ended_in_order(measuring: asyncio.Task[CampaignReport], run: CampaignRun) -> None:
    """Wait for a campaign; if cancelled, let it end in good order first."""
    try:
        await asyncio.shield(measuring)
    except asyncio.CancelledError:
        while not measuring.done():
            if run.cancel:
                with suppress(RuntimeError):  # the loop has just been closed
                    run.cancel()
            await asyncio.wait([measuring], timeout=1.0)
        with suppress(asyncio.CancelledError):
            measuring.exception()  # it was told by its events
        raise


def settle_killed(store: Store, day: str) -> None:
    """Settle the reservation that a killed watcher left for a campaign, by its log of probes.

    The caller holds the prober's lease, so that no other campaign of a watcher is running.
    """
    database, spending = store.database, Spending(store.database)
    reserved_usd = spending.reserved_usd(day, "campaign")
    before_usd, before_gb = database.metadata(BEFORE_USD), database.metadata(BEFORE_GB)
    if reserved_usd > 0 and before_usd is not None and before_gb is not None:
        gb, usd = Campaigns(store).spent(STARTED_BY_WATCHER)
        spending.settle(day, "campaign", reserved_usd, usd - before_usd, gb - before_gb)


def _spread(every_s: float, last_s: float) -> float:
    """Return the time until the next campaign, spread by some percent.

    The decimals of the last one's end are as good as random, and the same after a restart.
    """
    return every_s * (1 - JITTER + 2 * JITTER * (last_s % 1))
