"""Shares out room alike over time (progressive filling; Bertsekas and Gallager, *Data Networks*).

Within a slot, what must be sent by its end is sent earlier: the program of a schedule knows a
slot's volumes only. Each transfer of the slot starts at the constant rate that would end with the
slot, all are sped up together as far as their rows allow, and as one ends, the rest are sped up
again.

Transfers without a deadline get what promised ones leave, early first. At every moment the higher
priority goes first; equals share alike. Each keeps to its cheapest path, and is never held back
while there is room on that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.shared_resources import Floats
from planner.solvers.max_min_fill import FULL, filled

DONE = 1e-9


def worthwhile(room: Floats, row_vms: Floats) -> Floats:
    """Return the room of rows, none where next to none is left: its rates would last for ever."""
    return np.where(room <= FULL * row_vms, 0.0, room)


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
    return filled(np.ones(len(loads)), _sparse(loads), growing, room)[0]


@dataclass(frozen=True)
class BestEffortTransfer:
    """A transfer without a deadline.

    Attributes
    ----------
    loads : mapping
        Row to the VMs that a Gbit/s takes.
    """

    volume_gbit: float
    start_s: float
    priority: int
    loads: Mapping[int, float]


@dataclass(frozen=True)
class Share:
    """A constant rate of one of the transfers for a time."""

    number: int
    start_s: float
    end_s: float
    rate_gbps: float


def fill_what_is_left(
    waiting: Sequence[BestEffortTransfer], cuts_s: Floats, left_vms: Floats, row_vms: Floats
) -> list[Share]:
    """Return when each transfer sends at what rate, until all have ended.

    Parameters
    ----------
    waiting : sequence of BestEffortTransfer
        With at least one row each.
    cuts_s : array, length slots + 1
    left_vms : array, shape (slots, rows)
        What promised transfers leave in each slot.
    row_vms : array, length rows
        What there is after the last slot, and before the first.
    """
    matrix = np.zeros((len(waiting), len(row_vms)))
    for number, transfer in enumerate(waiting):
        for row, load in transfer.loads.items():
            matrix[number, row] = load
    volumes = np.array([transfer.volume_gbit for transfer in waiting], dtype=float)
    left = volumes.copy()
    starts = np.array([transfer.start_s for transfer in waiting], dtype=float)
    priorities = np.array([transfer.priority for transfer in waiting])
    changes = np.unique(np.concatenate([cuts_s, starts]))
    found: list[Share] = []
    now = float(starts.min(initial=np.inf))
    while (left > 0).any():
        active = (left > 0) & (starts <= now)
        later = changes[changes > now]
        until = float(later[0]) if len(later) else np.inf
        if not active.any():
            now = until
            continue
        slot = int(np.searchsorted(cuts_s, now, side="right")) - 1
        within = 0 <= slot < len(left_vms)
        rates = _rates(matrix, active, priorities, left_vms[slot] if within else row_vms, row_vms)
        ends_s = np.full(len(left), np.inf)
        sending = active & (rates > 0)
        ends_s[sending] = now + left[sending] / rates[sending]
        until = min(until, float(ends_s.min()))
        found += [
            Share(number, now, until, float(rates[number]))
            for number in np.nonzero(sending)[0].tolist()
        ]
        left = np.where(ends_s <= until, 0.0, left - rates * (until - now))
        left[left < DONE * volumes] = 0.0
        now = until
    return found


def _rates(
    matrix: Floats, active: np.ndarray, priorities: np.ndarray, room: Floats, row_vms: Floats
) -> Floats:
    """Return rates by priority, and by progressive filling within one."""
    rates = np.zeros(len(matrix))
    room = worthwhile(room, row_vms)
    for priority in sorted(set(priorities[active].tolist()), reverse=True):
        rates, room = filled(rates, _sparse(matrix), active & (priorities == priority), room)
    return rates


def _sparse(loads: Floats) -> tuple[np.ndarray, np.ndarray, Floats]:
    number, row = np.nonzero(loads)
    return number, row, loads[number, row]
