"""Metrics and logs of the service, for Prometheus."""
