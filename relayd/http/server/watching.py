"""Continuous operation inside the service: a watcher, where a fleet and a budget are set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.errors import RelaydError
from relayd.http.middleware.logs import Log
from relayd.http.server.settings import ServiceSettings
from relayd.store import Place

if TYPE_CHECKING:
    from relayd.watch.settings import WatchOptions
    from relayd.watch.watcher import Watcher

AGAIN_AFTER_S = 30.0
ENDS_WITHIN_S = 15.0


class Watching:
    """Runs a watcher for as long as the service runs.

    Of several services on one store, one probes and the others stand by.

    Parameters
    ----------
    settings : ServiceSettings
        Without ``fleet`` and ``watch_daily_budget_usd`` nothing is watched.
    db : Path or Address
    catalogues : sequence of Path
    log : Log
    """

    def __init__(
        self, settings: ServiceSettings, db: Place, catalogues: Sequence[Path], log: Log
    ) -> None:
        self._settings = settings
        self._db = db
        self._catalogues = catalogues
        self._log = log
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()
        self._watcher: Watcher | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is watched."""
        return bool(self._settings.fleet and self._settings.watch_daily_budget_usd)

    async def run(self) -> None:
        """Watch until stopped; what fails is tried again."""
        if not self.is_on:
            self._ended.set()
            return
        try:
            while not self._stop.is_set():
                try:
                    self._watcher = await asyncio.to_thread(self._make)
                    await self._watcher.run(self._stop)
                except RelaydError as error:
                    self._log.warning("watch", problem=str(error))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._stop.wait(), AGAIN_AFTER_S)
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Let the watcher keep what it has seen and leave nothing on any host."""
        self._stop.set()
        if self.is_on:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), ENDS_WITHIN_S)

    def status(self) -> dict[str, Any] | None:
        """Return how the watcher is; None where nothing is watched."""
        return self._watcher.status() if self._watcher else None

    @property
    def campaign(self) -> int | None:
        """The campaign that the watcher runs just now."""
        running = (self.status() or {}).get("campaign") or {}
        return running.get("id")

    def health(self) -> dict[str, Any] | None:
        """Return of it what may be told without a token: no host, no address, no money."""
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

    def gauges(self) -> dict[str, tuple[str, Callable[[], float]]]:
        """Return name to meaning and reading, for the metrics."""
        if not self.is_on:
            return {}

        def figure(*keys: str) -> Callable[[], float]:
            def read() -> float:
                found: Any = self.status() or {}
                for key in keys:
                    found = found.get(key) if isinstance(found, dict) else None
                return float("nan") if found is None else float(found)

            return read

        return {
            "watch_spent_today_usd": (
                "Egress that measuring took today.",
                figure("spent_today_usd"),
            ),
            "watch_budget_usd": ("Most that it may take in a day.", figure("daily_budget_usd")),
            "watch_legs_down": ("Links that are down.", figure("legs", "down")),
            "watch_legs_degraded": ("Links that are degraded.", figure("legs", "degraded")),
            "watch_last_look_age_seconds": (
                "Since the last light probe.",
                figure("last_look_age_s"),
            ),
        }

    def _make(self) -> Watcher:
        from probes.fleet.file import load_fleet
        from relayd.catalogue.loading import load_catalogue
        from relayd.watch.watcher import Watcher

        assert self._settings.fleet
        return Watcher(
            self._db,
            load_fleet(self._settings.fleet),
            load_catalogue(self._catalogues),
            watch_options(self._settings),
            lambda text: self._log.info("watch", note=text),
        )


def watch_options(settings: ServiceSettings) -> WatchOptions:
    """Return the settings of the watcher.

    Raises
    ------
    InputError
        Naming the setting that is wrong.
    """
    from relayd.watch.settings import QuietHours, WatchOptions
    from relayd.watch.webhook import Webhook

    webhook = None
    if settings.watch_webhook:
        webhook = Webhook.from_environment(settings.watch_webhook, "watch_webhook")
    quiet = settings.watch_quiet_hours
    return WatchOptions(
        settings.watch_daily_budget_usd,
        interval_s=settings.watch_interval_s,
        campaign_every_s=settings.watch_campaign_every_s or inf,
        retain_s=settings.watch_retain_s or inf,
        quiet=QuietHours.parse(quiet, "watch_quiet_hours") if quiet else None,
        webhook=webhook,
    )
