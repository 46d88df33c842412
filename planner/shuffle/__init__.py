"""Shuffle."""
