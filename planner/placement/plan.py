"""Placements: where to reduce, and on which VM to run which task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.model.answer import Bottleneck, Cost, OneMoreVm, Recommendation
from planner.model.text.blocks import answer_text, bounds_text, figures_text, more_vms_block
from planner.model.text.figures import figure
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import duration_text, usd_text, volume_text
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

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people: where to reduce, and what other choices give."""
        regions, choices = len(self.fractions), self.options
        names = dict.fromkeys(region for option in choices for region in option.fractions)
        rows = [
            (name, *(f"{one.fractions.get(name, 0.0):.1%}" for one in choices)) for name in names
        ]
        rows += [
            (name, *(figure(option, field) for option in choices))
            for name, field in (
                ("promised", "promised_s"),
                ("really takes", "duration_s"),
                ("moved", "moved_gb"),
                ("egress, USD", "cost_usd.egress"),
                ("total, USD", "cost_usd.total"),
            )
        ]
        return answer_text(
            page,
            self,
            f"Reduce in {regions} region{'' if regions == 1 else 's'}.",
            f"{volume_text(self.shuffle_gb)} to shuffle, planned with {self.links} links\n"
            f"{figures_text(self.duration_s, self.cost_usd, self.vms)}",
            page.table(("", *(option.name for option in choices)), rows),
            more_vms_block(page, self.one_more_vm, "{} sooner"),
            vm_start_s=self.vm_start_s,
            sure=bounds_text(self.duration_s_low, self.duration_s_high),
        )

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

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people: what each VM does, and how long."""

        def volume(gb: float, none: str = "-") -> str:
            return volume_text(gb) if gb else none

        cost = self.cost_usd
        return answer_text(
            page,
            self,
            f"All exchanged in {duration_text(self.duration_s)}.",
            "",
            page.table_of(
                self.vms,
                "VM=id | region | CPUs | sends | receives | busy=busy_s | limit | tasks",
                left=True,
                CPUs=lambda vm: f"{vm.cpus_used:g}/{vm.cpus:g}",
                sends=lambda vm: volume(vm.sent_gb),
                receives=lambda vm: volume(vm.received_gb),
            ),
            page.filled(
                f"{volume(self.moved_gb, 'Nothing')} crosses between VMs, "
                f"{volume(self.local_gb, 'nothing')} stays inside one. "
                f"{usd_text(cost.egress)} egress and {usd_text(cost.vm)} VMs."
            ),
            vm_start_s=self.vm_start_s,
        )

    def __repr__(self) -> str:
        """Describe the placement in one line."""
        return (
            f"<TaskPlacement {self.plan_id}: {len(self.assignment)} tasks, "
            f"{self.duration_s:.1f} s, bound {self.bound_s:.1f} s>"
        )
