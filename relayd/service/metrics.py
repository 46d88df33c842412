"""What Prometheus reads: requests by route template, plans, queues, age of what is known."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS_S = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip


class Metrics:
    """Counters and gauges of one service.

    Labels are route templates, methods and status codes: never what a client made up.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "relayd_http_requests", "Requests answered.", ("route", "method", "status"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "relayd_http_request_seconds", "Time until a request was answered.",
            ("route", "method"), buckets=BUCKETS_S, registry=self.registry,
        )  # fmt: skip
        self._plans = Counter(
            "relayd_plans", "Plans answered, by where they came from.", ("from",),
            registry=self.registry,
        )  # fmt: skip
        self.planning_s = Histogram(
            "relayd_planning_seconds", "Time that planning took.", buckets=BUCKETS_S,
            registry=self.registry,
        )  # fmt: skip
        self._samples = Counter(
            "relayd_samples_ingested", "Samples received.", ("result",), registry=self.registry
        )
        self.in_flight = Gauge(
            "relayd_http_in_flight", "Requests being answered.", registry=self.registry
        )
        self._known: dict[tuple[str, str, int], Callable[[float], None]] = {}
        self.cached = self._plans.labels("cache").inc
        self.planned = self._plans.labels("planner").inc
        self.batched = self._plans.labels("workers").inc

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method, status)
        count = self._known.get(key)
        if count is None:
            # Looking labels up takes longer than counting.
            more, observe = (
                self._requests.labels(route, method, str(status)).inc,
                self._seconds.labels(route, method).observe,
            )

            def count(seconds: float) -> None:
                more()
                observe(seconds)

            self._known[key] = count
        count(seconds)

    def ingested(self, *, accepted: int, duplicates: int, rejected: int) -> None:
        """Count samples."""
        for result, number in (
            ("accepted", accepted), ("duplicate", duplicates), ("rejected", rejected)
        ):  # fmt: skip
            self._samples.labels(result).inc(number)

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a figure that is looked up whenever it is read."""
        Gauge(f"relayd_{name}", description, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)


def age_s(at_s: float) -> float:
    """Return how long ago a Unix time is."""
    return max(0.0, time.time() - at_s)
