"""The service's metrics for OpenTelemetry: what /metrics says, pushed over OTLP/HTTP."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
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
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from relayd.sources.wan import Wan
from relayd.version import __version__

TIMEOUT_S = 5.0
POINTS_AT_ONCE = 5000
"""In one request, some 400 kB before compression: collectors refuse large ones."""
NS_PER_S = 1_000_000_000
_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
_START = "process_start_time_seconds"


def resource() -> Resource:
    """Return what sends; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before our names."""
    own = Resource({"service.name": "relayd", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def push_metrics(_wan: Wan, text: bytes, endpoint: str) -> bool:
    """Send metrics in Prometheus' text format to a collector; returns whether it took them.

    Parameters
    ----------
    endpoint : str
        Base address of the collector, such as ``http://127.0.0.1:4318``.
    """
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
        counts = list(_differences(count for _, count in below))
        yield HistogramDataPoint(
            dict(key), start_ns, now_ns, int(total), sum_, counts, bounds, inf, -inf
        )


def _differences(totals: Iterable[float]) -> Iterator[int]:
    before = 0.0
    for total in totals:
        yield int(total - before)
        before = total
