"""Continuous operation: liveness probes, failover, campaigns when due, upkeep, notifications."""
