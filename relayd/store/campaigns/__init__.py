"""Campaigns in the store: their specifications, probes and spending."""
