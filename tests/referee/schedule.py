"""Which transfers can meet their deadlines together, by a program over slots (docs/schedules.md).

Two readings bracket the model. *Careful*: only relays that add at most 150 ms, and nothing is sent
for 8.5 round trips of the longest of these paths after a start. *Hopeful*: all relays, and 8.5
round trips of the shortest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from tests.referee.flows import Route, fee_of, routes_of, rows_of_routes, rtt_of
from tests.referee.networks import Network
from tests.referee.transfer import ROUND_TRIPS

MOST_ADDED_S = 0.150


@dataclass(frozen=True)
class Transfer:
    """One transfer with its window, in seconds."""

    name: str
    src: int
    dst: int
    volume: float
    start: float
    deadline: float
    priority: int = 0


@dataclass(frozen=True)
class Setting:
    """Figures that all transfers share."""

    net: Network
    vms: int
    connections: int
    vm_start: float
    relays: bool = True


def routes_in(setting: Setting, t: Transfer, *, careful: bool) -> list[Route]:
    """Return routes that a transfer may take."""
    most = MOST_ADDED_S if careful else np.inf
    found = routes_of(setting.net, (t.src, t.dst), relays=setting.relays, most_added=most)
    if careful and not setting.net.link(t.src, t.dst):
        every = routes_of(setting.net, (t.src, t.dst), relays=setting.relays)
        shortest = min((rtt_of(setting.net, r) for r in every), default=0.0)
        found = [r for r in every if rtt_of(setting.net, r) <= shortest + MOST_ADDED_S]
    return found


def first_byte(setting: Setting, t: Transfer, routes: list[Route], *, careful: bool) -> float:
    """Return when a transfer is up to speed."""
    trips = [rtt_of(setting.net, route) for route in routes]
    return max(t.start, setting.vm_start) + ROUND_TRIPS * (max(trips) if careful else min(trips))


def least_fees(setting: Setting, transfers: Sequence[Transfer], *, careful: bool) -> float | None:
    """Return the least fees with which all meet their deadlines, or None where they cannot."""
    if not transfers:
        return 0.0
    options = {t.name: routes_in(setting, t, careful=careful) for t in transfers}
    if not all(options.values()):
        return None
    begin = {t.name: first_byte(setting, t, options[t.name], careful=careful) for t in transfers}
    if any(begin[t.name] >= t.deadline for t in transfers):
        return None
    cuts = sorted({*begin.values(), *(t.deadline for t in transfers)})
    columns = [
        (t, route, slot)
        for slot, (low, high) in enumerate(itertools.pairwise(cuts))
        for t in transfers
        if begin[t.name] <= low and t.deadline >= high
        for route in options[t.name]
    ]
    rates = rows_of_routes(
        setting.net, [route for _, route, _ in columns], setting.vms, setting.connections
    )
    # One column is the share of a transfer's volume that goes over a route in a slot.
    slots = len(cuts) - 1
    size = len(rates.limits)
    a_ub = lil_matrix((slots * size, len(columns)))
    a_eq = lil_matrix((len(transfers), len(columns)))
    for number, (t, _, slot) in enumerate(columns):
        seconds = cuts[slot + 1] - cuts[slot]
        loads = rates.loads[:, number] * 8 * t.volume / seconds / rates.limits
        for row in np.flatnonzero(loads):
            a_ub[slot * size + row, number] = loads[row]
        a_eq[transfers.index(t), number] = 1.0
    fees = np.array([t.volume * fee_of(setting.net, route) for t, route, _ in columns])
    found = linprog(
        fees / max(float(fees.max()), 1e-12),
        A_ub=a_ub.tocsr(),
        b_ub=np.ones(slots * size),
        A_eq=a_eq.tocsr(),
        b_eq=np.ones(len(transfers)),
    )
    return float(fees @ found.x) if found.status == 0 else None


def most_admitted(
    setting: Setting, transfers: Sequence[Transfer], *, careful: bool
) -> tuple[int, ...]:
    """Return how many of each priority, the highest first, can meet their deadlines."""
    priorities = sorted({t.priority for t in transfers}, reverse=True)
    best: tuple[int, ...] = (0,) * len(priorities)
    for chosen in range(1, 2 ** len(transfers)):
        subset = [t for i, t in enumerate(transfers) if chosen >> i & 1]
        counts = tuple(sum(t.priority == p for t in subset) for p in priorities)
        if counts > best and least_fees(setting, subset, careful=careful) is not None:
            best = counts
    return best
