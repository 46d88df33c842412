"""Starting and running campaigns on a store, for command line, service and watcher alike."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, RelaydError, StoreError
from probes.campaign.engine import Engine, StageProgress
from probes.campaign.probing import Prober
from probes.campaign.specification import CampaignSpec, Method
from probes.campaign.stages import CampaignReport, run_stages
from probes.campaign.tasks import CampaignLimits
from probes.fleet.hosts import Fleet
from probes.fleet.sessions import Sessions
from relayd.campaigns.inputs import MeasuredFleet
from relayd.snapshots.building import make_snapshot
from relayd.store import Store
from relayd.store.campaigns import Campaigns, StoredCampaign
from relayd.store.events import Events
from relayd.store.failures import lapsed
from relayd.store.leases import CHECK_EVERY_S, Lease

T = TypeVar("T")
SUBJECT = "campaign"
EVENT_EVERY_S = 5.0
_ASK_EVERY_S = 1.0


class CampaignRunner:
    """Starts and runs campaigns with a fleet on a store that is open for writing."""

    def __init__(self, fleet: Fleet, catalogue: Catalogue, store: Store) -> None:
        self.measured = MeasuredFleet(fleet, catalogue, store)
        self._store = store

    def begin(
        self, spec: CampaignSpec, method: Method, budget_usd: float | None, **metadata: Any
    ) -> StoredCampaign:
        """Store a new campaign, to be run now and resumed later by the same specification.

        The budget is None for none; metadata, of JSON types, are stored with it.
        """
        options = {"wish": asdict(spec), "method": asdict(method), "budget_usd": budget_usd}
        options["egress_usd_per_gb"] = self.measured.stated_usd_per_gb
        return Campaigns(self._store).begin(options | metadata)

    def unfinished(self) -> StoredCampaign | None:
        """Return the store's unfinished campaign, to be resumed; None if there is none.

        Raises InputError if the fleet file had another price when it began: its budget meant
        something else.
        """
        campaign = Campaigns(self._store).unfinished()
        now = self.measured.stated_usd_per_gb
        begun = campaign.options.get("egress_usd_per_gb", now) if campaign else now
        for region in sorted(begun.keys() | now.keys()):
            if (before := begun.get(region)) != (after := now.get(region)):
                raise InputError(
                    "egress_usd_per_gb",
                    f"of {region} in the fleet file was {_price(before)} when this campaign began",
                    value=_price(after),
                    remedy="Put that back to resume, or begin another campaign with a budget by "
                    "the new price.",
                )
        return campaign

    async def run(
        self,
        campaign: StoredCampaign,
        limits: CampaignLimits,
        *,
        why: str = "",
        by_watcher: bool = False,
        on_progress: Callable[[StageProgress], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> CampaignReport:
        """Run a campaign, or the rest of it, to its end; take a snapshot then.

        Writes events of its start, its progress and its end to the store. After a request to stop
        in the store, it ends as if cancelled. `why` is the reason in the start event; `by_watcher`
        says that the watcher runs it, which would go on with it after a stop, and writes the event
        of its end by itself.
        """
        campaigns, events, subject = (
            Campaigns(self._store),
            Events(self._store.database),
            campaign.id,
        )
        written_s, stage = 0.0, ""

        def tell(status: str, **detail: Any) -> None:
            with suppress(StoreError):  # a store that can't take it does not stop the campaign
                events.add(SUBJECT, str(subject), {"status": status, **detail})

        def end(status: str, **detail: Any) -> None:
            if not by_watcher:
                tell(status, **detail)

        def progress(now: StageProgress) -> None:
            nonlocal written_s, stage
            on_progress(now)
            if now.stage != stage or time.monotonic() - written_s >= EVENT_EVERY_S:
                written_s, stage = time.monotonic(), now.stage
                tell("running", **{k: v for k, v in vars(now).items() if k != "left_out"})

        def is_to_stop() -> bool:
            with suppress(StoreError):
                return campaigns.take_stop(campaign.id)
            return False

        tell("started", **({"why": why} if why else {}))
        try:
            with campaigns.under_way(by_watcher=by_watcher):
                work = self._run(campaign, limits, progress, on_note)
                report = await while_held(self._store.lease, work, is_to_stop)
        except asyncio.CancelledError:
            end("interrupted")
            raise
        except RelaydError as error:
            end("failed", problem=str(error))
            raise
        end(
            report.status,
            failed=len(report.failed),
            left_out=report.left_out,
            sent_gb=report.sent_gb,
            usd=report.usd,
            snapshot=report.snapshot.id if report.snapshot else None,
        )
        return report

    async def _run(
        self,
        campaign: StoredCampaign,
        limits: CampaignLimits,
        on_progress: Callable[[StageProgress], None],
        on_note: Callable[[str], None],
    ) -> CampaignReport:
        began_s = time.monotonic()
        inputs, method = self.measured.inputs(campaign.spec, campaign.method), campaign.method
        campaign.charge_lost()
        async with Sessions(
            method.of(inputs.fleet),
            Campaigns(self._store).controller,
            on_note=on_note,
            sysctls=method.sysctls,
            permit=self._store.check_lease,
            visited=frozenset().union(*(probe.task.hosts for probe in campaign.probes())),
        ) as sessions:
            engine = Engine(
                sessions,
                Prober(sessions, inputs.rtt_ms, method),
                campaign,
                self.measured.meter(),
                limits,
                on_progress=on_progress,
                on_note=on_note,
            )
            report = await run_stages(inputs, campaign, engine, limits)
        if report.status == "done":
            campaign.finish()
        report.duration_s = time.monotonic() - began_s
        report.snapshot = make_snapshot(self._store, self.measured.catalogue)
        return report


def _price(usd_per_gb: float | None) -> str:
    return "not stated" if usd_per_gb is None else f"${usd_per_gb:g}"


async def while_held(
    lease: Lease | None,
    work: Coroutine[Any, Any, T],
    is_to_stop: Callable[[], bool] = lambda: False,
) -> T:
    """Do some work for as long as a lease is held.

    Raises StoreError if the lease ran out before the work was done, which was cancelled then;
    asyncio.CancelledError if it was to stop, which is asked each second.
    """
    task, asked_s = asyncio.create_task(work), time.monotonic()
    lapses = False
    try:
        while not lapses and not (await asyncio.wait([task], timeout=CHECK_EVERY_S))[0]:
            lapses = lease is not None and not lease.is_held
            if time.monotonic() - asked_s >= _ASK_EVERY_S:
                asked_s = time.monotonic()
                if is_to_stop():
                    raise asyncio.CancelledError
    finally:
        task.cancel()
        await asyncio.wait([task])
    if lapses and lease and (task.cancelled() or task.exception()):
        raise lapsed(lease.fence[0])
    return task.result()


def run_interruptibly(work: Coroutine[Any, Any, T], on_interrupt: Callable[[], None]) -> T:
    """Do some work; it cleans up after SIGTERM as it does after Ctrl-C.

    Raises KeyboardInterrupt after either.
    """

    async def main() -> T:
        cancelled_by_sigterm()
        return await work

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        on_interrupt()
        raise KeyboardInterrupt from None


def cancelled_by_sigterm() -> None:
    """Have SIGTERM cancel the current task, so that it cleans up as it does after Ctrl-C."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
