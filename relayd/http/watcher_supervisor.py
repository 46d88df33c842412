"""Runs a watcher inside the service, if a fleet and a budget are set."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.errors import RelaydError
from probes.fleet.file import load_fleet
from relayd.catalogue.loading import load_catalogue
from relayd.http.settings import ServiceSettings, watch_options
from relayd.store import Location

if TYPE_CHECKING:
    from relayd.watch.watcher import Watcher

LOG = logging.getLogger(__name__)
RETRY_AFTER_S = 5.0
STOP_TIMEOUT_S = 15.0
_GAUGES = (
    ("spent_today_usd", "Egress that measuring took today.", "spent_today_usd"),
    ("budget_usd", "Most egress of a day.", "daily_budget_usd"),
    ("links_down", "Links that are down.", "legs", "down"),
    ("links_degraded", "Links that are degraded.", "legs", "degraded"),
    ("last_probe_age_seconds", "Time since the last liveness probe.", "last_look_age_s"),
)
"""Name, meaning, and where in the watcher's status its value is."""


class WatcherSupervisor:
    """Runs a watcher for as long as the service runs.

    If several services share a store, one probes and the others stand by.

    Parameters
    ----------
    settings : ServiceSettings
        Nothing is watched unless ``fleet`` and ``watch_daily_budget_usd`` are set.
    db : Path or Address
    catalogues : sequence of Path
    """

    def __init__(self, settings: ServiceSettings, db: Location, catalogues: Sequence[Path]) -> None:
        self._settings = settings
        self._db = db
        self._catalogues = catalogues
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()
        self._watcher: Watcher | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is watched."""
        return bool(self._settings.fleet and self._settings.watch_daily_budget_usd)

    async def run(self) -> None:
        """Watch until stopped; start again after a failure."""
        if not self.is_on:
            self._ended.set()
            return
        try:
            while not self._stop.is_set():
                try:
                    self._watcher = await asyncio.to_thread(self._make)
                    await self._watcher.run(self._stop)
                except Exception as error:
                    if isinstance(error, RelaydError):
                        LOG.warning("watch", extra={"problem": str(error)})
                    else:
                        LOG.error("fault", exc_info=error)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._stop.wait(), RETRY_AFTER_S)
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Let the watcher store its results and clean up its hosts."""
        self._stop.set()
        if self.is_on:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), STOP_TIMEOUT_S)

    def status(self) -> dict[str, Any] | None:
        """Return the watcher's status; None if nothing is watched."""
        return self._watcher.status() if self._watcher else None

    @property
    def campaign(self) -> int | None:
        """The campaign that the watcher runs just now."""
        running = (self.status() or {}).get("campaign") or {}
        return running.get("id")

    def health(self) -> dict[str, Any] | None:
        """Return the part of the status that needs no token: no host, no address, no money."""
        status = self.status()
        if status is None:
            return None
        links = status.get("legs", {})
        return {
            "role": status["role"],
            "last_look_age_s": status.get("last_look_age_s"),
            "legs_down": links.get("down"),
            "legs_degraded": links.get("degraded"),
        }

    def gauges(self) -> dict[str, tuple[str, Callable[[], float | None]]]:
        """Return gauges: name to description and value."""

        def figure(*keys: str) -> float | None:
            found: Any = self.status() or {}
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            return None if found is None else float(found)

        return {
            f"watch_{name}": (meaning, partial(figure, *keys))
            for name, meaning, *keys in _GAUGES
            if self.is_on
        }

    def _make(self) -> Watcher:
        from relayd.watch.watcher import Watcher  # loads asyncssh

        assert self._settings.fleet
        return Watcher(
            self._db,
            load_fleet(self._settings.fleet),
            load_catalogue(self._catalogues),
            watch_options(self._settings),
            lambda text: LOG.info("watch", extra={"note": text}),
        )
