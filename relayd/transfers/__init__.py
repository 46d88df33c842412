"""Transfers under way: what their programs report, and what follows from it."""
