"""Where to reduce, and where to run tasks, as questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

from planner.model.errors import InputError
from planner.transfer.request import DEFAULT_CONNECTIONS, DEFAULT_VM_START_S, MOST_VOLUME_GB

Links: TypeAlias = Literal["hose", "heterogeneous"]
LINKS: tuple[Links, ...] = ("hose", "heterogeneous")
PlacementObjective: TypeAlias = Literal["time", "cost"]
PLACEMENT_OBJECTIVES: tuple[PlacementObjective, ...] = ("time", "cost")

DEFAULT_TIME_LIMIT_S = 10.0
MOST_TASKS = 2000


@dataclass(frozen=True, slots=True)
class ReduceRequest:
    """A reduce stage over data of several regions; checked when made.

    Attributes
    ----------
    input_gb : mapping
        Region to GB there, before selectivity.
    selectivity : float
        GB that are shuffled for each GB of input.
    links : Links
        What is taken to limit transfers: ``hose``, all limits of VMs as measured;
        ``heterogeneous``, a capacity of each pair of regions by itself.
    objective : PlacementObjective
        ``time``: the shuffle ends as soon as possible; ``cost``: least egress fees.
    budget_usd : float | None
        Most to spend on egress fees.
    deadline_s : float | None
        Latest end of the shuffle.
    reduce_in : tuple of str
        Regions that may reduce; those with input if empty.
    vms, vms_in, connections, vm_start_s
        See :class:`planner.shuffle.request.ShuffleRequest`.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    input_gb: Mapping[str, float]
    selectivity: float = 1.0
    links: Links = "hose"
    objective: PlacementObjective = "time"
    budget_usd: float | None = None
    deadline_s: float | None = None
    reduce_in: tuple[str, ...] = ()
    vms: int = 1
    vms_in: Mapping[str, int] = field(default_factory=dict)
    connections: int = DEFAULT_CONNECTIONS
    vm_start_s: float = DEFAULT_VM_START_S

    def __post_init__(self) -> None:
        if self.links not in LINKS:
            raise InputError("links", f"must be {' or '.join(LINKS)}", value=self.links)
        if self.objective not in PLACEMENT_OBJECTIVES:
            raise InputError("objective", "must be time or cost", value=self.objective)
        for region, volume in self.input_gb.items():
            if not 0 <= volume <= MOST_VOLUME_GB:
                raise InputError(
                    f"input of {region}", f"must be from 0 to {MOST_VOLUME_GB:g} GB", value=volume
                )
        if not sum(self.input_gb.values()) > 0:
            raise InputError("input", "has nothing to reduce")
        if not (isfinite(self.selectivity) and self.selectivity > 0):
            raise InputError("selectivity", "must be above 0", value=self.selectivity)
        if self.budget_usd is not None and not 0 <= self.budget_usd < inf:
            raise InputError("budget", "must be 0 USD or more", value=self.budget_usd)
        if self.deadline_s is not None and not 0 < self.deadline_s < inf:
            raise InputError("deadline", "must be a finite time above 0", value=self.deadline_s)

    @property
    def shuffle_gb(self) -> dict[str, float]:
        """What each region has for the reduce stage."""
        return {r: gb * self.selectivity for r, gb in self.input_gb.items()}

    def described(self) -> dict[str, Any]:
        """Return what was asked, as plain values."""
        return {
            "input_gb": dict(self.input_gb),
            "selectivity": self.selectivity,
            "links": self.links,
            "objective": self.objective,
            "budget_usd": self.budget_usd,
            "deadline_s": self.deadline_s,
            "reduce_in": list(self.reduce_in),
            "vms": self.vms,
            "vms_in": dict(self.vms_in),
            "connections": self.connections,
            "vm_start_s": self.vm_start_s,
        }


@dataclass(frozen=True, slots=True)
class Machine:
    """One VM that tasks can be placed on."""

    id: str
    region: str
    cpus: float


@dataclass(frozen=True, slots=True)
class TasksRequest:
    """Tasks that exchange volumes, and the VMs to place them on; checked when made.

    Attributes
    ----------
    tasks : mapping
        Task to the CPUs that it takes.
    traffic_gb : mapping
        Source and destination task to GB.
    machines : tuple of Machine
    connections : int
        TCP connections that one VM opens, over all its transfers.
    time_limit_s : float
        For the exact search; 0 leaves it out.
    vm_start_s : float
        Time that each VM is paid for before the transfers begin.

    Raises
    ------
    InputError
        If a name is unknown or given twice, or a figure is out of range.
    """

    tasks: Mapping[str, float]
    traffic_gb: Mapping[tuple[str, str], float]
    machines: tuple[Machine, ...]
    connections: int = DEFAULT_CONNECTIONS
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    vm_start_s: float = DEFAULT_VM_START_S

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError("tasks", "are none")
        if len(self.tasks) > MOST_TASKS:
            raise InputError("tasks", f"are more than {MOST_TASKS}", value=len(self.tasks))
        for task, cpus in self.tasks.items():
            if not 0 < cpus < inf:
                raise InputError(f"task {task}, cpus", "must be above 0", value=cpus)
        if not self.machines:
            raise InputError("vms", "are none")
        seen: set[str] = set()
        for machine in self.machines:
            if machine.id in seen:
                raise InputError("vms", "have an id twice", value=machine.id)
            seen.add(machine.id)
            if not 0 < machine.cpus < inf:
                raise InputError(f"vm {machine.id}, cpus", "must be above 0", value=machine.cpus)
        for (src, dst), volume in self.traffic_gb.items():
            for task in (src, dst):
                if task not in self.tasks:
                    raise InputError(
                        "traffic", "names a task that is not among the tasks", value=task
                    )
            if not 0 <= volume <= MOST_VOLUME_GB:
                raise InputError(
                    f"traffic {src} -> {dst}",
                    f"must be from 0 to {MOST_VOLUME_GB:g} GB",
                    value=volume,
                )
        if not 0 <= self.time_limit_s <= 3600:
            raise InputError("time_limit", "must be from 0 s to an hour", value=self.time_limit_s)

    def described(self) -> dict[str, Any]:
        """Return what was asked, as plain values."""
        return {
            "tasks": dict(self.tasks),
            "traffic": [
                {"src": src, "dst": dst, "volume_gb": gb}
                for (src, dst), gb in self.traffic_gb.items()
            ],
            "vms": [{"id": m.id, "region": m.region, "cpus": m.cpus} for m in self.machines],
            "connections": self.connections,
            "time_limit_s": self.time_limit_s,
            "vm_start_s": self.vm_start_s,
        }
