"""Rates of transfers that run side by side: what is left over, and what happens without a plan."""

from __future__ import annotations

from math import isfinite

import numpy as np

from planner.model.shared_resources import Floats, SiteResources

FULL = 1e-9
# Transfers that end within this share of the least time direct end together: steps are few, and
# the time found is at most about as much too long.
STEP_SHARE = 0.02


def fill(resources: SiteResources, paths_gbit: Floats, time_s: float) -> Floats:
    """Return how much faster than `time_s` each pair can be, at no loss to a slower one.

    All pairs are sped up together; those that meet a full row stay, the others go on (max-min
    fairness by progressive filling, Bertsekas and Gallager, *Data Networks*, 6.5.2). Each pair
    keeps its shares of paths.

    Parameters
    ----------
    paths_gbit : array, shape (n, n, n)
        By source, first hop and destination.
    time_s : float
        In which all pairs can be moved together.

    Returns
    -------
    array, shape (n, n)
        At least 1 where there is volume, else 0.
    """
    source, destination = np.nonzero(paths_gbit.sum(axis=1))
    used = pair_loads(resources, paths_gbit, source, destination) / time_s
    slack = resources.row_vms - used.sum(axis=0)
    growing = np.ones(len(source), dtype=bool)
    speed = np.ones(len(source))
    growth = used.sum(axis=0)
    while growing.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(growth > FULL * resources.row_vms, slack / growth, np.inf)
        step = max(0.0, float(room.min()))
        if not isfinite(step):
            break  # what still grows loads no VM to speak of
        speed[growing] += step
        slack = slack - step * growth
        full = room <= step * (1 + FULL) + FULL
        stop = growing & (used[:, full] > 0).any(axis=1)
        if not stop.any():
            break
        growing &= ~stop
        growth = growth - used[stop].sum(axis=0)
    result = np.zeros(paths_gbit.shape[::2])
    result[source, destination] = speed
    return result


def pair_loads(
    resources: SiteResources, paths_gbit: Floats, source: np.ndarray, destination: np.ndarray
) -> Floats:
    """Return the load of each pair on each row, shape (pairs, rows)."""
    n, rows = resources.count, len(resources.rows)
    position, inverse = resources.position, resources.s_per_gbit
    number = np.zeros((n, n), dtype=np.int64)
    number[source, destination] = np.arange(len(source))
    i, k, j = np.nonzero(paths_gbit)
    amount, pair = paths_gbit[i, k, j], number[i, j]
    relayed = k != j
    size = len(source) * (rows + 1)
    loads = np.zeros(size)
    for who, tail, head, volume in (
        (pair, i, k, amount),
        (pair[relayed], k[relayed], j[relayed], amount[relayed]),
    ):
        share = volume * inverse[tail, head]
        for row, load in (
            (position[tail], share),
            (position[n + head], share),
            (position[2 * n + tail], volume / resources.egress_gbps[tail]),
            (position[3 * n + head], volume / resources.ingress_gbps[head]),
        ):
            loads += np.bincount(who * (rows + 1) + row, load, minlength=size)
    return np.asarray(loads.reshape(len(source), rows + 1)[:, :rows])


def equal_share_finish_s(resources: SiteResources, demands_gbit: Floats) -> Floats:
    """Return when each pair ends if all start at once, direct, and TCP shares what there is.

    The connections of all open transfers get equal shares of each VM they pass; what one can't
    use, because its other end is busier, the others take (max-min fairness). As a transfer ends,
    the rest share again. This is kind to doing without a plan: real connections share less evenly.

    Returns
    -------
    array, shape (n, n)
        Seconds; 0 where there is no volume, infinite where there is no direct link.
    """
    left = demands_gbit.copy()
    finish = np.where((left > 0) & (resources.rate_gbps <= 0), np.inf, 0.0)
    left[resources.rate_gbps <= 0] = 0.0
    now, together_s = 0.0, STEP_SHARE * resources.time_s(left)
    while (left > 0).any():
        rate = _fair_rates(resources, left > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            needs = np.where(left > 0, left / rate, np.inf)
        step = max(float(needs.min()), together_s)
        ends = needs <= step * (1 + FULL)
        finish[ends] = now + needs[ends]
        left = np.where(ends, 0.0, left - np.where(left > 0, rate, 0.0) * step)
        now += step
    return finish


def _fair_rates(resources: SiteResources, active: np.ndarray) -> Floats:
    """Return max-min fair rates of direct transfers, in equal shares of each VM's connections."""
    n = resources.count
    rate, vms = resources.rate_gbps, resources.vms
    with np.errstate(divide="ignore", invalid="ignore"):
        out_cap = np.where(active, rate / resources.egress_gbps[:, None], 0.0)
        in_cap = np.where(active, rate / resources.ingress_gbps, 0.0)
    # A row of weights for each kind: shares of connections weigh 1, shares of caps rate / cap.
    weights = [(active.astype(float), 1), (active.astype(float), 0)]
    if (out_cap > 1).any():
        weights.append((out_cap, 1))
    if (in_cap > 1).any():
        weights.append((in_cap, 0))
    left = [vms.astype(float).copy() for _ in weights]
    share = np.zeros((n, n))
    open_ = active.copy()
    while open_.any():
        lowest = np.full((n, n), np.inf)
        levels = []
        for (weight, axis), room in zip(weights, left, strict=True):
            total = np.where(open_, weight, 0.0).sum(axis=axis)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.where(total > 0, np.maximum(room, 0.0) / total, np.inf)
            levels.append(level)
            lowest = np.minimum(lowest, level[:, None] if axis else level)
        lowest[~open_] = np.inf
        # A row whose transfers are all held back by it and by nothing tighter is settled.
        settled = np.zeros((n, n), dtype=bool)
        for (_, axis), level in zip(weights, levels, strict=True):
            tightest = lowest.min(axis=axis) >= level * (1 - FULL)
            here = tightest & np.isfinite(level)
            settled |= open_ & (here[:, None] if axis else here)
        share[settled] = lowest[settled]
        open_ &= ~settled
        for (weight, axis), room in zip(weights, left, strict=True):
            room -= np.where(settled, weight * np.where(settled, lowest, 0.0), 0.0).sum(axis=axis)
    return np.asarray(share * rate)


def direct_paths(demands_gbit: Floats) -> Floats:
    """Return volumes by source, first hop and destination, all direct."""
    n = len(demands_gbit)
    paths = np.zeros((n, n, n))
    source, destination = np.nonzero(demands_gbit)
    paths[source, destination, destination] = demands_gbit[source, destination]
    return paths
