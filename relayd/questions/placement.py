"""Placement: where to reduce, and on which VM to run which task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.model.demands import demands_gb
from planner.model.errors import InputError
from planner.model.units import parse_volume_gb
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.reduce import recommend_reduce
from planner.placement.request import Machine, ReduceRequest, TasksRequest
from planner.placement.tasks import recommend_tasks
from relayd.questions.circumstances import Circumstances

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def place_reduce(
    wan: Wan, input_gb: Any, circumstances: Circumstances, *, reduce_in: Sequence[str], **goal: Any
) -> ReducePlacement:
    """Answer :meth:`relayd.sources.wan.Wan.place_reduce`; ``goal`` goes to the request as it is."""
    volumes = _volumes(input_gb)
    found = {name: wan.resolve(name, "input") for name in volumes}
    reducers = {name: wan.resolve(name, "reduce_in") for name in reduce_in}
    inputs: dict[str, float] = {}
    for name, volume in volumes.items():
        region = found[name].region_id
        if region in inputs:
            raise InputError("input", "names a region twice", value=region, remedy="Add them up.")
        inputs[region] = volume
    circumstances.forbidden(wan, {f"input of {name}": r.region_id for name, r in found.items()})
    denied = circumstances.forbidden(wan, {})
    chosen = tuple(dict.fromkeys(r.region_id for r in reducers.values()))
    request = ReduceRequest(
        inputs,
        reduce_in=tuple(region for region in chosen or inputs if region not in denied),
        vms=circumstances.vms,
        vms_in=circumstances.vms_by_region(wan),
        connections=circumstances.connections,
        vm_start_s=circumstances.vm_start_s,
        **goal,
    )
    network = wan.network_of((*inputs, *chosen), circumstances.checked_vm_types(wan))
    return recommend_reduce(
        request,
        network,
        circumstances.prices(wan, network),
        notes=tuple(r.note for r in (*found.values(), *reducers.values()) if r.note),
    )


def place_tasks(
    wan: Wan,
    tasks: Any,
    traffic_gb: Any,
    vms: Any,
    circumstances: Circumstances,
    *,
    time_limit_s: float,
) -> TaskPlacement:
    """Answer :meth:`relayd.sources.wan.Wan.place_tasks`."""
    cpus = task_cpus(tasks)
    machines, notes = _machines(wan, vms)
    request = TasksRequest(
        cpus,
        demands_gb(traffic_gb, list(cpus)),
        machines,
        connections=circumstances.connections,
        time_limit_s=time_limit_s,
        vm_start_s=circumstances.vm_start_s,
    )
    regions = tuple(dict.fromkeys(machine.region for machine in machines))
    network = wan.network_of(regions, circumstances.checked_vm_types(wan))
    prices = circumstances.prices(wan, network)
    return recommend_tasks(request, network, prices, notes=notes)


def _volumes(given: Any) -> dict[str, float]:
    """Return GB by region: from a mapping, a series, or rows of ``region, input_gb``."""
    series = hasattr(given, "items") and hasattr(given, "index")
    if isinstance(given, Mapping) or series:
        pairs = list(given.items())
    else:
        pairs = [_row(row, number) for number, row in enumerate(given, 1)]
    found: dict[str, float] = {}
    for region, value in pairs:
        if str(region) in found:
            raise InputError("input", "names a region twice", value=region, remedy="Add them up.")
        found[str(region)] = _gb(value, f"input of {region}")
    return found


def _row(row: Any, number: int) -> tuple[str, Any]:
    if isinstance(row, Mapping):
        volume = next((row[k] for k in ("input_gb", "volume_gb", "gb", "volume") if k in row), None)
        if volume is None or not row.get("region"):
            raise InputError(f"input, row {number}", "needs region and input_gb", value=dict(row))
        return str(row["region"]), volume
    if isinstance(row, str | bytes) or not isinstance(row, Sequence) or len(row) != 2:
        raise InputError(f"input, row {number}", "must be a region and its GB", value=row)
    return str(row[0]), row[1]


def _gb(value: Any, where: str) -> float:
    if isinstance(value, bool):
        raise InputError(where, "is not a volume", value=value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return parse_volume_gb(str(value), where)


def task_cpus(given: Any) -> dict[str, float]:
    """Return CPUs by task: from a mapping, a list of names, or of ``{id, cpus}``."""
    if isinstance(given, Mapping):
        return {str(task): _number(cpus, f"task {task}, cpus") for task, cpus in given.items()}
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError("tasks", "must map tasks to CPUs, or list them", value=given)
    found: dict[str, float] = {}
    for number, item in enumerate(given, 1):
        name, cpus = (
            (item.get("id"), item.get("cpus", 1)) if isinstance(item, Mapping) else (item, 1)
        )
        if not isinstance(name, str) or not name:
            raise InputError(f"task {number}", "has no id", value=item)
        if name in found:
            raise InputError("tasks", "have an id twice", value=name)
        found[name] = _number(cpus, f"task {name}, cpus")
    return found


def _machines(wan: Wan, given: Any) -> tuple[tuple[Machine, ...], tuple[str, ...]]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InputError("vms", "must be a list of id, region and cpus", value=given)
    found, notes = [], []
    for number, item in enumerate(given, 1):
        if isinstance(item, Machine):
            name, place, cpus = item.id, item.region, item.cpus
        elif isinstance(item, Mapping) and {"region", "cpus"} <= item.keys():
            name, place = str(item.get("id", f"vm{number}")), str(item["region"])
            cpus = _number(item["cpus"], f"vm {name}, cpus")
        else:
            raise InputError(f"vm {number}", "needs id, region and cpus", value=item)
        resolution = wan.resolve(place, f"vm {name}, region")
        found.append(Machine(name, resolution.region_id, cpus))
        if resolution.note:
            notes.append(resolution.note)
    return tuple(found), tuple(dict.fromkeys(notes))


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool):
        raise InputError(where, "is not a number", value=value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(where, "is not a number", value=value) from None
