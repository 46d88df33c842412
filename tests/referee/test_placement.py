"""Where to reduce, against a linear program; where to run tasks, against all assignments."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import relayd
from tests.referee.checks import EXACT, seeds
from tests.referee.flows import rows_of_routes
from tests.referee.networks import Network, random_network
from tests.referee.transfer import ROUND_TRIPS

REFUSALS = (relayd.InfeasibleError, relayd.DataError)


def _least_time(net: Network, stage: dict[int, float], vms: int) -> float | None:
    """Return the least seconds of sending; *r_j* of each stage goes direct to *j*."""
    where = list(stage)
    whole = sum(stage.values())
    pairs = [(i, j) for i in where for j in where if i != j]
    usable = [j for j in where if all(net.link(i, j) for i in where if i != j)]
    if not usable:
        return None
    rows = rows_of_routes(net, [p for p in pairs if net.link(*p)], vms, 1024)
    spread = np.zeros((len(rows.routes), len(where)))
    for number, (i, j) in enumerate(rows.routes):
        spread[number, where.index(j)] = stage[i] / whole
    loads = rows.loads @ spread / rows.limits[:, None]
    unit = float(loads.max()) or 1.0
    found = linprog(
        np.append(np.zeros(len(where)), 1.0),
        A_ub=np.column_stack([loads / unit, -np.ones(len(loads))]),
        b_ub=np.zeros(len(loads)),
        A_eq=np.append(np.ones(len(where)), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, None if j in usable else 0.0) for j in where] + [(0.0, None)],
    )
    return float(found.x[-1] * unit * 8 * whole) if found.status == 0 else None


@seeds(80)
def test_where_to_reduce(seed: int) -> None:
    rng = np.random.default_rng([seed, 8])
    net = random_network(seed, most=6)
    ends = [i for i in range(net.size) if i not in net.avoid]
    count = int(rng.integers(2, len(ends) + 1))
    size = float(rng.choice([1.0, 100.0, 1e5]))
    stage = {int(i): float(np.round(rng.uniform(0.1, 1) * size, 3)) for i in ends[:count]}
    vms = int(rng.choice([1, 1, 2]))
    best = _least_time(net, stage, vms)
    named = {net.regions[i]: gb for i, gb in stage.items()}
    if best is None:
        with pytest.raises(REFUSALS):
            net.wan.place_reduce(named, vms=vms, vms_running=True)
        return
    plan = net.wan.place_reduce(named, vms=vms, vms_running=True)
    if any(count < vms for count in plan.vms.values()):
        return  # it decided for fewer VMs, which is another question
    ramp = ROUND_TRIPS * float(max(net.rtt[i, j] for i in stage for j in stage if i != j)) / 1000
    assert sum(plan.fractions.values()) == pytest.approx(1.0)
    assert plan.duration_s >= best * (1 - EXACT)
    assert plan.duration_s <= best * (1 + 1e-3) + ramp
    assert plan.promised_s == pytest.approx(plan.duration_s, rel=1e-4)


@seeds(40, 100_000)
def test_where_to_run_tasks(seed: int) -> None:
    """No assignment of tasks to three VMs, each in a region of its own, exchanges sooner."""
    rng = np.random.default_rng([seed, 9])
    net = random_network(seed, least=3, most=3, broken=False, stated_flow=False)
    tasks = [f"task{i}" for i in range(int(rng.integers(3, 6)))]
    room = int(np.ceil(len(tasks) / 2))
    volume = {
        (a, b): float(np.round(rng.uniform(1, 100), 2))
        for a, b in product(tasks, tasks)
        if a != b and rng.random() < 0.5
    }
    if not volume:
        return
    machines = [{"id": name, "region": name, "cpus": room} for name in net.regions]
    plan = net.wan.place_tasks(dict.fromkeys(tasks, 1), volume, machines, vms_running=True)
    best = min(
        _takes(net, dict(zip(tasks, on, strict=True)), volume)
        for on in product(range(3), repeat=len(tasks))
        if max(np.bincount(on)) <= room
    )
    ramp = ROUND_TRIPS * float(net.rtt.max()) / 1000
    assert plan.bound_s <= (best + ramp) * (1 + EXACT)
    assert plan.duration_s >= best * (1 - EXACT)
    if plan.proven:
        assert plan.duration_s <= best * (1 + 1e-3) + ramp


def _takes(net: Network, on: dict[str, int], volume: dict[tuple[str, str], float]) -> float:
    flow = np.zeros((3, 3))
    for (a, b), gb in volume.items():
        if on[a] != on[b]:
            flow[on[a], on[b]] += gb
    path = float(np.max(np.divide(flow, net.aggregate, out=np.zeros((3, 3)), where=flow > 0)))
    caps = max(
        float(np.max(flow.sum(axis=1) / net.send)), float(np.max(flow.sum(axis=0) / net.receive))
    )
    return 8 * max(path, caps)
