"""Samples in the store: taking them in, reading them, and summarising old ones."""
