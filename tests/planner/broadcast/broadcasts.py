"""Broadcasts for tests: random instances, and programs over every tree of a small one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from planner.broadcast.request import BroadcastObjective, BroadcastRequest
from planner.model.shared_resources import Floats
from planner.solvers.steiner import Arcs, as_tree
from tests.planner.worlds import CONNECTIONS, World, world


@dataclass(frozen=True)
class Instance(World):
    """Site 0 sends to the next few; the rest may relay."""

    destinations: int = 1

    def request(
        self, objective: BroadcastObjective = "time", **further: object
    ) -> BroadcastRequest:
        return BroadcastRequest(
            self.names[0],
            tuple(self.names[1 : 1 + self.destinations]),
            volume_gb=100.0,
            objective=objective,
            vms_in=self.vms_in,
            vm_start_s=60.0,
            connections=CONNECTIONS,
            **{"margin": 0.0, **further},  # type: ignore[arg-type]
        )

    def tree_loads(self, arcs: Arcs, volume_gbit: float) -> Floats:
        """Return VM-seconds of all rows of a volume over a tree."""
        links = np.zeros_like(self.rate)
        for arc in arcs:
            links[arc] = volume_gbit
        return self.loads_of(links)


def instance(seed: int, n: int, destinations: int, most_vms: int = 3) -> Instance:
    """Caps that bind or not, missing links, several VMs, dear and cheap links."""
    of, random = world(seed, n, most_vms), np.random.default_rng(seed)
    rate = of.rate.copy()
    rate[0, 1:] = np.where(rate[0, 1:] > 0, rate[0, 1:], 3.0)
    loose = 10 if seed % 4 == 1 else 1
    return Instance(
        rate,
        [1.0, 1.5, 16.0][seed % 3] * rate,
        of.egress * loose,
        of.ingress * loose,
        of.vms,
        random.choice([0.01, 0.02, 0.05, 0.09, 0.12], (n, n)),
        np.ones(n, dtype=bool),
        tuple(random.choice([0.1, 1.5, 6.0], n).tolist()),
        destinations,
    )


def every_tree(known: np.ndarray, root: int, terminals: list[int]) -> list[Arcs]:
    """Return each arborescence by choosing for every other node who enters it, or nobody."""
    n = len(known)
    others = [v for v in range(n) if v != root]
    entering = [
        [u for u in range(n) if u != v and known[u, v]] + ([] if v in terminals else [-1])
        for v in others
    ]
    found = set()
    for choice in product(*entering):
        parent = dict(zip(others, choice, strict=True))
        if all(_leads_to(parent, v, root) for v in terminals):
            arcs = [(u, v) for v, u in parent.items() if u >= 0 and _leads_to(parent, v, root)]
            found.add(as_tree(arcs, root, terminals))
    return sorted(found)


def _leads_to(parent: dict[int, int], node: int, root: int) -> bool:
    seen = set()
    while node != root:
        if node in seen or node < 0:
            return False
        seen.add(node)
        node = parent[node]
    return True


def least_time_of_trees(given: Instance, trees: Sequence[Arcs], volume_gbit: float) -> float:
    """Least time over all packings of these trees (HiGHS)."""
    columns = [given.tree_loads(arcs, volume_gbit) for arcs in trees]
    solved = linprog(
        np.append(np.zeros(len(trees)), 1.0),
        A_ub=np.column_stack([*columns, -given.limits]),
        b_ub=np.zeros(len(given.limits)),
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

    VMs take a minute to start, which is paid for.
    """
    n, count = len(given.rate), len(trees)
    columns = [given.tree_loads(arcs, volume_gbit) for arcs in trees]
    fees = [sum(given.fees[arc] for arc in arcs) * volume_gbit / 8 for arcs in trees]
    sites = given.row_sites
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
        time_usd = hour_usd * (time_s + 60.0) / 3600
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
