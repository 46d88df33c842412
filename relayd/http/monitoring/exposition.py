"""All metrics of a service as one text, for a scrape or for a collector of OpenTelemetry."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.model.errors import RelaydError
from relayd.http.middleware.logs import Log
from relayd.http.monitoring.link_metrics import LinkMetrics
from relayd.http.monitoring.metrics import Metrics
from relayd.http.responses.problems import ProblemError
from relayd.http.server.current_state import Current
from relayd.http.server.store_access import StoreAccess
from relayd.http.server.workers import Workers
from relayd.store.campaigns.totals import campaign_totals

if TYPE_CHECKING:
    from relayd.http.monitoring.telemetry import Telemetry

SPENDING_WAIT_S = 2.0
"""For what campaigns have taken: metrics go without it sooner than a scrape gives up."""


class Exposition:
    """Metrics of the service, of campaigns, and of at most so many links.

    Parameters
    ----------
    metrics : Metrics
    most_links : int
    store : StoreAccess
    workers : Workers
    current : callable
        Returns the state of knowledge that answers rest on now.
    """

    def __init__(
        self,
        metrics: Metrics,
        most_links: int,
        store: StoreAccess,
        workers: Workers,
        current: Callable[[], Current],
    ) -> None:
        self._metrics = metrics
        self._links = LinkMetrics(workers, most_links)
        self._store = store
        self._workers = workers
        self._current = current

    async def text(self) -> bytes:
        """Return all metrics in Prometheus' text format, with the last figures of a silent store.

        What campaigns took is read from the store, which may take :data:`SPENDING_WAIT_S`.
        """
        with contextlib.suppress(RelaydError, ProblemError, TimeoutError):
            async with asyncio.timeout(SPENDING_WAIT_S):
                totals = await self._store.read(lambda store: campaign_totals(store.database))
                self._metrics.spent(totals)
        links = await self._links.text(self._current())
        return self._metrics.text() + links

    async def push_forever(self, telemetry: Telemetry, log: Log) -> None:
        """Send metrics to a collector at intervals; a worker turns them into OTLP."""
        is_taken = True
        while True:
            await asyncio.sleep(telemetry.interval_s)
            was_taken, is_taken = is_taken, False
            with contextlib.suppress(ProblemError):
                is_taken = await self._workers.ask(
                    self._current().version,
                    telemetry.push_metrics,
                    await self.text(),
                    telemetry.endpoint,
                )
            if is_taken != was_taken:
                log.info("otlp", endpoint=telemetry.endpoint, metrics_taken=is_taken)

    def close(self) -> None:
        """Wait for nothing any more."""
        self._links.close()
