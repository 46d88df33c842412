"""Sends earlier within a slot of time what must be sent by its end.

The program of a schedule knows a slot's volumes only. Here each transfer of the slot starts at the
constant rate that would end with the slot, all are sped up together as far as their rows allow
(progressive filling), and as one ends, the rest are sped up again. No transfer ends later for it.
"""

from __future__ import annotations

import numpy as np

from planner.model.shared_resources import Floats
from planner.schedule.filling import filled, worthwhile

DONE = 1e-9


def sped_up(
    loads: Floats, row_vms: Floats, length_s: float
) -> list[tuple[float, float, np.ndarray]]:
    """Return periods of a slot: start and end from the slot's start, and the speed of each.

    Parameters
    ----------
    loads : array, shape (transfers, rows)
        VMs of each row that the constant rates over the whole slot take; together they fit.
    row_vms : array, length rows
    length_s : float

    Returns
    -------
    list
        Speeds are multiples of the constant rates; their products with lengths add up to the slot.
    """
    left = np.ones(len(loads))  # of each one's volume
    now = 0.0
    periods: list[tuple[float, float, np.ndarray]] = []
    while (left > 0).any():
        needed = left * length_s / (length_s - now)  # never more than before, so it fits
        speed = _sped_up(loads * needed[:, None], row_vms, left > 0) * needed
        sending = left > 0
        ends = np.full(len(left), np.inf)
        ends[sending] = left[sending] * length_s / speed[sending]
        first = float(ends.min())
        until = min(length_s, now + first)
        done = sending & (ends <= first * (1 + DONE))
        if until >= length_s * (1 - DONE) or not (sending & ~done).any():
            until = min(until, length_s) if not (sending & ~done).any() else length_s
            # What is left is sent to the digit.
            last = np.where(sending, left * length_s / (until - now), 0.0)
            periods.append((now, until, last))
            return periods
        periods.append((now, until, np.where(sending, speed, 0.0)))
        left = np.where(done | ~sending, 0.0, left - speed * (until - now) / length_s)
        now = until
    return periods


def _sped_up(loads: Floats, row_vms: Floats, growing: np.ndarray) -> Floats:
    """Return by how much each can be sped up together."""
    room = worthwhile(row_vms - loads.sum(axis=0), row_vms)
    return filled(np.ones(len(loads)), loads, growing, room)[0]
