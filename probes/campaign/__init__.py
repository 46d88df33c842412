"""Campaigns: choosing probes, scheduling them in rounds, costing them, and running them."""
