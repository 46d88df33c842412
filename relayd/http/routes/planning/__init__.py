"""Paths that answer questions and follow the transfers that came of them."""
