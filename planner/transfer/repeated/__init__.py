"""Transfers between the same ends that are made again and again."""
