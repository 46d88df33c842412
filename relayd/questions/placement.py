"""Placement: where to reduce, and on which VM to run which task."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from planner.model.errors import InputError
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.reduce import recommend_reduce
from planner.placement.request import ReduceRequest, TasksRequest
from planner.placement.tasks import recommend_tasks
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import (
    NetworkView,
    by_regions,
    forbidden,
    notes_of,
    prices,
    vm_types,
)


def place_reduce(wan: NetworkView, request: ReduceRequest) -> ReducePlacement:
    """Answer a :class:`~planner.placement.request.ReduceRequest` with names of regions."""
    found = {name: wan.resolve(name, "input_gb") for name in request.input_gb}
    reducers = {name: wan.resolve(name, "reduce_in") for name in request.reduce_in}
    inputs: dict[str, float] = {}
    for name, volume_gb in request.input_gb.items():
        region = found[name].region_id
        if region in inputs:
            raise InputError(
                "input_gb", "names a region twice", value=region, remedy="Add them up."
            )
        inputs[region] = volume_gb
    common = by_regions(wan, request, {f"input_gb {n}": r.region_id for n, r in found.items()})
    denied = forbidden(wan, request, {})
    chosen = tuple(dict.fromkeys(r.region_id for r in reducers.values()))
    resolved = replace(
        request,
        input_gb=inputs,
        reduce_in=[region for region in chosen or inputs if region not in denied],
        **common,
    )
    network = wan.network_of((*inputs, *chosen), vm_types(wan, request), request.addresses)
    pairs = [(src, dst) for src in inputs for dst in resolved.reduce_in if src != dst]
    refuse_old(request, wan.catalogue, network, pairs)
    placement = recommend_reduce(
        resolved,
        network,
        prices(wan, network, request),
        notes=notes_of((*found.values(), *reducers.values())),
    )
    return dated(placement, wan.catalogue, network, pairs)


def place_tasks(wan: NetworkView, request: TasksRequest) -> TaskPlacement:
    """Answer a :class:`~planner.placement.request.TasksRequest` with names of regions."""
    found = [wan.resolve(vm.region, f"vms {vm.id}, region") for vm in request.machines]
    machines = [
        replace(vm, region=resolution.region_id)
        for vm, resolution in zip(request.machines, found, strict=True)
    ]
    resolved = replace(request, machines=machines)
    regions = tuple(dict.fromkeys(machine.region for machine in machines))
    network = wan.network_of(regions, vm_types(wan, request), request.addresses)
    notes = tuple(dict.fromkeys(notes_of(found)))
    pairs = list(permutations(regions, 2))
    refuse_old(request, wan.catalogue, network, pairs)
    placement = recommend_tasks(resolved, network, prices(wan, network, request), notes=notes)
    return dated(placement, wan.catalogue, network, pairs)
