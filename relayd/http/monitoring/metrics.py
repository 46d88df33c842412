"""Prometheus metrics: requests by route template, plans, samples, queues, links, errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isnan, nan
from platform import python_version
from typing import NamedTuple

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
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from planner.model.errors import RelaydError
from planner.model.estimate import BOUNDS, Estimate
from planner.model.link import Link
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT, BYTES_PER_GB, MBPS_PER_GBPS, MS_PER_S
from probes.samples import Sample
from relayd.http.problems import ProblemError
from relayd.http.store_access import StoreAccess
from relayd.http.workers import Workers
from relayd.sources.wan import Wan
from relayd.store.campaigns import CampaignTotals, campaign_totals
from relayd.tables.figures import links_to_watch
from relayd.version import __version__

BUCKETS_S = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip
ERROR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
SPENDING_WAIT_S = 2.0
"""For what campaigns have taken: metrics go without it sooner than a scrape gives up."""
SOON_S = 0.5
"""For gauges of links of a new state of knowledge; the next scrape has them."""
FIRST_S = 9.0
"""For the first ones of all. Prometheus gives a scrape up after 10 s by default."""
BYTES_PER_S_PER_GBPS = MBPS_PER_GBPS * BITS_PER_MBIT / BITS_PER_BYTE
CONDITIONS = {"up": 0, "degraded": 1, "down": 2}


class Metrics:
    """Figures of the service, of campaigns, and of at most so many links.

    All are counted on the event loop, but for gauges of links: a worker makes them once for each
    state of knowledge. Labels are route templates, methods and status codes: never what a client
    made up.
    """

    def __init__(self, store: StoreAccess, workers: Workers, most_links: int) -> None:
        self._store = store
        self._workers = workers
        self._most_links = most_links
        self._campaigns = self._links = b""
        self._version = ""
        self._making: asyncio.Task[None] | None = None
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self.requests = Histogram(
            "relayd_http_request_duration_seconds",
            "Time until a request was answered.",
            ("route", "method", "status"),
            buckets=BUCKETS_S,
            registry=registry,
        )
        self.planning = Histogram(
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
        self.plans = Counter(
            "relayd_plans", "Plans answered, by where they came from.", ("from",), registry=registry
        )
        for name in ("cache", "planner", "workers"):
            self.plans.labels(name)
        self.samples = Counter(
            "relayd_samples_ingested", "Samples received.", ("result",), registry=registry
        )

    def estimated(self, errors: Iterable[EstimateError]) -> None:
        """Count errors of estimates."""
        for error in errors:
            self._errors.labels(error.metric, error.source).observe(error.ratio)

    def gauge(self, name: str, description: str, value: Callable[[], float | None]) -> None:
        """Add a gauge that is read whenever metrics are; NaN where it has no value."""
        gauge = Gauge(f"relayd_{name}", description, registry=self.registry)
        gauge.set_function(lambda: nan if (found := value()) is None else found)

    def counter(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a counter that is kept elsewhere, and read whenever metrics are."""
        self.registry.register(
            _Families(lambda: [CounterMetricFamily(f"relayd_{name}", description, value())])
        )

    async def text(self, version: str) -> bytes:
        """Return all metrics in Prometheus' text format, with a state's gauges of links.

        Figures that the store, or the workers, don't give in time are the last ones.
        """
        with contextlib.suppress(RelaydError, ProblemError, TimeoutError):
            async with asyncio.timeout(SPENDING_WAIT_S):
                totals = await self._store.read(lambda store: campaign_totals(store.database))
            self._campaigns = generate_latest(_Families(lambda: _of_campaigns(totals)))
        if self._most_links and self._version != version:
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make(version))
            await asyncio.wait({self._making}, timeout=SOON_S if self._links else FIRST_S)
        return generate_latest(self.registry) + self._campaigns + self._links

    async def _make(self, version: str) -> None:
        with contextlib.suppress(ProblemError):  # no worker is free: the next scrape asks again
            self._links = await self._workers.ask(version, link_gauges, self._most_links)
            self._version = version

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._making:
            self._making.cancel()


class _Families(Collector):
    """Families of metrics that a function makes whenever they are read."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()


def _of_campaigns(totals: CampaignTotals) -> Iterator[Metric]:
    """Yield what all campaigns of the store have taken so far."""
    name = "relayd_campaign_"
    paid = "Egress that campaigns paid for."
    yield CounterMetricFamily(f"{name}egress_usd", paid, totals.usd)
    sent_bytes = totals.sent_gb * BYTES_PER_GB
    yield CounterMetricFamily(f"{name}sent_bytes", "What campaigns sent.", sent_bytes)
    ended = "Probes of campaigns that ended."
    probes = CounterMetricFamily(f"{name}probes", ended, labels=("result",))
    probes.add_metric(("done",), totals.done)
    probes.add_metric(("failed",), totals.failed)
    yield probes


# ---- links -------------------------------------------------------------------------------------


def link_gauges(wan: Wan, most: int) -> bytes:
    """Return the gauges of at most so many links, in Prometheus' text format (0.0.4).

    Where there are more, those that are not up come first, then those that were measured: that
    choice changes only with what is known, so that series do not come and go.
    """

    def collect() -> Iterator[Metric]:
        links, known = links_to_watch(wan.network, most)
        shown = "Links with gauges of their own here."
        yield GaugeMetricFamily("relayd_links_known", "Links between measured regions.", known)
        yield GaugeMetricFamily("relayd_links_shown", shown, len(links))
        columns = zip(*map(_figures(wan), links), strict=True) if links else ()
        for (name, meaning), column in zip(_LINK_GAUGES.items(), columns, strict=False):
            family = GaugeMetricFamily(f"relayd_link_{name}", meaning, labels=("src", "dst"))
            digits = 10 if name.endswith("timestamp_seconds") else 6
            for link, found in zip(links, column, strict=True):
                if not isnan(found):
                    family.add_metric((link.src, link.dst), float(f"{found:.{digits}g}"))
            yield family

    return generate_latest(_Families(collect))


_RATE = "Throughput of one VM pair with many connections: "
_LINK_GAUGES = {
    "throughput_bytes_per_second": f"{_RATE}what is expected.",
    "throughput_low_bytes_per_second": f"{_RATE}5th percentile.",
    "throughput_high_bytes_per_second": f"{_RATE}95th percentile.",
    "rtt_seconds": "Round-trip time.",
    "loss_ratio": "Share of packets lost, where measured.",
    "measured_timestamp_seconds": (
        "When the newest sample of this very link was taken (Unix time)."
    ),
    "state": "0 up, 1 degraded, 2 down.",
    "relay_gain_ratio": (
        "Throughput of the best single relay over that of the direct path, one VM a region."
    ),
    "egress_usd_per_gigabyte": "Price of the first gigabyte, in US dollars.",
    "prediction_error_ratio": (
        "What the last verified plan from here to there carried over its prediction, less 1."
    ),
}
"""Names and meanings of the gauges of a link."""


def _figures(wan: Wan) -> Callable[[Link], tuple[float, ...]]:
    """Return what gives a link's gauges, in the order of their names; NaN for nothing known."""
    network, index = wan.network, wan.network.index
    gains, fees = wan.matrix("relay-gain").values, wan.matrix("fee").values

    def figures(link: Link) -> tuple[float, ...]:
        pair, place = (link.src, link.dst), (index[link.src], index[link.dst])
        rate = link.aggregate_gbps
        seen, state = network.verified.get(pair), network.states.get(pair)
        rates_gbps = (rate.expected, rate.low, rate.high)
        is_verified = seen is not None and seen.expected_gbps > 0
        return (
            *(rate_gbps * BYTES_PER_S_PER_GBPS for rate_gbps in rates_gbps),
            link.rtt_ms.expected / MS_PER_S,
            nan if link.loss_pct is None else link.loss_pct / 100,
            _newest_sample_s(link),
            CONDITIONS[state.condition] if state else 0,
            float(gains[place]),
            float(fees[place]),
            seen.achieved_gbps / seen.expected_gbps - 1 if seen and is_verified else nan,
        )

    return figures


def _newest_sample_s(link: Link) -> float:
    measured = [one for one in link.estimates.values() if one.source == "measured"]
    times_s = [one.measured_at_s for one in measured]
    return max((at_s for at_s in times_s if at_s is not None), default=nan)


# ---- errors of estimates -----------------------------------------------------------------------


class EstimateError(NamedTuple):
    """The error of one estimate."""

    metric: str
    source: str  # of the figure, and the source of its estimate: measured, inferred or baseline
    ratio: float  # |measured - estimated| over the estimate
    inside: bool  # whether the sample lies between the bounds of the estimate


def estimate_errors(
    links: Mapping[str, Mapping[str, Link]], samples: Iterable[Sample]
) -> Iterator[EstimateError]:
    """Yield how far estimates are from samples that they do not rest on.

    Throughput that was measured with few connections is compared with what the link is expected
    to reach with as many, ``min(k f, A)``. ``links`` are by source and destination.
    """
    for sample in samples:
        link = links.get(sample.src, {}).get(sample.dst)
        if link is None:
            continue
        estimate: Estimate
        if sample.metric in ("rtt_ms", "per_flow_mbps"):
            estimate = link.estimates[sample.metric]
            low, expected, high = estimate.low, estimate.expected, estimate.high
        else:
            estimate, k = link.aggregate_gbps, sample.connections
            rates_gbps = [link.rate_gbps(k, bound) if k else estimate.at(bound) for bound in BOUNDS]
            low, expected, high = (MBPS_PER_GBPS * rate for rate in rates_gbps)
            if rates_gbps[1] != estimate.expected:
                estimate = link.per_flow_mbps
        if expected > 0:
            ratio = abs(sample.value - expected) / expected
            inside = low <= sample.value <= high
            yield EstimateError(sample.metric, estimate.source, ratio, inside)
