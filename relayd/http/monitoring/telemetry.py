"""Traces and metrics over OTLP/HTTP, by OpenTelemetry's SDK (the extra ``relayd[otel]``).

What the SDK reads from the environment holds: ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_TRACES_SAMPLER``,
``OTEL_METRIC_EXPORT_INTERVAL``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from planner.model.units import MS_PER_S
from relayd.http.monitoring.otlp_metrics import TIMEOUT_S, push_metrics, resource
from relayd.version import __version__

DEFAULT_INTERVAL_MS = 60_000.0

EndSpan = Callable[[int, str], None]
"""Ends a request's span, with its status and id."""


class Telemetry:
    """Spans of requests, and metrics at intervals.

    Parameters
    ----------
    endpoint : str
        Base address of the collector.
    exporter : SpanExporter, optional
        In place of the one over OTLP.
    """

    def __init__(self, endpoint: str, exporter: SpanExporter | None = None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.push_metrics = push_metrics
        self.interval_s = _interval_ms() / MS_PER_S
        self._provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        sends = exporter or OTLPSpanExporter(f"{self.endpoint}/v1/traces", timeout=TIMEOUT_S)
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
            _end(span, status, request_id)

        return end

    def span(self, name: str) -> AbstractContextManager[object]:
        """Return a span within that of the request."""
        return self._tracer.start_as_current_span(name)

    def close(self) -> None:
        """Send what is left; takes up to the time that a collector may take."""
        self._provider.shutdown()


def _end(span: Span, status: int, request_id: str) -> None:
    span.set_attribute("http.response.status_code", status)
    span.set_attribute("relayd.request_id", request_id)
    if status >= 500:
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _interval_ms() -> float:
    try:
        return max(100.0, float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "")))
    except ValueError:
        return DEFAULT_INTERVAL_MS
