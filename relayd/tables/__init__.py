"""Estimates as tables: links as rows, and one figure for every pair of regions."""
