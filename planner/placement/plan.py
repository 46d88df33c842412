"""Placements: where to reduce, and on which VM to run which task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.model.answer import Bottleneck, Cost, OneMoreVm, Recommendation
from planner.placement.request import Links


@dataclass(frozen=True, slots=True)
class ReduceOption:
    """One way to spread a reduce stage.

    Attributes
    ----------
    name : str
        ``hose``, ``heterogeneous``, ``where the data is``, ``equal``, or ``one region``.
    fractions : dict
        Region to the part of the keys that it reduces.
    promised_s : float
        When the shuffle ends by the option's own assumption.
    duration_s : float
        When it ends under all measured limits of VMs, VM start and ramp-up included.
    moved_gb : float
        Volume between regions.
    """

    name: str
    fractions: dict[str, float]
    promised_s: float
    duration_s: float
    moved_gb: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class ReducePlacement(Recommendation):
    """The fractions of a reduce stage for each region.

    Attributes
    ----------
    links : Links
        The assumption that it rests on.
    promised_s, duration_s
        As for an option; with ``links="hose"`` the promise is the duration.
    duration_s_low, duration_s_high : float
        The duration where all links and caps are at their high or low bounds.
    connections : dict
        By region, how many TCP connections a VM there needs.
    options : tuple of ReduceOption
        Side by side: both assumptions, and the usual choices without a plan.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    """

    request: dict[str, Any]
    reason: str
    links: Links
    fractions: dict[str, float]
    promised_s: float
    duration_s: float
    duration_s_low: float
    duration_s_high: float
    moved_gb: float
    shuffle_gb: float
    cost_usd: Cost
    vms: dict[str, int]
    options: tuple[ReduceOption, ...]
    connections: dict[str, int] = field(default_factory=dict)
    bottlenecks: tuple[Bottleneck, ...] = ()
    one_more_vm: tuple[OneMoreVm, ...] = ()
    vm_start_s: float = 0.0

    def __repr__(self) -> str:
        """Describe the placement in one line."""
        return (
            f"<ReducePlacement {self.plan_id}: {self.links}, {len(self.fractions)} regions, "
            f"{self.duration_s:.0f} s, ${self.cost_usd.total:.2f}>"
        )


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The tasks and the traffic of one VM.

    Attributes
    ----------
    busy_s : float
        Time that its fullest limit alone needs.
    limit : str
        That limit.
    connections : int
        TCP connections that it needs.
    """

    id: str
    region: str
    tasks: tuple[str, ...]
    cpus_used: float
    cpus: float
    sent_gb: float
    received_gb: float
    busy_s: float
    limit: str
    connections: int = 0


@dataclass(frozen=True, slots=True)
class TaskPlacement(Recommendation):
    """A VM for each task.

    Attributes
    ----------
    assignment : dict
        Task to VM.
    duration_s : float
        Until all volumes are exchanged, VM start and getting up to speed included.
    bound_s : float
        No assignment is quicker, VM start and getting up to speed apart; proven.
    proven : bool
        Whether none is quicker than this one.
    greedy_s : float | None
        Time by the greedy rule alone; None where it finds no place for a task.
    moved_gb, local_gb : float
        Volume between VMs, and volume that stays inside one.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    """

    request: dict[str, Any]
    reason: str
    assignment: dict[str, str]
    duration_s: float
    bound_s: float
    proven: bool
    greedy_s: float | None
    moved_gb: float
    local_gb: float
    cost_usd: Cost
    vms: tuple[MachineLoad, ...]
    vm_start_s: float = 0.0

    def __repr__(self) -> str:
        """Describe the placement in one line."""
        return (
            f"<TaskPlacement {self.plan_id}: {len(self.assignment)} tasks, "
            f"{self.duration_s:.1f} s, bound {self.bound_s:.1f} s>"
        )
