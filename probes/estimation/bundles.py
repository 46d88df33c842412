"""What several connections of every VM pair carry together, on arrays: ``min(k f, A)`` with bounds.

Aggregates are measured; single flows are taken as :func:`probes.estimation.flows.inferred_flow`
infers them from the window of the receiver's VM type and the round-trip time. They matter far away,
where k windows hardly suffice: there the low bound of a link is that of its flows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.graph import CAP_ERROR
from planner.model.throughput import MBIT_PER_MB
from probes.estimation.rolling import Floats, RollingBounds


@dataclass(frozen=True, slots=True)
class Windows:
    """What limits single flows.

    Attributes
    ----------
    window_mb : RollingBounds
        Of the receiver's VM type, each of length n.
    flow_cap_gbps : array, length n
        Of the sender's VM type; infinity where it is not known.
    """

    window_mb: RollingBounds
    flow_cap_gbps: Floats


def bundle_rates(
    aggregates: RollingBounds,
    measured_with: NDArray[np.int32],
    connections: int,
    rtt_ms: Floats,
    rtt_error: Floats,
    windows: Windows,
) -> RollingBounds:
    """Return what a number of connections carries on each link, in Gbit/s.

    Parameters
    ----------
    aggregates : RollingBounds
        Gbit/s, shapes (n, n); NaN where not known.
    measured_with : array, shape (n, n)
        Connections of the aggregate's samples; 0 where they do not say.
    connections : int
    rtt_ms, rtt_error : arrays, shape (n, n)
        Round-trip time, and the relative error of its bounds.
    windows : Windows
    """
    window, cap_gbps = windows.window_mb, windows.flow_cap_gbps[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        unlimited = MBIT_PER_MB * window.expected / rtt_ms  # MB/ms is GB/s
        below = np.sqrt((window.expected / window.low - 1) ** 2 + rtt_error**2)
        above = np.sqrt((window.high / window.expected - 1) ** 2 + rtt_error**2)
        flow = np.minimum(unlimited, cap_gbps)
        low = np.minimum(unlimited / (1 + below), cap_gbps * (1 - CAP_ERROR))
        high = np.minimum(unlimited * (1 + above), cap_gbps)
        # One of the flows can't carry more than all of them together.
        over = flow > aggregates.expected
        high = np.where(over, np.maximum(aggregates.expected, aggregates.high), high)
        flow = np.minimum(flow, aggregates.expected)
        # k connections together carried this much, so one alone carries at least a k-th.
        told = measured_with > 0
        shares = [np.where(told, bound / np.maximum(measured_with, 1), 0.0) for bound in aggregates]
        more = shares[1] > flow
        low = np.where(more, np.maximum(low, shares[0]), low)
        high = np.where(more, np.maximum(high, shares[2]), high)
        flow = np.maximum(flow, shares[1])
        return RollingBounds(
            *(
                np.minimum(connections * one, all_together)
                for one, all_together in zip((low, flow, high), aggregates, strict=True)
            )
        )
