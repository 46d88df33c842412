"""Samples."""
