"""Corrections of short tests from a cold start, for whole columns at once.

They are those of :mod:`planner.model.throughput` for single figures. Without them a constant cap
looks as if it depended on distance, and relays look better than they are: on the grid of January
2022 (5 s tests) 42 % of pairs seem to gain 1.2x from a relay, corrected it is 23 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.model.throughput import INITIAL_WINDOW_MB, LEAST_SHARE, RAMP_UP_ROUND_TRIPS

_MB_PER_MBPS_MS = 1 / 8000.0
_SHORTEST_S = 1e-3  # of a test that tells anything
_ITERATIONS = 9


def steady_rates(
    mbps: ArrayLike, rtt_ms: ArrayLike, duration_s: ArrayLike, *, one_flow: bool
) -> NDArray[np.float64]:
    """Return the steady rates that correspond to cold tests.

    Parameters
    ----------
    mbps, rtt_ms, duration_s : array_like
        Of each test, or one for all. Where the time or the length is not known (not positive, or
        NaN), the rate stays as it is.
    one_flow : bool
        Whether the tests were of one connection each, rather than of many.
    """
    rates, rtts, lengths = (
        np.asarray(a, dtype=float) for a in np.broadcast_arrays(mbps, rtt_ms, duration_s)
    )
    known = (rtts > 0) & (lengths > 0)
    lengths = np.maximum(lengths, _SHORTEST_S)
    rtt_share = np.divide(rtts / 1000.0, lengths, out=np.zeros_like(rates), where=known)
    if not one_flow:
        return np.asarray(rates / np.maximum(LEAST_SHARE, 1.0 - RAMP_UP_ROUND_TRIPS * rtt_share))
    # The window that a flow filled, which its share depends on: a contraction.
    filled_mb = np.where(known, rates * rtts * _MB_PER_MBPS_MS, 0.0)
    share = np.ones_like(rates)
    for _ in range(_ITERATIONS):
        doublings = np.log2(np.maximum(filled_mb / share, INITIAL_WINDOW_MB) / INITIAL_WINDOW_MB)
        share = np.maximum(LEAST_SHARE, 1.0 - np.maximum(0.0, doublings - 1.0) * rtt_share)
    return np.asarray(rates / share)
