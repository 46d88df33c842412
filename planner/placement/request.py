"""Requests to place a reduce stage, and to place tasks on VMs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal, TypeAlias

from planner.fields.demands import Pair, Pairs, demands_gb
from planner.fields.kinds import (
    LEAST_FIGURE,
    ByPlace,
    Duration,
    Kind,
    Money,
    Name,
    Names,
    Number,
    OneOf,
    Proportion,
    Region,
    Volume,
    check_count,
    kind_schema,
    list_schema,
    object_schema,
)
from planner.fields.shared import (
    AIM,
    DEFAULT_CONNECTIONS_OF_MANY,
    DEFAULT_TIME_VALUE_USD_PER_H,
    Connections,
    Deadline,
    Margin,
    RelayingRequest,
    VmRequest,
    connections_field,
    deadline_field,
    hour_value_usd,
    margin_field,
    objective_field,
)
from planner.fields.specified import (
    Figure,
    Items,
    Limit,
    Reads,
    Several,
    Specified,
    field,
    specified,
)
from planner.model.errors import InputError

Links: TypeAlias = Literal["hose", "heterogeneous"]
PlacementObjective: TypeAlias = Literal["value", "time", "cost"]

DEFAULT_TIME_LIMIT_S = 10.0
MOST_TIME_LIMIT_S = 3600.0
MOST_TASKS = 2000
MOST_MACHINES = 1000


class InputVolumes(ByPlace):
    """A volume for each region: a mapping, a series, or rows of region and GB."""

    def __init__(self) -> None:
        super().__init__(Volume(0.0), "region")
        self.metavar = "FILE"

    def read(self, value: Any) -> Any:
        """Return rows as a mapping; raises an InputError if one is wrong or repeats a region."""
        if isinstance(value, Mapping | str | bytes) or hasattr(value, "items"):
            return super().read(value)
        if not isinstance(value, Iterable):
            raise InputError("", "must map regions to volumes, or list them", value=value)
        rows = [_input_row(row, str(number)) for number, row in enumerate(value, 1)]
        if len(dict(rows)) < len(rows):
            raise InputError("", "names a region twice", remedy="Add them up.")
        return dict(rows)


def _input_row(row: Any, where: str) -> tuple[str, Any]:
    if isinstance(row, Mapping):
        volume = next((row[k] for k in ("input_gb", "volume_gb", "gb", "volume") if k in row), None)
        if volume is None or not row.get("region"):
            raise InputError(where, "needs region and input_gb", value=dict(row))
        return str(row["region"]), volume
    if isinstance(row, str | bytes) or not isinstance(row, Sequence) or len(row) != 2:
        raise InputError(where, "must be a region and its GB", value=row)
    return str(row[0]), row[1]


@specified
class ReduceRequest(RelayingRequest):
    """A reduce stage over data of several regions."""

    input_gb: Annotated[
        Reads[Any, dict[str, float]],
        InputVolumes(),
        "Volume in each region, in GB, before selectivity.",
    ] = field(example="input.csv", group="reduce", option="input")
    _: KW_ONLY
    selectivity: Annotated[
        Figure, Proportion(LEAST_FIGURE), "GB that are shuffled for each GB of input."
    ] = field(default=1.0, example="0.3", group="goal")
    links: Annotated[
        Links,
        OneOf({"hose": "all limits of VMs as measured", "heterogeneous": "each pair by itself"}),
        "What is taken to limit transfers.",
    ] = field(default="hose", group="goal")
    objective: Annotated[
        PlacementObjective,
        OneOf(
            {
                "value": "the shuffle ends as soon as it can with the VMs that are worth it",
                "time": "the shuffle ends as soon as possible",
                "cost": "least egress fees",
            }
        ),
        AIM,
    ] = objective_field(default="value")
    budget_usd: Annotated[Limit, Money(), "Most to spend on egress fees."] = field(
        default=None, example="20usd", group="goal"
    )
    deadline_s: Annotated[Deadline, "Latest end of the shuffle."] = deadline_field()
    reduce_in: Annotated[
        Several,
        Names("regions", "REGION"),
        "Regions that may reduce; those with input if none are named.",
    ] = field(default=(), example="us-east", group="goal")
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    margin: Margin = margin_field(deprecated=True)

    def _check(self) -> None:
        if not sum(self.input_gb.values()) > 0:
            raise InputError("input_gb", "has nothing to reduce")

    @property
    def hour_usd(self) -> float:
        """Value of an hour where the number of VMs is decided."""
        return hour_value_usd(self.objective, DEFAULT_TIME_VALUE_USD_PER_H)

    @property
    def shuffle_gb(self) -> dict[str, float]:
        """The volume of each region for the reduce stage."""
        return {r: gb * self.selectivity for r, gb in self.input_gb.items()}


@specified
class Machine(Specified):
    """One VM that tasks can be placed on."""

    id: Annotated[str, Name(), "Unique among the VMs."] = field()
    region: Annotated[str, Region(), "Where it is."] = field()
    cpus: Annotated[Figure, Number(LEAST_FIGURE), "CPUs that tasks can take."] = field(label="CPUs")


class Tasks(Kind):
    """CPUs by task: a mapping, a list of names, or of ``{id, cpus}``."""

    name, metavar = "tasks", "FILE"
    _cpus = Number(LEAST_FIGURE)

    def read(self, value: Any) -> dict[str, float]:
        """Return task to CPUs; raises an InputError for a wrong task, and for none or too many."""
        if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
            raise InputError("", "must map tasks to CPUs, or list them", value=value)
        found: dict[str, float] = {}
        items = value.items() if isinstance(value, Mapping) else map(_task, value)
        for name, cpus in items:
            if not isinstance(name, str) or not name:
                raise InputError("", "have one without an id", value=name)
            if name in found:
                raise InputError("", "have an id twice", value=name)
            found[name] = self._cpus.validate(cpus, f"{name}, cpus")
        check_count(len(found), 1, MOST_TASKS)
        return found

    def to_json(self, value: dict[str, float]) -> list[dict[str, Any]]:
        """Return one object for each task."""
        return [{"id": task, "cpus": cpus} for task, cpus in value.items()]

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of tasks, or of an object of CPUs by task."""
        cpus = kind_schema(self._cpus)
        item = object_schema("Task", {"id": Name(), "cpus": self._cpus}, ["id"])
        item["properties"]["cpus"]["default"] = 1.0
        bounds = {"minProperties": 1, "maxProperties": MOST_TASKS}
        by_name = {"type": "object", "additionalProperties": cpus, **bounds}
        listed = list_schema(item, 1, MOST_TASKS)
        return {"anyOf": [listed, by_name]}


def _task(item: Any) -> tuple[Any, Any]:
    return (item.get("id"), item.get("cpus", 1)) if isinstance(item, Mapping) else (item, 1)


@specified
class TasksRequest(VmRequest):
    """Tasks that exchange volumes, and the VMs to place them on."""

    tasks: Annotated[
        Reads[Any, dict[str, float]], Tasks(), "Tasks, with the CPUs that each takes."
    ] = field(group="tasks", option="tasks")
    traffic_gb: Annotated[
        Reads[Any, dict[Pair, float]],
        Pairs("Traffic", least=0),
        "Volumes that tasks send each other, in GB; a matrix is in the order of the tasks.",
    ] = field(group="tasks", key="traffic", option="tasks")
    machines: Annotated[
        Reads[Any, tuple[Machine, ...]],
        Items(Machine, least=1, most=MOST_MACHINES, prefix="vm"),
        "VMs that tasks can be placed on.",
    ] = field(group="tasks", key="vms", option="tasks")
    _: KW_ONLY
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    time_limit_s: Annotated[
        Figure, Duration(0.0, MOST_TIME_LIMIT_S), "For the exact search; 0 leaves it out."
    ] = field(default=DEFAULT_TIME_LIMIT_S, example="10s", group="goal")

    def _check(self) -> None:
        self.__dict__["traffic_gb"] = demands_gb(self.traffic_gb, list(self.tasks), "traffic", 0)
        for task in {task for pair in self.traffic_gb for task in pair}:
            if task not in self.tasks:
                raise InputError("traffic", "names a task that is not among the tasks", value=task)

    def described(self) -> dict[str, Any]:
        """Return all fields, the tasks by name."""
        return {**super().described(), "tasks": dict(self.tasks)}
