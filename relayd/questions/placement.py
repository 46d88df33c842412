"""The questions where to reduce, and on which VM to run which task."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from planner.model.errors import InputError
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import ReduceRequest, TasksRequest
from relayd.questions.question import Question
from relayd.questions.resolving import NetworkView, answered, by_regions, forbidden, network_of

_HEADING = "recommend where to reduce or run tasks"


def place_reduce(wan: NetworkView, request: ReduceRequest) -> ReducePlacement:
    """Answer a :class:`~planner.placement.request.ReduceRequest` with names of regions.

    Raises an InputError if two names of inputs are of one region.
    """
    from planner.placement.reduce import recommend_reduce

    found = {name: wan.resolve(name, "input_gb") for name in request.input_gb}
    reducers = [wan.resolve(name, "reduce_in") for name in request.reduce_in]
    inputs: dict[str, float] = {}
    for name, volume_gb in request.input_gb.items():
        region, problem = found[name].region_id, "names a region twice"
        if region in inputs:
            raise InputError("input_gb", problem, value=region, remedy="Add them up.")
        inputs[region] = volume_gb
    common = by_regions(wan, request, {f"input_gb {n}": r.region_id for n, r in found.items()})
    denied = forbidden(wan, request, {})
    chosen = tuple(dict.fromkeys(resolution.region_id for resolution in reducers))
    resolved = replace(
        request,
        input_gb=inputs,
        reduce_in=[region for region in chosen or inputs if region not in denied],
        **common,
    )
    network = network_of(wan, (*inputs, *chosen), request)
    names = (*found.values(), *reducers)
    pairs = [(src, dst) for src in inputs for dst in resolved.reduce_in if src != dst]
    return answered(wan, request, resolved, network, pairs, recommend_reduce, names)


def place_tasks(wan: NetworkView, request: TasksRequest) -> TaskPlacement:
    """Answer a :class:`~planner.placement.request.TasksRequest` with names of regions."""
    from planner.placement.tasks import recommend_tasks

    found = [wan.resolve(vm.region, f"vms {vm.id}, region") for vm in request.machines]
    machines = [
        replace(vm, region=resolution.region_id)
        for vm, resolution in zip(request.machines, found, strict=True)
    ]
    resolved = replace(request, machines=machines)
    regions = tuple(dict.fromkeys(machine.region for machine in machines))
    network = network_of(wan, regions, request)
    pairs = list(permutations(regions, 2))
    return answered(wan, request, resolved, network, pairs, recommend_tasks, found)


REDUCE = Question(
    name="place-reduce",
    method="place_reduce",
    path="/v1/placements/reduce",
    command="plan place reduce",
    summary="Recommend where to reduce",
    request=ReduceRequest,
    answer=ReducePlacement,
    solve=place_reduce,
    example={"input_gb": {"aws:us-east-1": 100, "aws:eu-west-1": 40}, "selectivity": 0.5},
    schema_name="ReduceQuestion",
    order=5,
    heading=_HEADING,
)
TASKS = Question(
    name="place-tasks",
    method="place_tasks",
    path="/v1/placements/tasks",
    command="plan place tasks",
    summary="Recommend on which VM to run which task",
    request=TasksRequest,
    answer=TaskPlacement,
    solve=place_tasks,
    example={
        "tasks": [{"id": "map", "cpus": 2}, {"id": "reduce", "cpus": 2}],
        "traffic": [{"src": "map", "dst": "reduce", "volume_gb": 10}],
        "vms": [
            {"id": "a", "region": "aws:us-east-1", "cpus": 2},
            {"id": "b", "region": "aws:eu-west-1", "cpus": 4},
        ],
    },
    schema_name="TasksQuestion",
    order=6,
    most={"tasks": 500, "traffic": 10_000, "vms": 200, "time_limit_s": 20.0},
    heading=_HEADING,
)
