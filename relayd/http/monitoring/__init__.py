"""Metrics, logs and traces of the service, for Prometheus and OpenTelemetry."""
