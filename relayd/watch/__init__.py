"""Continuous operation: light probing, failover, frugal campaigns when due, and upkeep."""
