"""What a VM can send and receive, from a sweep of sending rates.

After "Network throughput in Amazon EC2" (Computer Networks, 2015): with a growing target rate,
what is truly sent follows the target up to the sender's cap. What is received follows what is
sent up to the *flattening edge*, is flat after it, and with fragmented packets falls again from
the *penalty edge* on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import require

FEWEST_RATES = 8
FOLLOWS = 0.97
"""Received over sent (or sent over asked) from which the one follows the other."""
FALLS = 0.95
"""Share of the flat level below which what is received has fallen."""


@dataclass(frozen=True, slots=True)
class RateSweep:
    """Where a sweep bends; None for what it did not reach.

    Attributes
    ----------
    rates : int
        Sending rates tried.
    sender_cap_mbps : float | None
        The most that was truly sent, where it stayed behind what was asked for.
    flattening_edge_mbps : float | None
        Sent rate from which on what is received grows no more.
    flat_mbps : float | None
        What is received there.
    penalty_edge_mbps : float | None
        Sent rate from which on what is received falls.
    """

    rates: int
    sender_cap_mbps: float | None
    flattening_edge_mbps: float | None
    flat_mbps: float | None
    penalty_edge_mbps: float | None


def rate_sweep(asked_mbps: ArrayLike, sent_mbps: ArrayLike, received_mbps: ArrayLike) -> RateSweep:
    """Find the edges of a sweep.

    Parameters
    ----------
    asked_mbps, sent_mbps, received_mbps : arrays, length n
        Target, true and received rate of each step, in any order.

    Raises
    ------
    TooFewError
        If there are fewer than eight steps.
    """
    asked, sent, received = (
        np.asarray(values, dtype=float) for values in (asked_mbps, sent_mbps, received_mbps)
    )
    require("sending rates", asked.size, FEWEST_RATES)
    order = np.lexsort((asked, sent))
    asked, sent, received = asked[order], sent[order], received[order]
    behind = sent < FOLLOWS * asked
    # A single step that stays behind may be chance; a cap holds for all that ask for more.
    capped = behind.sum() >= 2 and bool(behind[asked >= asked[behind].min()].all())
    sender_cap = float(np.median(sent[behind])) if capped else None
    lost = np.flatnonzero(received < FOLLOWS * sent)
    if lost.size < 2:
        return RateSweep(asked.size, sender_cap, None, None, None)
    top = float(received.max())
    level = received[lost[0] :]
    flat_part = level[level >= FALLS * top]
    flat = float(np.median(flat_part)) if flat_part.size else top
    falling = np.flatnonzero(received[lost[0] :] < FALLS * flat)
    penalty = None
    if falling.size >= 2 and falling[-1] == level.size - 1:
        penalty = float(sent[lost[0] + falling[0]])
    return RateSweep(asked.size, sender_cap, flat, flat, penalty)
