"""Broadcast."""
