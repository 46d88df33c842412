"""Where to compute: the answers are of :mod:`planner.placement.plan`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.fields.shared import DEFAULT_CONNECTIONS, DEFAULT_VM_START_S, MOST_CONNECTIONS
from planner.model.answer import Answer
from relayd.http.models.common import Asked, Name
from relayd.http.models.plans import MOST_FIGURE, MOST_PLACES, Circumstances, Places, Positive
from relayd.http.models.questions import QuestionModel
from relayd.sources.wan import Wan

MOST_TASKS = 500
MOST_TIME_LIMIT_S = 20.0
Cpus = Annotated[float, Field(gt=0, le=MOST_FIGURE)]


class ReduceQuestion(Circumstances, Places, QuestionModel):
    """A reduce stage over data of several regions."""

    input_gb: dict[Name, Annotated[float, Field(ge=0, le=MOST_VOLUME_GB)]] = Field(
        min_length=1, max_length=MOST_PLACES, description="Region to GB there, before selectivity."
    )
    selectivity: float = Field(1.0, gt=0, le=MOST_FIGURE, description="GB shuffled for a GB.")
    links: Literal["hose", "heterogeneous"] = Field(
        "hose", description="All limits of VMs as measured, or a capacity of each pair by itself."
    )
    objective: Literal["time", "cost"] = "time"
    budget_usd: Annotated[float, Field(ge=0, le=MOST_FIGURE)] | None = None
    deadline_s: Positive | None = None
    reduce_in: list[Name] = Field(
        [], max_length=MOST_PLACES, description="Regions that may reduce; those with input if none."
    )

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.placement.plan.ReducePlacement`."""
        return wan.place_reduce(self.input_gb, **self.said("input_gb"))


class Task(Asked):
    """A task and the CPUs that it takes."""

    id: Name
    cpus: Cpus = 1.0


class Traffic(Asked):
    """What one task sends another."""

    src: Name
    dst: Name
    volume_gb: float = Field(ge=0, le=MOST_VOLUME_GB)


class Machine(Asked):
    """A VM that tasks can be placed on."""

    id: Name
    region: Name
    cpus: Cpus


class TasksQuestion(QuestionModel):
    """Tasks that exchange volumes, and the VMs to place them on."""

    tasks: list[Task] = Field(min_length=1, max_length=MOST_TASKS)
    traffic: list[Traffic] = Field(min_length=1, max_length=10_000)
    vms: list[Machine] = Field(min_length=1, max_length=MOST_PLACES)
    connections: int = Field(DEFAULT_CONNECTIONS, ge=1, le=MOST_CONNECTIONS)
    vm_types: dict[Name, Name] = Field({}, max_length=MOST_PLACES)
    month_to_date_gb: dict[Name, Annotated[float, Field(ge=0, le=MOST_FIGURE)]] = Field(
        {},
        max_length=MOST_PLACES,
        description="Provider (or `*`) to what it has billed this month, for tiered fees.",
    )
    vm_start_s: float = Field(
        DEFAULT_VM_START_S,
        ge=0,
        le=MOST_FIGURE,
        description="Time that each VM is paid for before anything is sent.",
    )
    time_limit_s: float = Field(
        5.0, ge=0, le=MOST_TIME_LIMIT_S, description="For the exact search; 0 leaves it out."
    )

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.placement.plan.TaskPlacement`."""
        return wan.place_tasks(
            [task.model_dump() for task in self.tasks],
            [(sent.src, sent.dst, sent.volume_gb) for sent in self.traffic],
            [machine.model_dump() for machine in self.vms],
            time_limit_s=self.time_limit_s,
            connections=self.connections,
            month_to_date_gb=self.month_to_date_gb,
            vm_types=self.vm_types,
            vm_start_s=self.vm_start_s,
        )
