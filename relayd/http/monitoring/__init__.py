"""What the service tells monitoring: Prometheus, and collectors of OpenTelemetry."""
