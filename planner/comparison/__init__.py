"""Ranking of places to run a service that sends to, or fetches from, given regions."""
