"""One campaign of a watcher, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from planner.model.catalogue import Catalogue
from probes.campaign.engine import StageProgress
from probes.campaign.limits import CampaignLimits
from probes.campaign.probing import AS_ASKED
from probes.campaign.specification import CampaignSpec
from probes.fleet.hosts import Fleet
from relayd.campaigns.running import CampaignReport, CampaignRunner
from relayd.store import Location, open_store
from relayd.store.campaigns.log import STARTED_BY_WATCHER, Campaigns
from relayd.store.leases import Lease


@dataclass(frozen=True, slots=True)
class DueCampaign:
    """A campaign to run now.

    Attributes
    ----------
    why : str
        As a clause.
    spec : CampaignSpec
    changed : tuple of (source region, destination region)
        The changed links that it measures again.
    is_resumed : bool
        Whether it is the store's unfinished campaign.
    """

    why: str
    spec: CampaignSpec
    changed: tuple[tuple[str, str], ...] = ()
    is_resumed: bool = False


@dataclass
class CampaignThread:
    """One campaign in a thread with its own event loop and its own connection to the store.

    Choosing links and making snapshots take processor time; liveness probes must not wait for it.
    """

    db: str | Location
    lease: Lease
    fleet: Fleet
    catalogue: Catalogue
    due: DueCampaign
    budget_usd: float
    deadline_s: float
    on_progress: Callable[[int, StageProgress], None]
    usd: float = 0.0
    sent_gb: float = 0.0
    ended: bool = False
    left_out: int = 0
    campaign_id: int | None = None
    _cancel: Callable[[], None] | None = None

    def status(self, problem: str) -> str:
        """Return how the campaign ended, in the terms of the service's own campaigns."""
        if problem:
            return "failed"
        if not self.ended:
            return "partly done" if self.left_out else "interrupted"
        return "done"

    async def run(self) -> CampaignReport:
        """Run the campaign; if cancelled, let it end in good order first."""
        pool = ThreadPoolExecutor(1, "relayd-watch-campaign")
        running = asyncio.get_running_loop().run_in_executor(pool, self._in_thread)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                if self._cancel:
                    self._cancel()
                await asyncio.wait([running], timeout=1.0)
            with suppress(BaseException):
                running.result()
            raise
        finally:
            pool.shutdown(wait=False)

    def _in_thread(self) -> CampaignReport:
        with open_store(self.db, mode="write") as store:
            store.lease = self.lease
            runner = CampaignRunner(self.fleet, self.catalogue, store)
            campaign = Campaigns(store).unfinished() if self.due.is_resumed else None
            if campaign is None:
                campaign = runner.begin(
                    self.due.spec,
                    AS_ASKED,
                    self.budget_usd,
                    started_by=STARTED_BY_WATCHER,
                    changed=[list(pair) for pair in self.due.changed],
                )
            number = self.campaign_id = campaign.row.id
            before_gb, before_usd = campaign.spent()
            self.usd = self.budget_usd  # all of it, where the store can't tell at the end
            limits = CampaignLimits(
                budget_usd=before_usd + self.budget_usd, deadline_s=self.deadline_s
            )

            async def run() -> CampaignReport:
                loop, task = asyncio.get_running_loop(), asyncio.current_task()
                assert task
                self._cancel = lambda: _unless_closed(loop.call_soon_threadsafe, task.cancel)
                return await runner.run(
                    campaign,
                    limits,
                    why=self.due.why,
                    by_watcher=True,
                    announce_end=False,
                    on_progress=lambda now: self.on_progress(number, now),
                )

            try:
                report = asyncio.run(run())
                self.left_out = report.result.left_out
                if not self.left_out:
                    # What failed is measured by the next campaign, not for ever by this one.
                    campaign.finish()
                    self.ended = True
                return report
            finally:
                self._cancel = None
                now_gb, now_usd = campaign.spent()
                self.sent_gb, self.usd = now_gb - before_gb, now_usd - before_usd


def _unless_closed(call: Callable[..., object], *arguments: object) -> None:
    with suppress(RuntimeError):  # the loop has just been closed
        call(*arguments)
