"""Verification: short runs of a plan's paths with real tools, compared with the prediction."""
