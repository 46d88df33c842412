"""Where to reduce, and where to run tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, Literal, TypeAlias

from planner.fields.demands import Pair, Pairs, demands_gb
from planner.fields.items import Items
from planner.fields.kinds import (
    ByPlace,
    Kind,
    Name,
    Names,
    OneOf,
    Region,
    list_schema,
    object_schema,
)
from planner.fields.quantities import LEAST_FIGURE, Duration, Money, Number, Proportion, Volume
from planner.fields.shared import (
    DEFAULT_CONNECTIONS_OF_MANY,
    RelayingRequest,
    VmRequest,
    connections_field,
    deadline_field,
    margin_field,
    objective_field,
)
from planner.fields.specified import (
    Field,
    Figure,
    Limit,
    Several,
    Specified,
    Text,
    Whole,
    field,
    specified,
)
from planner.model.errors import InputError

Links: TypeAlias = Literal["hose", "heterogeneous"]
PlacementObjective: TypeAlias = Literal["time", "cost"]

DEFAULT_TIME_LIMIT_S = 10.0
MOST_TIME_LIMIT_S = 3600.0
MOST_TASKS = 2000
MOST_MACHINES = 1000


class InputVolumes(ByPlace):
    """A volume for each region: a mapping, a series, or rows of region and GB."""

    metavar = "FILE"

    def __init__(self) -> None:
        super().__init__(Volume(0.0), "region")
        self.metavar, self.accepts = "FILE", Any

    def read(self, value: Any, field: str) -> dict[str, float]:
        """Return region to GB."""
        if not isinstance(value, Mapping) and not hasattr(value, "items"):
            if isinstance(value, str | bytes) or not isinstance(value, Iterable):
                raise InputError(field, "must map regions to volumes, or list them", value=value)
            rows = [_input_row(row, f"{field} {number}") for number, row in enumerate(value, 1)]
            value = dict(rows)
            if len(value) < len(rows):
                raise InputError(field, "names a region twice", remedy="Add them up.")
        found = super().read(value, field)
        if not sum(found.values()) > 0:
            raise InputError(field, "has nothing to reduce")
        return found


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

    input_gb: Field[Any, dict[str, float]] = field(
        InputVolumes(),
        "Volume in each region, in GB, before selectivity.",
        example="input.csv",
        group="reduce",
        option="input",
    )
    _: KW_ONLY
    selectivity: Figure = field(
        Proportion(LEAST_FIGURE),
        "GB that are shuffled for each GB of input.",
        default=1.0,
        example="0.3",
        group="goal",
    )
    links: Field[Links, Links] = field(
        OneOf({"hose": "all limits of VMs as measured", "heterogeneous": "each pair by itself"}),
        "What is taken to limit transfers.",
        default="hose",
        group="goal",
    )
    objective: Field[PlacementObjective, PlacementObjective] = objective_field(
        {"time": "the shuffle ends as soon as possible", "cost": "least egress fees"}
    )
    budget_usd: Limit = field(
        Money(), "Most to spend on egress fees.", default=None, example="20usd", group="goal"
    )
    deadline_s: Limit = deadline_field("Latest end of the shuffle.")
    reduce_in: Several = field(
        Names("regions", "REGION"),
        "Regions that may reduce; those with input if none are named.",
        default=(),
        example="us-east",
        group="goal",
    )
    connections: Whole = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    margin: Figure = margin_field(deprecated=True)

    @property
    def shuffle_gb(self) -> dict[str, float]:
        """What each region has for the reduce stage."""
        return {r: gb * self.selectivity for r, gb in self.input_gb.items()}


@specified
class Machine(Specified):
    """One VM that tasks can be placed on."""

    id: Text = field(Name(), "Unique among the VMs.")
    region: Text = field(Region(), "Where it is.")
    cpus: Figure = field(Number(LEAST_FIGURE), "CPUs that tasks can take.", label="CPUs")


class Tasks(Kind[dict[str, float]]):
    """CPUs by task: a mapping, a list of names, or of ``{id, cpus}``."""

    name, metavar = "tasks", "FILE"
    accepts = Any
    _cpus = Number(LEAST_FIGURE)

    def read(self, value: Any, field: str) -> dict[str, float]:
        """Return task to CPUs."""
        if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
            raise InputError(field, "must map tasks to CPUs, or list them", value=value)
        found: dict[str, float] = {}
        items = value.items() if isinstance(value, Mapping) else map(_task, value)
        for name, cpus in items:
            if not isinstance(name, str) or not name:
                raise InputError(field, "have one without an id", value=name)
            if name in found:
                raise InputError(field, "have an id twice", value=name)
            found[name] = self._cpus.read(cpus, f"{field} {name}, cpus")
        if not 1 <= len(found) <= MOST_TASKS:
            raise InputError(field, f"must be from 1 to {MOST_TASKS}", value=len(found))
        return found

    def to_json(self, value: dict[str, float]) -> list[dict[str, Any]]:
        """Return one object for each task."""
        return [{"id": task, "cpus": cpus} for task, cpus in value.items()]

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of tasks, or of an object of CPUs by task."""
        properties = {"id": Name().schema(), "cpus": self._cpus.schema() | {"default": 1.0}}
        listed = list_schema(object_schema("Task", properties, ["id"]), 1, MOST_TASKS)
        by_name = {
            "type": "object",
            "additionalProperties": self._cpus.schema(),
            "minProperties": 1,
            "maxProperties": MOST_TASKS,
        }
        return {"anyOf": [listed, by_name]}


def _task(item: Any) -> tuple[Any, Any]:
    return (item.get("id"), item.get("cpus", 1)) if isinstance(item, Mapping) else (item, 1)


@specified
class TasksRequest(VmRequest):
    """Tasks that exchange volumes, and the VMs to place them on."""

    tasks: Field[Any, dict[str, float]] = field(
        Tasks(), "Tasks, with the CPUs that each takes.", group="tasks", option="tasks"
    )
    traffic_gb: Field[Any, dict[Pair, float]] = field(
        Pairs("Traffic", least=0),
        "Volumes that tasks send each other, in GB; a matrix is in the order of the tasks.",
        group="tasks",
        key="traffic",
        option="tasks",
    )
    machines: Field[Any, tuple[Machine, ...]] = field(
        Items(Machine, least=1, most=MOST_MACHINES, prefix="vm"),
        "VMs that tasks can be placed on.",
        group="tasks",
        key="vms",
        option="tasks",
    )
    _: KW_ONLY
    connections: Whole = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    time_limit_s: Figure = field(
        Duration(0.0, MOST_TIME_LIMIT_S),
        "For the exact search; 0 leaves it out.",
        default=DEFAULT_TIME_LIMIT_S,
        example="10s",
        group="goal",
    )

    def _check(self) -> None:
        self.__dict__["traffic_gb"] = demands_gb(self.traffic_gb, list(self.tasks), "traffic", 0)
        for task in {task for pair in self.traffic_gb for task in pair}:
            if task not in self.tasks:
                raise InputError("traffic", "names a task that is not among the tasks", value=task)

    def described(self) -> dict[str, Any]:
        """Return all fields, the tasks by name."""
        return {**super().described(), "tasks": dict(self.tasks)}
