"""Schedules transfers without a deadline in the capacity that promised ones leave, early first.

At every moment the higher priority goes first; equals share alike. Each keeps to its cheapest path,
and is never held back while there is room on that. As one ends, the others share anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.shared_resources import Floats
from planner.schedule.filling import filled, worthwhile

DONE = 1e-9


@dataclass(frozen=True)
class Waiting:
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
    waiting: Sequence[Waiting], cuts_s: Floats, left_vms: Floats, row_vms: Floats
) -> list[Share]:
    """Return when each transfer sends at what rate, until all have ended.

    Parameters
    ----------
    waiting : sequence of Waiting
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
        rates, room = filled(rates, matrix, active & (priorities == priority), room)
    return rates
