"""Divides the connections of a source over paths: whole ones, each path with its own.

With c of K n connections on path p, it carries min(c f_p, what its links and relay VMs allow), see
:mod:`planner.transfer.problem`. Of few connections, one may be a fifth of the rate, so that all
ways to divide them are valued. Of many, those of an optimum in fractions are rounded, some up and
some down. What is left to decide, the VMs and the flows below these limits, is solved for the best
few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, takewhile
from math import inf

import numpy as np

from planner.model.shared_resources import Floats
from planner.model.units import S_PER_H
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.problem import MOST_PATHS, TransferPath, TransferProblem

MOST_DIVIDED = 48
"""Connections at the source of which all divisions are valued, which takes some 10 ms."""
MOST_RELAYS = 12
"""The fastest relays alone, and the cheapest, among which paths are chosen; half as many where
there are more than 16 connections to divide, of which each matters less."""
SOLVED = 4


def divisions(
    transfer: TransferProblem,
    connections: int,
    opened_by: Callable[[int], int],
    hour_usd: float,
    at_least_gbps: float,
    budget_usd: float,
) -> Iterator[TransferProblem]:
    """Yield the best problems in which each path has whole connections, at most three paths.

    Parameters
    ----------
    connections : int
        That one VM of the source opens.
    opened_by : callable
        Returns those that so many VMs open, as far as the sites of the ends allow.
    hour_usd : float
        What an hour is worth; infinity where time alone counts.
    at_least_gbps, budget_usd : float
        Limits that every plan has to meet.
    """
    totals = list(
        takewhile(lambda n: n <= MOST_DIVIDED, map(opened_by, range(1, transfer.src.quota + 1)))
    )
    is_few = max(totals, default=0) <= 16
    paths = _candidates(transfer, MOST_RELAYS if is_few else MOST_RELAYS // 2)
    found: list[tuple[float, int, tuple[int, ...], tuple[int, ...]]] = []
    for vms, total in enumerate(totals, 1):
        for count in range(1, min(MOST_PATHS, len(paths), total) + 1):
            chosen = np.array(list(combinations(range(len(paths)), count)))
            divided = _divided(total, count)
            values = _values(transfer, paths, connections, vms, chosen, divided, hour_usd)
            values[2][(values[0] < at_least_gbps * (1 - EQUAL)) | (values[1] > budget_usd)] = inf
            for at in np.argsort(values[2], axis=None, kind="stable")[:SOLVED].tolist():
                i, j = divmod(at, len(divided))
                if values[2][i, j] < inf:
                    of = tuple(chosen[i].tolist()), tuple(divided[j].tolist())
                    found.append((float(values[2][i, j]), vms, *of))
    for _, vms, places, counts in sorted(found)[:SOLVED]:
        yield _divided_so(transfer, [paths[place] for place in places], counts, connections, vms)


def roundings(
    transfer: TransferProblem,
    found: Allocation,
    counts: Mapping[int | None, int],
    excess: int,
    connections: int,
) -> Iterator[TransferProblem]:
    """Yield problems in which some paths of an allocation have one connection less, the best first.

    `counts` are its connections by path, rounded up: by `excess` more than the source opens.
    """
    paths = [path for path in transfer.paths if path.region in found.flows]

    def lost_gbps(less: tuple[TransferPath, ...]) -> float:
        left = [(counts[p.region] - 1) * p.in_connections_gbps / connections for p in less]
        return sum([found.flows[p.region] for p in less]) - sum(left)

    for less in sorted(combinations(paths, excess), key=lost_gbps)[:SOLVED]:
        whole = {path.region: counts[path.region] - (path in less) for path in paths}
        kept = [path for path in paths if whole[path.region]]
        opened = [whole[path.region] for path in kept]
        yield _divided_so(transfer, kept, opened, connections, found.src_vms)


def _divided_so(
    transfer: TransferProblem,
    paths: Sequence[TransferPath],
    counts: Sequence[int],
    connections: int,
    vms: int,
) -> TransferProblem:
    """Return the problem over paths with so many connections each, of so many VMs."""
    limited = []
    for path, count in zip(paths, counts, strict=True):
        most_gbps = count * path.in_connections_gbps / connections / vms
        limited.append(replace(path, in_gbps=min(path.in_gbps, most_gbps), in_connections_gbps=inf))
    return replace(transfer.over(limited), src=replace(transfer.src, quota=vms))


def _candidates(transfer: TransferProblem, most: int) -> list[TransferPath]:
    """Return the direct path, and the relays that are the fastest alone or the cheapest."""
    ends = transfer.src.quota, transfer.dst.quota
    relays = list(transfer.relays)
    fastest = sorted(relays, key=lambda path: -path.most_gbps(*ends))[:most]
    cheapest = sorted(relays, key=lambda path: path.usd_per_gb)[: most // 3]
    kept = {path.region: path for path in [*fastest, *cheapest]}
    return [*([transfer.direct] if transfer.direct else []), *kept.values()]


def _divided(total: int, count: int) -> np.ndarray:
    """Return all ways to write a number as a sum of so many whole ones, in their order."""
    marks = np.array(list(combinations(range(1, total), count - 1)), dtype=np.int64)
    ends = np.full((len(marks), 1), total)
    return np.diff(np.hstack([np.zeros_like(ends), marks.reshape(len(marks), -1), ends]))


def _values(
    transfer: TransferProblem,
    paths: list[TransferPath],
    connections: int,
    vms: int,
    chosen: np.ndarray,
    divided: np.ndarray,
    hour_usd: float,
) -> tuple[Floats, Floats, Floats]:
    """Return rate, cost and value of each choice of paths with each division, shape (m, d).

    Paths are filled from the cheapest on until a cap of the ends is reached.
    """
    src, dst = transfer.src, transfer.dst
    figures = np.array(
        [
            (
                path.in_connections_gbps / connections,
                path.most_gbps(vms, dst.quota),
                path.usd_per_gb,
                path.vm_gbps,
                path.vm_usd_per_h,
                path.usd_per_h,
                path.out_gbps,
            )
            for path in paths
        ]
    )
    flow, most, fee, of_vm, vm_usd, fixed_usd, out = figures[chosen].transpose(2, 0, 1)
    gbps = np.minimum(divided * flow[:, None], most[:, None])
    left = np.full(gbps.shape[:2], min(src.cap_gbps * vms, dst.cap_gbps * dst.quota))
    for place in np.argsort(fee, axis=1, kind="stable").T:
        of_path = np.minimum(np.take_along_axis(gbps, place[:, None, None], axis=2)[..., 0], left)
        np.put_along_axis(gbps, place[:, None, None], of_path[..., None], axis=2)
        left -= of_path
    rate = gbps.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        hours = transfer.gbps_h / rate
        egress_usd = transfer.volume_gb * (gbps * fee[:, None]).sum(axis=2) / rate
        relays = np.ceil(gbps / of_vm[:, None] * (1 - EQUAL))
    loads = np.maximum(rate / dst.cap_gbps, (gbps / out[:, None]).max(axis=2))
    per_h = (relays * vm_usd[:, None]).sum(axis=2) + fixed_usd.sum(axis=1)[:, None]
    per_h += vms * src.vm_usd_per_h + np.ceil(loads * (1 - EQUAL)) * dst.vm_usd_per_h
    cost = egress_usd + (per_h + transfer.usd_per_h) * (hours + transfer.lead_s / S_PER_H)
    value = hours.copy() if hour_usd == inf else cost + hour_usd * hours
    value[(gbps < transfer.least_part * rate[..., None]).any(axis=2) | ~(rate > 0)] = inf
    return rate, cost, value
