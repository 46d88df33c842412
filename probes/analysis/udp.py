"""UDP tests: a path's capacity, and the edges of a sweep of sending rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import Record, require
from probes.analysis.steady_state import Interval

WINDOW_S = 5.0
ALLOWED_S = 0.05
"""Shortfall of all intervals of a tool against whole seconds that is tolerated."""
SENT_MORE = 1.02
FEWEST_RATES = 8
FOLLOWS = 0.97
"""Received over sent (or sent over asked) from which the one follows the other."""
FALLS = 0.95
"""Share of the flat level below which what is received has fallen."""


def path_capacity(
    received: Sequence[Interval], sent_mbps: float | None = None
) -> tuple[float, bool]:
    """Return the largest mean over five seconds, and whether that is a lower bound only.

    As in "Measuring and understanding WANs between public-cloud datacenters" (Computer Networks,
    2016): UDP does not give way, so its best five seconds show the path's capacity, as long as more
    was sent. Cross traffic and a burst that is lost lower a mean, nothing raises it. Intervals are
    of arrival, in order of time; five seconds are needed.
    """
    seconds, rates = np.array(received, dtype=float).reshape(-1, 2).T
    require("seconds of UDP", int(seconds.sum() + ALLOWED_S), int(WINDOW_S))
    # Megabits up to a time, between which they are taken to arrive evenly.
    ends = np.append(0.0, seconds.cumsum())
    megabits = np.append(0.0, (seconds * rates).cumsum())
    window_s = min(WINDOW_S, float(ends[-1]))
    starts = ends[ends <= ends[-1] - window_s + 1e-9]
    carried = np.interp(starts + window_s, ends, megabits) - np.interp(starts, ends, megabits)
    mbps = float(carried.max()) / window_s
    return mbps, sent_mbps is None or sent_mbps < SENT_MORE * mbps


def rate_sweep(asked_mbps: ArrayLike, sent_mbps: ArrayLike, received_mbps: ArrayLike) -> Record:
    """Find the edges of a sweep of sending rates: target, true and received rate of each step.

    After "Network throughput in Amazon EC2" (Computer Networks, 2015): with a growing target rate,
    what is truly sent follows the target up to the sender's cap. What is received follows what is
    sent up to the *flattening edge*, is flat after it, and with fragmented packets falls again from
    the *penalty edge* on.

    Returns ``rates`` tried (eight are needed); ``sender_cap_mbps``, the most that was truly sent
    where it stayed behind; ``flattening_edge_mbps`` sent, and ``flat_mbps`` received from there;
    ``penalty_edge_mbps`` sent, from which what is received falls. None for what the sweep did not
    reach.
    """
    steps = np.array([asked_mbps, sent_mbps, received_mbps], dtype=float)
    require("sending rates", steps.shape[1], FEWEST_RATES)
    asked, sent, received = steps[:, np.lexsort(steps[:2])]
    behind = sent < FOLLOWS * asked
    # A single step that stays behind may be chance; a cap holds for all that ask for more.
    capped = behind.sum() >= 2 and bool(behind[asked >= asked[behind].min()].all())
    flat = penalty = None
    lost = np.flatnonzero(received < FOLLOWS * sent)
    if lost.size >= 2:
        top, level = float(received.max()), received[lost[0] :]
        flat_part = level[level >= FALLS * top]
        flat = float(np.median(flat_part)) if flat_part.size else top
        falling = np.flatnonzero(level < FALLS * flat)
        if falling.size >= 2 and falling[-1] == level.size - 1:
            penalty = float(sent[lost[0] + falling[0]])
    return {
        "rates": asked.size,
        "sender_cap_mbps": float(np.median(sent[behind])) if capped else None,
        "flattening_edge_mbps": flat,
        "flat_mbps": flat,
        "penalty_edge_mbps": penalty,
    }
