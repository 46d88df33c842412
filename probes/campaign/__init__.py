"""Campaigns: which probes to run, in which rounds, at what cost, and running them to the end."""
