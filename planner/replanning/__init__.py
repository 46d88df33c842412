"""Replanning."""
