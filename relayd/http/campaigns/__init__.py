"""Campaigns of the service: one process each, started, watched and ended by it."""
