"""Broadcasts for tests: random instances, every tree of a small one, and independent solvers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from planner.broadcast.request import BroadcastObjective, BroadcastRequest
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats
from planner.solvers.steiner import Arcs

CONNECTIONS = 16


@dataclass(frozen=True)
class Instance:
    """Site 0 sends to the next few; the rest may relay.

    `rate` is what one VM pair reaches; all connections of a VM would carry `flows` times as much.
    """

    rate: Floats
    egress: Floats
    ingress: Floats
    vms: list[int]
    fees: Floats
    vm_usd: list[float]
    destinations: int
    rtt_ms: float = 0.01
    flows: float = 4.0

    @property
    def regions(self) -> list[str]:
        return [f"r{i}" for i in range(len(self.rate))]

    def network(self, rtt_ms: Floats | None = None) -> Network:
        return Network.from_matrices(
            self.regions,
            self.rate,
            rtt_ms=self.rtt_ms if rtt_ms is None else rtt_ms,
            per_flow_mbps=self.flows * self.rate / CONNECTIONS * 1000,
            egress_gbps=list(self.egress),
            ingress_gbps=list(self.ingress),
        )

    def prices(self) -> FlatPrices:
        return FlatPrices(
            self.regions, self.fees, dict(zip(self.regions, self.vm_usd, strict=True))
        )

    def request(
        self, objective: BroadcastObjective = "time", **further: object
    ) -> BroadcastRequest:
        return BroadcastRequest(
            "r0",
            tuple(self.regions[1 : 1 + self.destinations]),
            volume_gb=100.0,
            objective=objective,
            vms_in=dict(zip(self.regions, self.vms, strict=True)),
            vm_start_s=60.0,
            connections=CONNECTIONS,
            **{"margin": 0.0, **further},  # type: ignore[arg-type]
        )


def instance(seed: int, n: int, destinations: int, most_vms: int = 3) -> Instance:
    """Caps that bind or not, missing links, several VMs, dear and cheap links."""
    random = np.random.default_rng(seed)
    rate = random.uniform(0.5, 10, (n, n)) * random.uniform(0.5, 2, (n, 1))
    missing = (random.random((n, n)) < 0.15) & (seed % 3 == 0)
    missing[0] = False
    rate[missing] = 0.0
    np.fill_diagonal(rate, 0.0)
    loose = seed % 4 == 1
    return Instance(
        rate,
        random.uniform(3, 12, n) * (10 if loose else 1),
        random.uniform(3, 12, n) * (10 if loose else 1),
        random.integers(1, most_vms + 1, n).tolist(),
        random.choice([0.01, 0.02, 0.05, 0.09, 0.12], (n, n)),
        random.choice([0.1, 1.5, 6.0], n).tolist(),
        destinations,
        flows=[1.0, 1.5, 16.0][seed % 3],
    )


def loads(given: Instance, links_gbit: Floats) -> tuple[Floats, Floats]:
    """Return VM-seconds of all rows (connections, caps, paths; out and in), and their sites."""
    n = len(given.rate)
    share = np.divide(links_gbit, given.rate, out=np.zeros((n, n)), where=given.rate > 0)
    rows = np.concatenate(
        [
            share.sum(axis=1) / given.flows,
            share.sum(axis=0) / given.flows,
            links_gbit.sum(axis=1) / given.egress,
            links_gbit.sum(axis=0) / given.ingress,
            share.ravel(),
            share.ravel(),
        ]
    )
    return rows, row_sites(n)


def row_sites(n: int) -> np.ndarray:
    """Return the site of each row of :func:`loads`."""
    sites = np.arange(n)
    return np.concatenate([np.tile(sites, 4), np.repeat(sites, n), np.tile(sites, n)])


def tree_links(given: Instance, arcs: Arcs, volume_gbit: float) -> Floats:
    links = np.zeros_like(given.rate)
    for arc in arcs:
        links[arc] = volume_gbit
    return links


def least_time_of_trees(given: Instance, trees: list[Arcs], volume_gbit: float) -> float:
    """Least time over all packings of these trees (HiGHS)."""
    columns = [loads(given, tree_links(given, arcs, volume_gbit))[0] for arcs in trees]
    sites = row_sites(len(given.rate))
    limits = np.array(given.vms, dtype=float)[sites]
    matrix = np.column_stack([*columns, -limits])
    solved = linprog(
        np.append(np.zeros(len(trees)), 1.0),
        A_ub=matrix,
        b_ub=np.zeros(len(limits)),
        A_eq=[np.append(np.ones(len(trees)), 0.0)],
        b_eq=[1.0],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def least_cost_of_trees(
    given: Instance, trees: list[Arcs], volume_gbit: float, times_s: list[float], hour_usd: float
) -> float:
    """Least fees, whole VMs and worth of time over packings of these trees in some times (HiGHS).

    VMs are paid from a minute before.
    """
    n, count = len(given.rate), len(trees)
    columns = [loads(given, tree_links(given, arcs, volume_gbit))[0] for arcs in trees]
    fees = [sum(given.fees[arc] for arc in arcs) * volume_gbit / 8 for arcs in trees]
    sites = row_sites(n)
    shared = len(sites)
    rows = np.zeros((shared + n, count + n))
    rows[:shared, :count] = np.column_stack(columns)
    for tree, arcs in enumerate(trees):
        for _, head in arcs:
            rows[shared + head, tree] = 1.0
    rows[shared + np.arange(n), count + np.arange(n)] = -1.0
    least = np.zeros(count + n)
    least[count : count + 1 + given.destinations] = 1.0
    most = np.append(np.ones(count), given.vms)
    whole = np.append(np.ones(count), np.zeros(n))
    best = inf
    for time_s in times_s:
        time_usd = hour_usd * time_s / 3600
        vm_usd = np.array(given.vm_usd) * (time_s + 60.0) / 3600
        # One VM at every end and the least fees cost more already: no need to solve.
        if time_usd + min(fees) + least[count:] @ vm_usd >= best:
            continue
        rows[np.arange(shared), count + sites] = -time_s
        solved = milp(
            np.append(fees, vm_usd),
            constraints=[LinearConstraint(rows, -inf, 0), LinearConstraint(whole[None], 1, 1)],
            bounds=Bounds(least, most),
            integrality=np.append(np.zeros(count), np.ones(n)),
            options={"mip_rel_gap": 1e-6},
        )
        if solved.status == 0:
            best = min(best, float(solved.fun) + time_usd)
    return best


def least_time_of_flows(given: Instance, volume_gbit: float) -> float:
    """Least time if every destination's flow is only bounded by what its links carry (HiGHS).

    No packing of trees is faster; where every site is a destination, the fastest packing is as fast
    (Edmonds 1973).
    """
    n = len(given.rate)
    arcs = [(int(u), int(v)) for u, v in zip(*np.nonzero(given.rate), strict=True)]
    arcs = [(u, v) for u, v in arcs if v != 0]
    m, k = len(arcs), given.destinations
    size = m + k * m + 1
    upper, equal, wanted = [], [], []
    for terminal in range(1, k + 1):
        start = m + (terminal - 1) * m
        for node in range(n):
            row = np.zeros(size)
            for position, (u, v) in enumerate(arcs):
                row[start + position] = (v == node) - (u == node)
            equal.append(row)
            wanted.append({0: -1.0, terminal: 1.0}.get(node, 0.0))
        for position in range(m):
            row = np.zeros(size)
            row[start + position], row[position] = 1.0, -1.0
            upper.append(row)
    for kind in range(4):
        for site in range(n):
            row = np.zeros(size)
            for position, (u, v) in enumerate(arcs):
                if site == (u, v)[kind % 2]:
                    flows = given.flows * given.rate[u, v]
                    by = (flows, flows, given.egress[u], given.ingress[v])
                    row[position] = volume_gbit / by[kind]
            row[-1] = -given.vms[site]
            upper.append(row)
    for position, (u, v) in enumerate(arcs):
        row = np.zeros(size)
        row[position], row[-1] = volume_gbit / given.rate[u, v], -min(given.vms[u], given.vms[v])
        upper.append(row)
    solved = linprog(
        np.append(np.zeros(size - 1), 1.0),
        A_ub=np.array(upper),
        b_ub=np.zeros(len(upper)),
        A_eq=np.array(equal),
        b_eq=wanted,
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def least_fees_of_a_tree(given: Instance, volume_gbit: float) -> float:
    """Least egress fees of any tree: a mixed-integer program of flows over chosen links (HiGHS)."""
    n, k = len(given.rate), given.destinations
    arcs = [(int(u), int(v)) for u, v in zip(*np.nonzero(given.rate), strict=True) if v != 0]
    m = len(arcs)
    size = m + k * m
    rows, low, high = [], [], []
    for terminal in range(1, k + 1):
        start = m + (terminal - 1) * m
        for node in range(n):
            row = np.zeros(size)
            for position, (u, v) in enumerate(arcs):
                row[start + position] = (v == node) - (u == node)
            value = {0: -1.0, terminal: 1.0}.get(node, 0.0)
            rows.append(row)
            low.append(value)
            high.append(value)
        for position in range(m):
            row = np.zeros(size)
            row[start + position], row[position] = 1.0, -1.0
            rows.append(row)
            low.append(-inf)
            high.append(0.0)
    cost = np.append([given.fees[arc] * volume_gbit / 8 for arc in arcs], np.zeros(k * m))
    solved = milp(
        cost,
        constraints=LinearConstraint(np.array(rows), low, high),
        bounds=Bounds(0, 1),
        integrality=np.append(np.ones(m), np.zeros(k * m)),
        options={"mip_rel_gap": 1e-6},
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)
