"""Rates of transfers that run side by side: shares of spare capacity, and rates without a plan."""

from __future__ import annotations

from math import isfinite

import numpy as np

from planner.model.shared_resources import Floats, SiteResources, links_of

FULL, TINY = 1e-9, 1e-15
# Transfers that end within this share of the least time direct end together: steps are few, and
# the time found is at most about as much too long.
STEP_SHARE = 0.02


def fill(resources: SiteResources, paths_gbit: Floats, time_s: float) -> Floats:
    """Return the factor by which each pair can be faster than `time_s`, at no loss to a slower one.

    All pairs are sped up together; those that meet a full row stay, the others go on (max-min
    fairness by progressive filling, Bertsekas and Gallager, *Data Networks*, 6.5.2). Each pair
    keeps its shares of paths.

    Parameters
    ----------
    paths_gbit : array, shape (n, n, n)
        By source, first hop and destination.
    time_s : float
        In which all pairs can be moved together.

    The factors, shape (n, n), are at least 1 where there is volume, else 0.
    """
    source, destination = np.nonzero(paths_gbit.sum(axis=1))
    used = np.sign(links_of(paths_gbit))
    resources = resources.with_path_rows(resources.path_rows_above(used, 0.0))
    ones, rows = np.ones(len(source)), len(resources.rows)
    number = np.zeros(paths_gbit.shape[::2], dtype=np.int64)
    number[source, destination] = np.arange(len(source))
    i, k, j = np.nonzero(paths_gbit)
    of, row, load = resources.loads_of_paths(i, k, j, paths_gbit[i, k, j])
    loaded = (row < rows) & (load > 0)
    pair = np.broadcast_to(number[i, j][of], row.shape)[loaded]
    row, load = row[loaded], load[loaded]
    room = resources.row_vms - np.bincount(row, load / time_s, rows)
    speed, _ = filled(ones, (pair, row, load / time_s), ones > 0, room)
    result = np.zeros(paths_gbit.shape[::2])
    result[source, destination] = speed
    return result


def filled(
    levels: Floats, loads: tuple[np.ndarray, np.ndarray, Floats], growing: np.ndarray, room: Floats
) -> tuple[Floats, Floats]:
    """Return levels that have grown together, each until a row of its own is full; and the room.

    Parameters
    ----------
    levels : array
        Where they start.
    loads : tuple of arrays
        Numbers of level and row, and what the row takes more as the level grows by 1: above 0.
    growing : array of bool
        Which of them grow.
    room : array, length rows
    """
    levels, growing, room = levels.copy(), growing.copy(), np.maximum(room, 0.0)
    level, row, load = loads
    while growing.any():
        still = growing[level]
        growth = np.bincount(row[still], load[still], len(room))
        used = growth > 0
        steps = np.divide(room, growth, out=np.full_like(room, np.inf), where=used)
        step = float(steps.min(initial=np.inf))
        if not isfinite(step):
            break  # what still grows loads no row
        levels[growing] += step
        room = np.maximum(0.0, room - step * growth)
        full = used & (steps <= step * (1 + FULL) + TINY)
        room[full] = 0.0
        growing[level[full[row]]] = False
    return levels, room


def equal_share_finish_s(
    resources: SiteResources, demands_gbit: Floats, connections: int
) -> Floats:
    """Return the end of each pair if all start at once, direct, and TCP shares the capacity.

    Every transfer opens the same whole number of its senders' `connections` a VM and keeps them;
    where there are too few, those that are open take turns. It gets equal shares of caps; what one
    can't use, because its path or its other end is slower, the others take (max-min fairness). As
    a transfer ends, the rest share its part of the caps. This is kind to doing without a plan:
    real connections share less evenly.

    Seconds, shape (n, n); 0 where there is no volume, infinite where there is no direct link.
    """
    left = demands_gbit.copy()
    finish = np.where((left > 0) & (resources.rate_gbps <= 0), np.inf, 0.0)
    left[resources.rate_gbps <= 0] = 0.0
    now, together_s = 0.0, STEP_SHARE * resources.time_s(left)
    most = connections * resources.vms
    each = most // np.maximum((left > 0).sum(axis=1), 1)
    while (active := left > 0).any():
        kept = np.where(each > 0, each, most / np.maximum(active.sum(axis=1), 1))
        rate = _fair_rates(resources, active, kept / connections)
        with np.errstate(divide="ignore", invalid="ignore"):
            needs = np.where(left > 0, left / rate, np.inf)
        step = max(float(needs.min()), together_s)
        ends = needs <= step * (1 + FULL)
        finish[ends] = now + needs[ends]
        left = np.where(ends, 0.0, left - np.where(left > 0, rate, 0.0) * step)
        now += step
    return finish


def _fair_rates(resources: SiteResources, active: np.ndarray, parts: Floats) -> Floats:
    """Return max-min fair rates of direct transfers that are open, shape (n, n).

    `parts` is by sender: the part of a VM's connections that each of its transfers has.
    """
    vms = resources.vms
    # What connections and the path allow a transfer, whatever others do.
    most = resources.connections_gbps * parts[:, None]
    with np.errstate(divide="ignore"):
        most = np.minimum(most, 1 / resources.paths_s(np.maximum(vms, 1.0)))
    out_s, in_s = resources.cap_s_per_gbit
    rate = np.zeros_like(most)
    open_ = active.copy()
    while open_.any():
        levels = []
        lowest = most
        for needs, axis in ((out_s, 1), (in_s, 0)):
            room = np.maximum(vms - (rate * needs).sum(axis=axis), 0.0)
            shares = (open_ * needs).sum(axis=axis)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.where(open_.any(axis=axis), room / shares, np.inf)
            levels.append(level[:, None] if axis else level)
            lowest = np.minimum(lowest, levels[-1])
        held = np.where(open_, lowest, np.inf)
        settled = open_ & (most <= lowest * (1 + FULL))
        # A cap whose transfers are all held back by it and by nothing tighter is settled.
        for axis, level in zip((1, 0), levels, strict=True):
            tightest = held.min(axis=axis, keepdims=True) >= level * (1 - FULL)
            settled |= open_ & tightest & np.isfinite(level)
        rate[settled] = lowest[settled]
        open_ &= ~settled
    return np.asarray(rate)


def direct_paths(demands_gbit: Floats) -> Floats:
    """Return volumes by source, first hop and destination, all direct."""
    return demands_gbit[:, None] * np.eye(len(demands_gbit))
