"""Paths about the network as it is known: its regions, links, snapshots, and what changed."""
