"""Paths about measuring: campaigns, hosts, samples, and what to believe of them."""
