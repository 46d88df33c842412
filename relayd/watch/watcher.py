"""The watcher: continuous operation as one object, for the service and for a shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, StoreError
from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions
from relayd.store import Location
from relayd.store.campaigns.log import Campaigns
from relayd.store.leases import CHECK_EVERY_S, Lease
from relayd.watch.prober import STORE_RETRY_S, ActiveProber
from relayd.watch.settings import WatchOptions
from relayd.watch.storage import StoreProblem, StoreThread

STANDBY_S = 1.0
"""Between two attempts to acquire the lease."""


@dataclass
class Watcher:
    """Watches a fleet: run it, ask for its status, stop it.

    Of several watchers on one store, one probes and the others stand by; one of them takes over
    within seconds when it ends, however it does.

    Parameters
    ----------
    db : str, Path or Address
        The store.
    fleet : Fleet
    catalogue : Catalogue
    options : WatchOptions
    on_note : callable
        Called with a line that the operator should read.
    """

    db: str | Location
    fleet: Fleet
    catalogue: Catalogue
    options: WatchOptions
    on_note: Callable[[str], None] = lambda _: None
    _role: str = "stopped"
    _prober: ActiveProber | None = None

    def __post_init__(self) -> None:
        if len({host.region for host in self.fleet}) < 2:
            raise InputError(
                self.fleet.name, "has fewer than two regions", remedy="Add hosts of others."
            )
        self._store_problem = StoreProblem(self.on_note)

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until stopped; keep what was seen, and leave nothing on any host.

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
                        if await self._acquire_lease(storage, stop):
                            await self._probe(storage, stop)
                    except StoreError as error:  # a database that restarts is only a pause
                        self._role = "standby"
                        self._store_problem.note(error)
                        await _wait(stop, STORE_RETRY_S)
            finally:
                self._role = "stopped"

    def status(self) -> dict[str, Any]:
        """Return the status as plain values: for a health check, metrics and people."""
        found: dict[str, Any] = {
            "role": self._role,
            "problem": self._store_problem.text,
            "interval_s": self.options.interval_s,
            "daily_budget_usd": self.options.daily_budget_usd,
        }
        return found if self._prober is None else found | self._prober.status()

    async def _acquire_lease(self, storage: StoreThread, stop: asyncio.Event) -> bool:
        """Wait until no other watcher or campaign is on this store; False if stopped before."""
        is_noted = False
        while not stop.is_set():
            acquired = await storage.acquire_lease()
            self._store_problem.clear()
            if acquired:
                return True
            if not is_noted:
                is_noted, self._role, self._prober = True, "standby", None
                self.on_note("Another process probes for this store: standing by.")
            await _wait(stop, STANDBY_S)
        return False

    async def _until_lease_runs_out(self, lease: Lease) -> None:
        """Return when the lease can't be renewed in time, or another process has it."""
        while lease.is_held:
            await asyncio.sleep(CHECK_EVERY_S)
        self._role = "standby"
        self.on_note("The lease on probing for this store could not be renewed: standing by.")

    async def _probe(self, storage: StoreThread, stop: asyncio.Event) -> None:
        owner = await storage.do(lambda store: Campaigns(store).controller)
        # An owner of its own: what a campaign of this store runs on a host is not ours to end.
        timeouts = Timeouts(connect_s=min(10.0, max(3.0, self.options.interval_s)))
        async with Sessions(
            self.fleet, f"{owner}-watch", timeouts=timeouts, permit=storage.lease.check
        ) as sessions:
            prober = ActiveProber(
                storage, sessions, self.catalogue, self.options, self._store_problem, self.on_note
            )
            await prober.begin()
            # The role is shown once the prober can say which hosts it can't reach.
            self._prober, self._role = prober, "prober"
            await prober.run(stop.wait(), self._until_lease_runs_out(storage.lease))


async def _wait(stop: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await stop.wait()
