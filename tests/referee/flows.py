"""Rows of many pairs at once (docs/shuffles.md, "The model") and linear programs over them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from tests.referee.networks import MOST_TO_ONE_VM, Floats, Network

Pair = tuple[int, int]
Route = tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """``loads @ rates <= limits`` for columns that are routes, each of one or two links."""

    routes: list[Route]
    loads: Floats
    limits: Floats

    def hold(self, rates: Floats, slack: float = 1e-6) -> bool:
        """Whether rates keep to every row."""
        return bool(np.all(self.loads @ rates <= self.limits * (1 + slack) + 1e-12))


def routes_of(net: Network, pair: Pair, *, relays: bool, most_added: float = np.inf) -> list[Route]:
    """Return the direct route and those over one relay, unless it adds so much round trip (s)."""
    src, dst = pair
    found: list[Route] = [(src, dst)] if net.link(src, dst) else []
    if relays:
        found += [
            (src, r, dst)
            for r in net.relays(src, dst)
            if net.rtt[src, r] + net.rtt[r, dst] - net.rtt[src, dst] <= most_added * 1000
        ]
    return found


def links_of(route: Route) -> list[Pair]:
    """Return the links of a route."""
    return list(itertools.pairwise(route))


def fee_of(net: Network, route: Route) -> float:
    """Return what a GB costs over a route."""
    return sum(float(net.fee[link]) for link in links_of(route))


def rtt_of(net: Network, route: Route) -> float:
    """Return the round trip of a route in seconds."""
    return sum(float(net.rtt[link]) for link in links_of(route)) / 1000


def rows_of_routes(net: Network, routes: Sequence[Route], vms: int, connections: int) -> Rows:
    """Return rows for VMs alike in all regions: connections, both caps, and each link's path."""
    table: dict[tuple[str, int, int], dict[int, float]] = {}
    limits: dict[tuple[str, int, int], float] = {}
    to_one = min(connections, MOST_TO_ONE_VM)

    def load(key: tuple[str, int, int], column: int, amount: float, limit: float) -> None:
        row = table.setdefault(key, {})
        row[column] = row.get(column, 0.0) + amount
        limits[key] = limit * vms

    for column, route in enumerate(routes):
        slowest = min(float(net.one[link]) for link in links_of(route))
        for i, j in links_of(route):
            load(("opens", i, i), column, 1 / slowest, connections)
            load(("sends", i, i), column, 1.0, float(net.send[i]))
            load(("receives", j, j), column, 1.0, float(net.receive[j]))
            load(("path", i, j), column, 1.0, net.sent(i, j, to_one))
            if net.ends_in_path(i, j):
                load(("ends", i, j), column, 1.0, float(net.aggregate[i, j]))
    loads = np.zeros((len(table), len(routes)))
    for number, row in enumerate(table.values()):
        loads[number, list(row)] = list(row.values())
    return Rows(list(routes), loads, np.array(list(limits.values())))


@dataclass(frozen=True)
class Routing:
    """Result of a program: seconds of sending, fees, and the volume on each route, in GB."""

    seconds: float
    usd: float
    volumes: dict[tuple[Pair, Route], float]


def route_all(
    net: Network,
    demands: dict[Pair, float],
    *,
    vms: int,
    connections: int,
    relays: bool = True,
    within: float | None = None,
) -> Routing | None:
    """Return the routing of least time, or of least fees within so many seconds of sending."""
    columns = [(d, r) for d in demands for r in routes_of(net, d, relays=relays)]
    if {d for d, _ in columns} != set(demands):
        return None
    rows = rows_of_routes(net, [r for _, r in columns], vms, connections)
    fees = np.array([fee_of(net, r) for _, r in columns])
    whole = sum(demands.values())
    # Shares of all volume; time in units of the whole volume at the largest limit.
    unit = 8 * whole / float(rows.limits[np.isfinite(rows.limits)].max())
    a_ub = np.column_stack(
        [rows.loads * 8 * whole / unit / rows.limits[:, None], -np.ones(len(rows.limits))]
    )
    a_eq = np.array([[float(d == pair) for d, _ in columns] + [0.0] for pair in demands])
    bounds = [(0.0, None)] * len(columns) + [(0.0, None if within is None else within / unit)]
    goal = np.append(np.zeros(len(columns)), 1.0) if within is None else np.append(fees, 0.0)
    found = linprog(
        goal,
        A_ub=a_ub,
        b_ub=np.zeros(len(a_ub)),
        A_eq=a_eq,
        b_eq=np.array(list(demands.values())) / whole,
        bounds=bounds,
    )
    if found.status != 0:
        return None
    volumes = found.x[:-1] * whole
    taken = {c: float(v) for c, v in zip(columns, volumes, strict=True) if v > 1e-9 * whole}
    return Routing(float(found.x[-1] * unit), float(fees @ volumes), taken)
