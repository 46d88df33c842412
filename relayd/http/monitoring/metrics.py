"""Prometheus metrics: requests by route template, plans, queues, age of the snapshot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from platform import python_version

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from planner.model.units import BYTES_PER_GB
from relayd.http.monitoring.estimate_errors import EstimateError
from relayd.http.monitoring.summing import Families, families_of
from relayd.store.campaigns.totals import CampaignTotals
from relayd.version import __version__

BUCKETS_S = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip


FORMER_NAMES = {
    "watch_links_down": "watch_legs_down",
    "watch_links_degraded": "watch_legs_degraded",
    "watch_last_probe_age_seconds": "watch_last_look_age_seconds",
}
"""Gauges that keep their former names until the version after this one."""

ERROR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)


class _Histogram:
    """A histogram with labels, for one thread.

    prometheus_client's own histogram locks and looks labels up, which takes three times as long
    and would be a tenth of what a plan from the cache takes.
    """

    def __init__(
        self,
        name: str,
        description: str,
        labels: tuple[str, ...],
        bounds: tuple[float, ...] = BUCKETS_S,
    ) -> None:
        self._about = name, description, labels
        self._bounds = bounds
        # A count for each bucket, one beyond them, and the sum.
        self._cells: dict[tuple[str, ...], list[float]] = {}

    def observe(self, key: tuple[str, ...], value: float) -> None:
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = [0.0] * (len(self._bounds) + 2)
        cell[bisect_left(self._bounds, value)] += 1
        cell[-1] += value

    def collect(self) -> Iterator[Metric]:
        name, description, labels = self._about
        family = HistogramMetricFamily(name, description, labels=labels)
        for key, cell in self._cells.items():
            totals = accumulate(cell[:-1])
            bounds = [*(str(bound) for bound in self._bounds), "+Inf"]
            buckets = [(bound, total) for bound, total in zip(bounds, totals, strict=True)]
            family.add_metric(key, buckets, cell[-1])
        yield family


class _ReadCounter:
    """A counter that is kept elsewhere."""

    def __init__(self, name: str, description: str, value: Callable[[], float]) -> None:
        self._name, self._description, self._value = name, description, value

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._name, self._description, self._value())


def campaign_families(totals: CampaignTotals) -> Iterator[Metric]:
    """Yield what all campaigns of the store have taken so far."""
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


class Metrics:
    """Counters and gauges of one process; all are counted on the event loop.

    Labels are route templates, methods and status codes: never what a client made up.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = _Histogram(
            "relayd_http_request_duration_seconds",
            "Time until a request was answered.",
            ("route", "method", "status"),
        )
        self._planning = _Histogram(
            "relayd_planning_duration_seconds", "Time that planning took.", ()
        )
        self._errors = _Histogram(
            "relayd_estimate_error_ratio",
            "Error of estimates at the next sample of their link: |sample - estimate| / estimate.",
            ("metric", "source"),
            ERROR_BUCKETS,
        )
        self.registry.register(self._requests)
        self.registry.register(self._planning)
        self.registry.register(self._errors)
        ProcessCollector(registry=self.registry)
        build = Info("relayd_build", "What runs here.", registry=self.registry)
        build.info({"version": __version__, "python": python_version()})
        self._plans = {"cache": 0, "planner": 0, "workers": 0}
        self._samples = Counter(
            "relayd_samples_ingested", "Samples received.", ("result",), registry=self.registry
        )
        self.registry.register(self)
        self._statuses: dict[int, str] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the number of plans, for the registry."""
        family = CounterMetricFamily(
            "relayd_plans", "Plans answered, by where they came from.", labels=("from",)
        )
        for origin, number in self._plans.items():
            family.add_metric((origin,), number)
        yield family

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        text = self._statuses.get(status)
        if text is None:
            text = self._statuses[status] = str(status)
        self._requests.observe((route, method, text), seconds)

    def cached(self) -> None:
        """Count a plan from the cache."""
        self._plans["cache"] += 1

    def planned(self, seconds: float) -> None:
        """Count a plan from the planner."""
        self._plans["planner"] += 1
        self._planning.observe((), seconds)

    def batched(self, number: int) -> None:
        """Count plans of a batch."""
        self._plans["workers"] += number

    def ingested(self, *, accepted: int, duplicates: int, rejected: int, quarantined: int) -> None:
        """Count samples."""
        for result, number in (
            ("accepted", accepted),
            ("duplicate", duplicates),
            ("rejected", rejected),
            ("quarantined", quarantined),
        ):
            self._samples.labels(result).inc(number)

    def over_limit(self, number: int) -> None:
        """Count samples of a request that was refused whole: the store may hold no more names."""
        self._samples.labels("over_limit").inc(number)

    def estimated(self, errors: Iterable[EstimateError]) -> None:
        """Count errors of estimates."""
        for error in errors:
            self._errors.observe((error.metric, error.source), error.ratio)

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever metrics are, also under its former name."""
        Gauge(f"relayd_{name}", description, registry=self.registry).set_function(value)
        if former := FORMER_NAMES.get(name):
            help_text = f"Deprecated: use relayd_{name}."
            Gauge(f"relayd_{former}", help_text, registry=self.registry).set_function(value)

    def counter(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a counter that is read whenever metrics are."""
        self.registry.register(_ReadCounter(f"relayd_{name}", description, value))

    def families(self) -> Families:
        """Return all metrics of this process."""
        return families_of(self.registry)
