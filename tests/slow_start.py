"""The share of its steady rate that a short test of many connections shows."""

from __future__ import annotations

from planner.model.throughput import LEAST_SHARE, ramp_up_s


def bundle_share_of_steady(rtt_ms: float, duration_s: float) -> float:
    """Return ``1 - 8.5 RTT / T``: that of a test from a cold start."""
    return max(LEAST_SHARE, 1.0 - ramp_up_s(rtt_ms) / duration_s)
