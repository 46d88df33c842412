"""All metrics of a service as one text, for a scrape or for a collector of OpenTelemetry."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from planner.model.errors import RelaydError
from relayd.http.middleware.logs import Log
from relayd.http.monitoring.link_metrics import LinkMetrics
from relayd.http.monitoring.metrics import Metrics, campaign_families
from relayd.http.monitoring.summing import Families, metrics_of, summed
from relayd.http.processes.peers import Peers
from relayd.http.responses.problems import ProblemError
from relayd.http.server.current_state import Current
from relayd.http.server.store_access import StoreAccess
from relayd.http.server.workers import Workers
from relayd.store.campaigns.totals import CampaignTotals, campaign_totals

if TYPE_CHECKING:
    from relayd.http.monitoring.telemetry import Telemetry

SPENDING_WAIT_S = 2.0
"""For what campaigns have taken: metrics go without it sooner than a scrape gives up."""


class _ServiceMetrics(Collector):
    """Metrics of all processes together."""

    def __init__(self, families: Families, peers: Peers, campaigns: CampaignTotals | None) -> None:
        self._families = families
        self._peers = peers
        self._campaigns = campaigns

    def collect(self) -> Iterator[Metric]:
        yield from metrics_of(self._families)
        running, restarts = self._peers.shared.running, self._peers.shared.restarts
        yield GaugeMetricFamily("relayd_processes", "Processes that serve.", len(running))
        yield CounterMetricFamily(
            "relayd_process_restarts", "Processes started for one that ended.", restarts
        )
        if self._campaigns is not None:
            yield from campaign_families(self._campaigns)


class Exposition:
    """Metrics of the service, of campaigns, and of at most so many links.

    Parameters
    ----------
    metrics : Metrics
        Of this process.
    peers : Peers
        Have those of the others.
    most_links : int
    store : StoreAccess
    workers : Workers
    current : callable
        Returns the state of knowledge that answers rest on now.
    """

    def __init__(
        self,
        metrics: Metrics,
        peers: Peers,
        most_links: int,
        store: StoreAccess,
        workers: Workers,
        current: Callable[[], Current],
    ) -> None:
        self._metrics = metrics
        self._peers = peers
        self._campaigns: CampaignTotals | None = None
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
                self._campaigns = await self._store.read(
                    lambda store: campaign_totals(store.database)
                )
        links = await self._links.text(self._current())
        families = summed([self.post(), *self._peers.figures()])
        return generate_latest(_ServiceMetrics(families, self._peers, self._campaigns)) + links

    def post(self) -> Families:
        """Give the other processes the metrics of this one, and return these.

        What a service has once said of itself it says again, also where this process is killed.
        """
        families = summed([self._peers.earlier, self._metrics.families()])
        self._peers.post_figures(families)
        return families

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
