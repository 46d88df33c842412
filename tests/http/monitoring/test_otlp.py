"""Traces and metrics over OTLP: a service, and a collector that reads them by the protocol."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics.export import Gauge, Histogram, Sum
from opentelemetry.sdk.resources import Resource

from relayd.http.monitoring.telemetry import metrics_data
from relayd.http.settings import ServiceSettings
from tests.http.running import Served, served
from tests.waiting import eventually

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector() -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yield the address of a collector, the spans it got, and the newest of each metric."""
    spans: list[Any] = []
    metrics: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                for sender in ExportTraceServiceRequest.FromString(body).resource_spans:
                    spans.extend(span for scope in sender.scope_spans for span in scope.spans)
            elif self.path == "/v1/metrics":
                for sender in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    names = {a.key: a.value.string_value for a in sender.resource.attributes}
                    assert names["service.name"] == "planner"
                    for scope in sender.scope_metrics:
                        metrics.update({metric.name: metric for metric in scope.metrics})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", spans, metrics
        finally:
            server.shutdown()


def test_a_collector_gets_what_a_request_took_and_what_metrics_say(store: Path) -> None:
    with collector() as (address, spans, metrics):
        environment = {
            "RELAYD_SERVE_OTLP_ENDPOINT": address,
            "OTEL_METRIC_EXPORT_INTERVAL": "300",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_SERVICE_NAME": "planner",
        }
        with served(store, environment=environment) as service:
            traced = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-ID": "job-7"}
            assert service.get("/v1/matrix?metric=rtt", **traced).status == 200
            service.get("/v1/plans?src=us-east&dst=sa&secret=1")
            of_trace = eventually(
                lambda: len(spans) >= 3 and [s for s in spans if s.trace_id.hex() == TRACE]
            )
            sent = {"relayd_link_state", "relayd_http_request_duration_seconds"}
            eventually(lambda: metrics.keys() >= sent)
            text = service.get("/metrics").content.decode()
    own = next(span for span in of_trace if span.parent_span_id.hex() == PARENT)
    said = {a.key: a.value.string_value or a.value.int_value for a in own.attributes}
    assert own.name == "GET /v1/matrix"
    assert said == {
        "http.request.method": "GET",
        "http.route": "/v1/matrix",
        "http.response.status_code": 200,
        "relayd.request_id": "job-7",
    }
    (child,) = (span for span in of_trace if span.parent_span_id == own.span_id)
    assert child.name == "worker matrix_bytes"
    assert own.start_time_unix_nano <= child.start_time_unix_nano
    assert child.end_time_unix_nano <= own.end_time_unix_nano
    # What a client made up is in no span.
    assert "secret" not in str(spans)
    states = metrics["relayd_link_state"].gauge.data_points
    assert len(states) == text.count("\nrelayd_link_state{") == 12
    assert metrics["relayd_snapshot_failures"].sum.is_monotonic
    took = metrics["relayd_http_request_duration_seconds"]
    assert took.unit == "s"
    assert sum(point.count for point in took.histogram.data_points) >= 1


def test_a_service_without_its_collector_answers_and_says_so_once(bounded: Served) -> None:
    def told() -> list[dict[str, Any]]:
        return [line for line in bounded.lines() if line["event"] == "otlp"]

    assert bounded.get("/v1/plans?src=us-east&dst=sa").status == 200
    eventually(told)
    assert bounded.get("/v1/plans?src=us-east&dst=sa&volume_gb=7").status == 200
    (line,) = told()
    assert line["metrics_taken"] is False


def test_families_become_what_they_are() -> None:
    text = """# TYPE process_start_time_seconds gauge
process_start_time_seconds 1000
# HELP a_total Things.
# TYPE a_total counter
a_total{x="1"} 3
# TYPE b_seconds histogram
b_seconds_bucket{r="x",le="0.1"} 1
b_seconds_bucket{r="x",le="1"} 3
b_seconds_bucket{r="x",le="+Inf"} 4
b_seconds_count{r="x"} 4
b_seconds_sum{r="x"} 5.5
"""
    (sender,) = metrics_data(text, 2_000_000_000_000, Resource({})).resource_metrics
    _, counter, histogram = sender.scope_metrics[0].metrics
    assert (counter.name, counter.description) == ("a", "Things.")
    assert isinstance(counter.data, Sum)
    (point,) = counter.data.data_points
    assert (point.value, point.attributes, point.start_time_unix_nano) == (3, {"x": "1"}, 10**12)
    assert isinstance(histogram.data, Histogram)
    (cell,) = histogram.data.data_points
    assert (cell.count, cell.sum, cell.attributes) == (4, 5.5, {"r": "x"})
    assert (cell.explicit_bounds, cell.bucket_counts) == ([0.1, 1.0], [1, 2, 1])
    assert isinstance(sender.scope_metrics[0].metrics[0].data, Gauge)


@pytest.mark.parametrize("address", ["collector:4318", "http://user:word@host", "ftp://host"])
def test_addresses_that_are_none_are_refused(address: str) -> None:
    (problem,) = ServiceSettings(otlp_endpoint=address).problems()
    assert problem.field == "otlp_endpoint"
