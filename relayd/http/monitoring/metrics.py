"""Prometheus metrics of the service: requests by route template, plans, samples, queues, links."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from platform import python_version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from planner.model.errors import RelaydError
from planner.model.units import BYTES_PER_GB
from relayd.http.current_state import Current
from relayd.http.monitoring.estimate_errors import EstimateError
from relayd.http.monitoring.link_gauges import link_gauges
from relayd.http.problems import ProblemError
from relayd.http.store_access import StoreAccess
from relayd.http.workers import Workers
from relayd.store.campaigns.states import CampaignTotals, campaign_totals
from relayd.version import __version__

BUCKETS_S = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip
ERROR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
SPENDING_WAIT_S = 2.0
"""For what campaigns have taken: metrics go without it sooner than a scrape gives up."""
SOON_S = 0.5
"""For gauges of links of a new state of knowledge; the next scrape has them."""
FIRST_S = 5.0
"""For the first ones of all. Prometheus gives a scrape up after 10 s by default."""


class Metrics:
    """Counters and gauges of the service; all are counted on the event loop.

    Labels are route templates, methods and status codes: never what a client made up.
    """

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "relayd_http_request_duration_seconds",
            "Time until a request was answered.",
            ("route", "method", "status"),
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._planning = Histogram(
            "relayd_planning_duration_seconds",
            "Time that planning took.",
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._errors = Histogram(
            "relayd_estimate_error_ratio",
            "Error of estimates at the next sample of their link: |sample - estimate| / estimate.",
            ("metric", "source"),
            buckets=ERROR_BUCKETS,
            registry=registry,
        )
        ProcessCollector(registry=registry)
        build = Info("relayd_build", "What runs here.", registry=registry)
        build.info({"version": __version__, "python": python_version()})
        plans = Counter(
            "relayd_plans", "Plans answered, by where they came from.", ("from",), registry=registry
        )
        self._plans = {name: plans.labels(name) for name in ("cache", "planner", "workers")}
        self._samples = Counter(
            "relayd_samples_ingested", "Samples received.", ("result",), registry=registry
        )

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, method, status).observe(seconds)

    def cached(self) -> None:
        """Count a plan from the cache."""
        self._plans["cache"].inc()

    def planned(self, seconds: float) -> None:
        """Count a plan from the planner."""
        self._plans["planner"].inc()
        self._planning.observe(seconds)

    def batched(self, number: int) -> None:
        """Count plans of a batch."""
        self._plans["workers"].inc(number)

    def ingested(self, **samples: int) -> None:
        """Count samples, by what became of them."""
        for result, number in samples.items():
            self._samples.labels(result).inc(number)

    def estimated(self, errors: Iterable[EstimateError]) -> None:
        """Count errors of estimates."""
        for error in errors:
            self._errors.labels(error.metric, error.source).observe(error.ratio)

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever metrics are."""
        Gauge(f"relayd_{name}", description, registry=self.registry).set_function(value)

    def counter(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a counter that is kept elsewhere, and read whenever metrics are."""
        self.registry.register(_ReadCounter(f"relayd_{name}", description, value))


class _ReadCounter(Collector):
    def __init__(self, name: str, description: str, value: Callable[[], float]) -> None:
        self._name, self._description, self._value = name, description, value

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._name, self._description, self._value())


class _CampaignMetrics(Collector):
    """What all campaigns of the store have taken so far."""

    def __init__(self, totals: CampaignTotals) -> None:
        self._totals = totals

    def collect(self) -> Iterator[Metric]:
        totals = self._totals
        yield CounterMetricFamily(
            "relayd_campaign_egress_usd", "Egress that campaigns paid for.", totals.usd
        )
        yield CounterMetricFamily(
            "relayd_campaign_sent_bytes", "What campaigns sent.", totals.sent_gb * BYTES_PER_GB
        )
        probes = CounterMetricFamily(
            "relayd_campaign_probes", "Probes of campaigns that ended.", labels=("result",)
        )
        probes.add_metric(("done",), totals.done)
        probes.add_metric(("failed",), totals.failed)
        yield probes


class Exposition:
    """All metrics as one text: of the service, of campaigns, and of at most so many links.

    Gauges of links are made by a worker, once for each state of knowledge.

    Parameters
    ----------
    metrics : Metrics
    most_links : int
        Links with gauges of their own; 0 for none.
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
        self._most_links = most_links
        self._store = store
        self._workers = workers
        self._current = current
        self._campaigns = b""
        self._links = b""
        self._version = ""
        self._making: asyncio.Task[None] | None = None

    async def text(self) -> bytes:
        """Return all metrics in Prometheus' text format, with the last figures of a silent store.

        What campaigns took is read from the store, which may take :data:`SPENDING_WAIT_S`.
        """
        with contextlib.suppress(RelaydError, ProblemError, TimeoutError):
            async with asyncio.timeout(SPENDING_WAIT_S):
                totals = await self._store.read(lambda store: campaign_totals(store.database))
            self._campaigns = generate_latest(_CampaignMetrics(totals))
        links = await self._text_of_links()
        return generate_latest(self._metrics.registry) + self._campaigns + links

    async def _text_of_links(self) -> bytes:
        """Return the gauges of links; the last ones until new ones are made."""
        version = self._current().version
        if self._most_links and self._version != version:
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make(version))
            await asyncio.wait({self._making}, timeout=SOON_S if self._links else FIRST_S)
        return self._links

    async def _make(self, version: str) -> None:
        with contextlib.suppress(ProblemError):  # no worker is free: the next scrape asks again
            self._links = await self._workers.ask(version, link_gauges, self._most_links)
            self._version = version

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._making:
            self._making.cancel()
