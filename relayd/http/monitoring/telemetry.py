"""Traces and metrics over OTLP/HTTP, by OpenTelemetry's SDK (the extra ``relayd[otel]``).

What the SDK reads from the environment holds: ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_TRACES_SAMPLER``,
``OTEL_METRIC_EXPORT_INTERVAL``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import pairwise
from math import inf

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from planner.model.units import MS_PER_S
from relayd.http.problems import ProblemError
from relayd.http.workers import Workers
from relayd.sources.wan import Wan
from relayd.version import __version__

LOG = logging.getLogger(__name__)
DEFAULT_INTERVAL_S = 60.0
TIMEOUT_S = 5.0
POINTS_AT_ONCE = 5000
"""In one request, some 400 kB before compression: collectors refuse large ones."""
NS_PER_S = 1_000_000_000
_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
_START = "process_start_time_seconds"

EndSpan = Callable[[int, str], None]
"""Ends a request's span, with its status and id."""


class Telemetry:
    """Spans of requests, and metrics at intervals, for the collector at a base address."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.interval_s = DEFAULT_INTERVAL_S
        with contextlib.suppress(ValueError):
            interval_ms = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", ""))
            self.interval_s = max(0.1, interval_ms / MS_PER_S)
        self._is_taken = True
        self._provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        sends = OTLPSpanExporter(f"{self.endpoint}/v1/traces", timeout=TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(sends))
        self._tracer = self._provider.get_tracer("relayd", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, method: str, route: str, headers: Mapping[str, str]) -> EndSpan:
        """Begin the span of a request; spans within it are its children.

        It continues the caller's trace where headers name one (W3C Trace Context). It holds the
        route's template, and nothing else of what was sent.
        """
        caller: Context = self._propagator.extract(dict(headers), Context())
        span = self._tracer.start_span(
            f"{method} {route}",
            caller,
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": route},
        )
        token = context.attach(set_span_in_context(span))

        def end(status: int, request_id: str) -> None:
            context.detach(token)
            span.set_attribute("http.response.status_code", status)
            span.set_attribute("relayd.request_id", request_id)
            if status >= 500:
                span.set_status(Status(StatusCode.ERROR))
            span.end()

        return end

    def span(self, name: str) -> AbstractContextManager[object]:
        """Return a span within that of the request."""
        return self._tracer.start_as_current_span(name)

    async def push(self, text: bytes, workers: Workers, version: str) -> None:
        """Send metrics in Prometheus' text format; a worker turns them into OTLP."""
        is_taken = False
        with contextlib.suppress(ProblemError):
            is_taken = await workers.ask(version, push_metrics, text, self.endpoint)
        if is_taken != self._is_taken:
            about = {"endpoint": self.endpoint, "metrics_taken": is_taken}
            LOG.info("otlp", extra=about)
        self._is_taken = is_taken

    def close(self) -> None:
        """Send what is left; takes up to the time that a collector may take."""
        self._provider.shutdown()


def resource() -> Resource:
    """Describe the sender; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first."""
    own = Resource({"service.name": "relayd", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def push_metrics(_wan: Wan, text: bytes, endpoint: str) -> bool:
    """Send metrics in Prometheus' text format to a collector; returns whether it took them."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the caller says it once
    exporter = OTLPMetricExporter(
        f"{endpoint}/v1/metrics",
        timeout=TIMEOUT_S,
        compression=Compression.Gzip,
        max_export_batch_size=POINTS_AT_ONCE,
    )
    try:
        data = metrics_data(text.decode(), time.time_ns(), resource())
        return exporter.export(data) is MetricExportResult.SUCCESS
    finally:
        exporter.shutdown()


def metrics_data(text: str, now_ns: int, sender: Resource) -> MetricsData:
    """Return metrics in Prometheus' text format (0.0.4) as OpenTelemetry's data model has them.

    Counters and histograms count from the start of the process, which is among the metrics.
    """
    families = list(text_string_to_metric_families(text))
    began_s = [family.samples[0].value for family in families if family.name == _START]
    start_ns = int(began_s[0] * NS_PER_S) if began_s else now_ns
    metrics = [_metric(family, start_ns, now_ns) for family in families if family.samples]
    scope = ScopeMetrics(InstrumentationScope("relayd", __version__), metrics, "")
    return MetricsData([ResourceMetrics(sender, [scope], "")])


def _metric(family: Family, start_ns: int, now_ns: int) -> Metric:
    unit = _UNITS.get(family.name.rpartition("_")[2], "")
    cumulative = AggregationTemporality.CUMULATIVE
    data: Gauge | Sum | Histogram
    if family.type == "histogram":
        data = Histogram(list(_histograms(family, start_ns, now_ns)), cumulative)
    else:
        points = [
            NumberDataPoint(dict(sample.labels), start_ns, now_ns, sample.value)
            for sample in family.samples
        ]
        data = Sum(points, cumulative, True) if family.type == "counter" else Gauge(points)
    return Metric(family.name, family.documentation, unit, data)


def _histograms(family: Family, start_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    cells: defaultdict[tuple[tuple[str, str], ...], dict[str, float]] = defaultdict(dict)
    for sample in family.samples:
        labels = dict(sample.labels)
        part = labels.pop("le", None) or sample.name.removeprefix(family.name)
        cells[tuple(labels.items())][part] = sample.value
    for key, parts in cells.items():
        total, sum_ = parts.pop("_count"), parts.pop("_sum")
        below = sorted((float(bound), count) for bound, count in parts.items())
        bounds = [bound for bound, _ in below if bound < inf]
        totals = [int(count) for _, count in below]
        counts = [count - before for before, count in pairwise([0, *totals])]
        yield HistogramDataPoint(
            dict(key), start_ns, now_ns, int(total), sum_, counts, bounds, inf, -inf
        )
