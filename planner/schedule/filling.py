"""Room that is shared alike: max-min fairness by progressive filling.

See Bertsekas and Gallager, *Data Networks*, 6.5.2.
"""

from __future__ import annotations

import numpy as np

from planner.model.shared_resources import Floats

FULL = 1e-9


def worthwhile(room: Floats, row_vms: Floats) -> Floats:
    """Return the room of rows, none where next to none is left: its rates would last for ever."""
    return np.where(room <= FULL * row_vms, 0.0, room)


def filled(
    levels: Floats, loads: Floats, growing: np.ndarray, room: Floats
) -> tuple[Floats, Floats]:
    """Return levels that have grown together, each until a row of its own is full; and the room.

    Parameters
    ----------
    levels : array, length transfers
        Where they start.
    loads : array, shape (transfers, rows)
        What each takes of a row more as its level grows by 1.
    growing : array of bool, length transfers
        Which of them grow.
    room : array, length rows
    """
    levels, growing = levels.copy(), growing.copy()
    while growing.any():
        growth = loads[growing].sum(axis=0)
        used = growth > 0
        steps = np.divide(room, growth, out=np.full_like(room, np.inf), where=used)
        step = float(steps.min())
        if not np.isfinite(step):
            break
        levels[growing] += step
        room = np.maximum(0.0, room - step * growth)
        full = used & (steps <= step * (1 + FULL) + 1e-15)
        room[full] = 0.0
        growing &= ~(loads[:, full] > 0).any(axis=1)
    return levels, room
