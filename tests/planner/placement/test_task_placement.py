"""Tasks on VMs: as quick as trying every assignment, known answers, and CPUs kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.placement.plan import TaskPlacement
from planner.placement.request import Machine, TasksRequest
from planner.placement.tasks import recommend_tasks
from tests.properties import examples

NAMES = ["r0", "r1", "r2"]


def instance(seed: int, tasks: int, machines: int) -> tuple[Network, TasksRequest]:
    random = np.random.default_rng(seed)
    network = Network.from_matrices(
        NAMES,
        random.uniform(1, 8, (3, 3)),
        rtt_ms=0.0,
        per_flow_mbps=random.uniform(80, 500, (3, 3)),
        egress_gbps=random.uniform(2, 9, 3).tolist(),
        ingress_gbps=random.uniform(2, 9, 3).tolist(),
    )
    cpus = {f"t{i}": float(random.integers(1, 4)) for i in range(tasks)}
    traffic = {
        (a, b): float(random.pareto(1.5) * 20 + 1)
        for a in cpus
        for b in cpus
        if a != b and random.random() < 0.4
    }
    room = float(np.ceil(1.3 * sum(cpus.values()) / machines)) + 1
    vms = tuple(Machine(f"m{u}", NAMES[u % 3], room) for u in range(machines))
    return network, TasksRequest(
        cpus, traffic, vms, time_limit_s=60.0, connections=32, vms_running=True
    )


def place(network: Network, request: TasksRequest) -> TaskPlacement:
    return recommend_tasks(request, network, FlatPrices(NAMES, 0.02, 1.0))


def time_s(network: Network, request: TasksRequest, where: dict[str, str]) -> float:
    """Return what the fullest limit of any VM needs, from the definition."""
    region = {machine.id: machine.region for machine in request.machines}
    site = network.sites
    connections, egress, ingress = (dict.fromkeys(region, 0.0) for _ in range(3))
    paths: dict[tuple[str, str], float] = {}
    for (a, b), gb in request.traffic_gb.items():
        u, v = where[a], where[b]
        if u == v:
            continue
        caps = site[region[u]].egress_gbps.expected, site[region[v]].ingress_gbps.expected
        k, flow_gbps = request.connections, min(caps)  # inside a region, one connection fills a VM
        if region[u] != region[v]:
            link = network.link(region[u], region[v])
            flow_gbps = link.rate_gbps(1)
            paths[u, v] = paths.get((u, v), 0.0) + 8 * gb / link.rate_gbps(min(k, 64))
        connections[u] += 8 * gb / (k * flow_gbps)
        egress[u] += 8 * gb / caps[0]
        ingress[v] += 8 * gb / caps[1]
    rows = (connections, egress, ingress, paths)
    return max(max(row.values(), default=0.0) for row in rows)


def fits(request: TasksRequest, where: dict[str, str]) -> bool:
    used = {machine.id: 0.0 for machine in request.machines}
    for task, vm in where.items():
        used[vm] += request.tasks[task]
    return all(used[machine.id] <= machine.cpus for machine in request.machines)


@pytest.mark.slow
# Six tasks on three VMs take SCIP seconds to prove, and are tried once.
@pytest.mark.parametrize(
    ("seed", "tasks", "machines"),
    [*((seed, 3 + seed % 3, 2 + seed % 2) for seed in range(12)), (30, 6, 3)],
)
def test_none_of_all_assignments_is_quicker(seed: int, tasks: int, machines: int) -> None:
    network, request = instance(seed, tasks, machines)
    found = place(network, request)
    assert found.proven
    assert fits(request, found.assignment)
    vms = [machine.id for machine in request.machines]
    best = inf
    for choice in product(vms, repeat=len(request.tasks)):
        where = dict(zip(request.tasks, choice, strict=True))
        if fits(request, where):
            best = min(best, time_s(network, request, where))
    assert found.duration_s == pytest.approx(best, rel=1e-5)
    assert found.bound_s <= best * (1 + 1e-6)
    assert found.bound_s == pytest.approx(best, rel=1e-4)
    assert found.greedy_s is None or found.greedy_s >= best * (1 - 1e-9)


def test_tasks_that_talk_share_a_vm_if_they_fit() -> None:
    network = Network.from_matrices(NAMES, np.full((3, 3), 4.0), rtt_ms=0.0)
    vms = (Machine("x", "r0", 2), Machine("y", "r1", 2))
    request = TasksRequest({"a": 1, "b": 1, "c": 1}, {("a", "b"): 100, ("b", "c"): 10}, vms)
    found = place(network, request)
    assert found.assignment["a"] == found.assignment["b"] != found.assignment["c"]
    assert found.duration_s == pytest.approx(60 + 20)
    assert found.vm_start_s == 60
    assert (found.moved_gb, found.local_gb) == (10, 100)
    assert found.cost_usd.egress == pytest.approx(0.2)
    together = place(network, TasksRequest({"a": 1, "b": 1}, {("a", "b"): 100}, vms))
    assert together.duration_s == 0
    assert together.proven


def test_what_does_not_fit_is_told() -> None:
    network = Network.from_matrices(NAMES, np.full((3, 3), 4.0))
    vms = (Machine("x", "r0", 3), Machine("y", "r1", 3))
    traffic = {("a", "b"): 1.0}
    with pytest.raises(InfeasibleError, match="Add VMs with 2 CPUs more"):
        place(network, TasksRequest({"a": 4, "b": 4}, traffic, vms))
    with pytest.raises(InfeasibleError, match="no VM has more than 3"):
        place(network, TasksRequest({"a": 4, "b": 1}, traffic, vms))
    with pytest.raises(InfeasibleError, match="no assignment was found"):
        place(network, TasksRequest({"a": 2, "b": 2, "c": 2}, traffic, vms))
    with pytest.raises(InputError, match="not among the tasks"):
        TasksRequest({"a": 1}, traffic, vms)
    with pytest.raises(InputError, match="id twice"):
        TasksRequest({"a": 1, "b": 1}, traffic, (vms[0], vms[0]))
    lonely = Network.from_matrices(NAMES, np.array([[0.0, 1, 1], [0, 0, 0], [1, 1, 0]]))
    with pytest.raises(DataError, match="r1 -> r0"):
        place(lonely, TasksRequest({"a": 2, "b": 2}, traffic, vms))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 5))
def test_without_the_exact_search_a_placement_keeps_cpus_and_says_its_time(
    seed: int, tasks: int, machines: int
) -> None:
    network, request = instance(seed, tasks, machines)
    quick = replace(request, time_limit_s=0.0)
    if not request.traffic_gb:
        return
    found = place(network, quick)
    assert fits(request, found.assignment)
    assert set(found.assignment) == set(request.tasks)
    assert (found.proven, found.bound_s) == (found.duration_s == 0, 0)
    assert found.greedy_s is None or found.duration_s <= found.greedy_s * (1 + 1e-9)
    taken = time_s(network, request, found.assignment)
    assert found.duration_s == pytest.approx(taken, rel=1e-9, abs=1e-9)
    assert max((vm.busy_s for vm in found.vms), default=0.0) == pytest.approx(taken, abs=1e-9)
    found.model_dump_json()
