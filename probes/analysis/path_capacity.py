"""A path's capacity by UDP: the largest mean over windows of five seconds.

As in "Measuring and understanding WANs between public-cloud datacenters" (Computer Networks,
2016): UDP does not give way, so what arrived in its best five seconds is what the path can carry,
as long as more was sent. Cross traffic and a burst that is lost lower a mean, nothing raises it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probes.analysis.evidence import require
from probes.analysis.series.steady import Interval

WINDOW_S = 5.0
ALLOWED_S = 0.05
"""That intervals of tools may fall short of whole seconds, together."""
SENT_MORE = 1.02


@dataclass(frozen=True, slots=True)
class PathCapacity:
    """What a path carried at best.

    Attributes
    ----------
    mbps : float
    seconds : float
        Of the whole test.
    at_s : float
        When the best window began.
    is_lower_bound : bool
        Whether the sender was the limit: everything that was sent arrived.
    """

    mbps: float
    seconds: float
    at_s: float
    is_lower_bound: bool


def path_capacity(received: Sequence[Interval], sent_mbps: float | None = None) -> PathCapacity:
    """Return the largest mean over five seconds.

    Parameters
    ----------
    received : sequence of Interval
        What arrived, in order of time.
    sent_mbps : float, optional
        What was sent; without it the figure is a lower bound.

    Raises
    ------
    TooFewError
        If the test is shorter than five seconds.
    """
    seconds = np.array([interval.seconds for interval in received])
    require("seconds of UDP", int(seconds.sum() + ALLOWED_S), int(WINDOW_S))
    # Megabits up to a time, between which they are taken to arrive evenly.
    ends = np.concatenate([[0.0], seconds.cumsum()])
    window_s = min(WINDOW_S, float(ends[-1]))
    megabits = np.concatenate(
        [[0.0], np.cumsum([interval.seconds * interval.mbps for interval in received])]
    )
    starts = ends[ends <= ends[-1] - window_s + 1e-9]
    carried = np.interp(starts + window_s, ends, megabits) - np.interp(starts, ends, megabits)
    best = int(carried.argmax())
    mbps = float(carried[best]) / window_s
    return PathCapacity(
        mbps,
        float(ends[-1]),
        float(starts[best]),
        sent_mbps is None or sent_mbps < SENT_MORE * mbps,
    )
