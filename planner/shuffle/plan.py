"""A shuffle's plan: how fast each pair sends, over which paths, until when, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Bottleneck, Cost, OneMoreVm, PathShare, PlanOnVms
from planner.model.text.blocks import (
    answer_text,
    bounds_text,
    figures_text,
    more_vms_block,
    path_text,
    ways_table,
)
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import volume_text
from planner.transfer.plan import MeasureFirst

ShuffleVerdict: TypeAlias = Literal["direct", "relayed"]
SHOWN_PAIRS = 8


@dataclass(frozen=True, slots=True)
class ShufflePath(PathShare):
    """One path of a pair and what it carries."""

    egress_usd_per_gb: float


@dataclass(frozen=True, slots=True)
class PairPlan:
    """One demand: the rate to keep to, its paths, and when it ends."""

    src: str
    dst: str
    volume_gb: float
    throughput_gbps: float
    duration_s: float
    paths: tuple[ShufflePath, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Another way to run the same shuffle; None where a pair has no direct link."""

    duration_s: float | None
    cost_usd: Cost | None


@dataclass(frozen=True, slots=True)
class ShufflePoint:
    """One point of the cost-time frontier."""

    duration_s: float
    cost_usd: Cost
    relayed_share: float
    vms: dict[str, int]


@dataclass(frozen=True, slots=True)
class ShufflePlan(PlanOnVms):
    """A recommendation for many transfers that run side by side.

    Attributes
    ----------
    duration_s : float
        Until the last pair ends, VM start and getting up to speed included.
    duration_s_low, duration_s_high : float
        The same where links are as fast or as slow as their bounds, errors taken independent.
    bound_s : float
        No plan on these VMs ends sooner (VM start and getting up to speed apart), proven.
    connections : dict
        By region, how many TCP connections a VM there needs for these rates.
    bound_usd : float
        No plan that meets the deadline has lower egress fees; without a deadline, none at all.
    gain : float | None
        Duration of equal sharing direct over this plan's.
    gain_low, gain_high : float | None
        How many times better this plan is than the best direct rates, in the objective's terms: in
        90 % of draws of what is not known, between these. 1 where nothing is relayed.
    probability : float | None
        That relaying is better by the margin, chosen or not; None where nothing is to be relayed.
    equal_share : Comparison
        All transfers at once, direct, without a plan.
    direct : Comparison
        The best rates without relays.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    vcpus : dict of str to int
        Of all its VMs by region, where their type is known; as a catalogue states them.
    vm_types : dict of str to str
        By region.
    """

    request: dict[str, Any]
    verdict: ShuffleVerdict
    reason: str
    duration_s: float
    duration_s_low: float
    duration_s_high: float
    bound_s: float
    bound_usd: float
    volume_gb: float
    relayed_share: float
    cost_usd: Cost
    pairs: tuple[PairPlan, ...]
    vms: dict[str, int]
    gain: float | None
    gain_low: float | None
    equal_share: Comparison
    direct: Comparison
    gain_high: float | None = None
    probability: float | None = None
    connections: dict[str, int] = field(default_factory=dict)
    measure_first: tuple[MeasureFirst, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    one_more_vm: tuple[OneMoreVm, ...] = ()
    frontier: tuple[ShufflePoint, ...] = ()
    vm_start_s: float = 0.0
    vcpus: dict[str, int] = field(default_factory=dict)
    vm_types: dict[str, str] = field(default_factory=dict)

    def text(self, page: TextPage = PLAIN, *, pairs: bool = False) -> str:
        """Return the text for people: verdict and reason, comparison, pairs, what would help."""
        direct = self.verdict == "direct"
        senders = {pair.src for pair in self.pairs} | {pair.dst for pair in self.pairs}
        ways = [
            ("all at once, direct", self.equal_share),
            ("best direct rates", self.direct),
            (f"chosen: {self.verdict}", self),
        ]
        figures = figures_text(self.duration_s, self.cost_usd, self.vms, self.vm_types)
        return answer_text(
            page,
            self,
            "Send every pair direct, at these rates." if direct else "Relay a part of it.",
            f"{len(self.pairs)} pairs among {len(senders)} regions, {volume_text(self.volume_gb)}\n"
            f"{figures}",
            ways_table(page, ways),
            _pairs(page, self, all_pairs=pairs),
            page.table_of(
                self.frontier,
                "frontier=duration_s | $ total=cost_usd.total | relayed=relayed_share | VMs=vms",
            ),
            more_vms_block(page, self.one_more_vm, "at least {} sooner"),
            vm_start_s=self.vm_start_s,
            sure=bounds_text(self.duration_s_low, self.duration_s_high),
        )

    def __repr__(self) -> str:
        """Describe the plan in one line."""
        return (
            f"<ShufflePlan {self.plan_id}: {self.verdict}, {len(self.pairs)} pairs, "
            f"{self.volume_gb:.0f} GB, {self.duration_s:.0f} s, ${self.cost_usd.total:.2f}>"
        )


def _pairs(page: TextPage, plan: ShufflePlan, *, all_pairs: bool) -> str:
    slowest = sorted(plan.pairs, key=lambda pair: -pair.duration_s)
    shown = plan.pairs if all_pairs else slowest[:SHOWN_PAIRS]
    hidden = len(plan.pairs) - len(shown)

    def paths(pair: PairPlan) -> str:
        several = len(pair.paths) > 1
        shares = (f" {path.share:.0%}" * several for path in pair.paths)
        ways = map(path_text, pair.paths)
        return ", ".join(f"{way}{share}" for way, share in zip(ways, shares, strict=True))

    return page.table_of(
        shown,
        f"{'last pairs' if hidden else 'pair'}=link | volume=volume_gb | Gbit/s=throughput_gbps | "
        "time=duration_s | connections | paths",
        connections=lambda pair: str(sum(path.connections for path in pair.paths)),
        paths=paths,
    ) + (f"\n{hidden:,} more end sooner; --pairs lists all." if hidden else "")
