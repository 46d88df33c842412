"""A broadcast's plan: its trees with their shares, the regions that forward, time and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Advice, Bottleneck, Cost, PlanOnVms
from planner.model.estimate import AddressKind
from planner.model.text.blocks import (
    advice_block,
    answer_text,
    bounds_text,
    figures_text,
    ways_table,
)
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import duration_text, usd_text, volume_text
from planner.transfer.plan import MeasureFirst

BroadcastVerdict: TypeAlias = Literal["direct", "tree", "trees"]
SHOWN_TREES = 3
VERDICTS = {
    "direct": "Send each copy direct.",
    "tree": "Forward copies over one tree.",
    "trees": "Forward copies over {} trees at once.",
}
"""In words, with a place for the number of trees."""


@dataclass(frozen=True, slots=True)
class TreeLink:
    """One link of a tree, over which data is sent on as soon as it arrives.

    Attributes
    ----------
    connections : int
        TCP connections, over all VMs: this link's part of what the VMs open.
    address : AddressKind
        Kind of address that it uses.
    """

    src: str
    dst: str
    throughput_gbps: float
    connections: int
    egress_usd_per_gb: float
    address: AddressKind = "public"


@dataclass(frozen=True, slots=True)
class TreePlan:
    """A tree that carries a share of the volume to every destination.

    Attributes
    ----------
    share : float
        Of the volume.
    throughput_gbps : float
        The same on each of its links.
    relays : tuple of str
        Regions that only forward.
    legs : tuple of TreeLink
        Its links, from the source outwards; the JSON contract keeps the older name.
    """

    share: float
    throughput_gbps: float
    relays: tuple[str, ...]
    legs: tuple[TreeLink, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One destination: when it has everything, getting up to speed included."""

    region: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class BroadcastOption:
    """Another way to run the same broadcast.

    Attributes
    ----------
    relays : tuple of str
        Regions that forward to others; empty for direct.
    """

    relays: tuple[str, ...]
    throughput_gbps: float
    duration_s: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class BroadcastPoint:
    """One point of the cost-time frontier."""

    duration_s: float
    cost_usd: Cost
    relays: tuple[str, ...]
    trees: int
    vms: dict[str, int]


@dataclass(frozen=True, slots=True)
class BroadcastPlan(PlanOnVms):
    """A recommendation for one volume to several destinations.

    Attributes
    ----------
    verdict : BroadcastVerdict
        ``direct``: the source sends to each destination; ``tree`` or ``trees``: copies are
        forwarded over one or several trees at once.
    throughput_gbps : float
        At which every destination receives; low and high where links are as slow or as fast as
        their bounds, errors taken independent.
    duration_s : float
        Until the last destination has everything, VM start and getting up to speed included.
    bound_s : float
        No plan on these VMs ends sooner, proven.
    bound_usd : float
        No plan costs less, proven; VMs counted in fractions.
    gap : float
        How far the best plan known (chosen or not) may be above the optimum of the objective, as a
        share of a proven bound. A plan that the margin kept from forwarding is not measured by it.
    connections : dict
        By region, how many TCP connections a VM there needs for these rates.
    direct, best_relay : BroadcastOption | None
        The source sends to each destination; and to one region, which sends to the others. None
        where links are missing or, for the relay, no region may forward.
    optimum : BroadcastOption | None
        The best plan known, where the margin kept from choosing it.
    gain, gain_low, gain_high : float | None
        How many times better than direct the best plan known is in the objective's terms; and in
        90 % of draws of what is not known.
    probability : float | None
        That it is better by the margin.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    vcpus : dict of str to int
        Of all its VMs by region, where their type is known; as a catalogue states them.
    vm_types : dict of str to str
        By region.
    """

    request: dict[str, Any]
    verdict: BroadcastVerdict
    reason: str
    throughput_gbps: float
    throughput_gbps_low: float
    throughput_gbps_high: float
    duration_s: float
    duration_s_low: float
    duration_s_high: float
    bound_s: float
    bound_usd: float
    gap: float
    volume_gb: float
    cost_usd: Cost
    trees: tuple[TreePlan, ...]
    destinations: tuple[Delivery, ...]
    vms: dict[str, int]
    direct: BroadcastOption | None
    best_relay: BroadcastOption | None
    optimum: BroadcastOption | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None = None
    probability: float | None = None
    connections: dict[str, int] = field(default_factory=dict)
    measure_first: tuple[MeasureFirst, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    advice: tuple[Advice, ...] = ()
    confidence: str = ""
    frontier: tuple[BroadcastPoint, ...] = ()
    vm_start_s: float = 0.0
    vcpus: dict[str, int] = field(default_factory=dict)
    vm_types: dict[str, str] = field(default_factory=dict)

    def text(self, page: TextPage = PLAIN, *, trees: bool = False) -> str:
        """Return the text for people: verdict and reason, comparison, trees, what would help."""
        count = len(self.destinations)
        relay = self.best_relay
        ways = [
            ("each copy direct", self.direct),
            (f"all through {relay.relays[0]}" if relay else "all through one region", relay),
            *([("best forwarding", self.optimum)] if self.optimum else []),
            (f"chosen: {self.verdict}", self),
        ]
        figures = figures_text(self.duration_s, self.cost_usd, self.vms, self.vm_types)
        proof = (
            f"No plan ends before {duration_text(self.bound_s)} or costs less than "
            f"{usd_text(self.bound_usd)}; the best plan known is within "
            f"{self.gap:.1%} of the optimum."
        )
        if self.request["relays"] == "none":
            proof = "Without forwarding, there is no other plan."
        bounds = bounds_text(self.duration_s_low, self.duration_s_high)
        return answer_text(
            page,
            self,
            VERDICTS[self.verdict].format(len(self.trees)),
            f"{self.request['src']} to {count} destination{'s' if count > 1 else ''}, "
            f"{volume_text(self.volume_gb)} each\n{figures}",
            ways_table(page, ways),
            _trees(page, self, len(self.trees) if trees else SHOWN_TREES),
            page.table_of(
                self.frontier,
                "frontier=duration_s | $ total=cost_usd.total | trees | VMs=vms | relays",
            ),
            advice_block(page, self.advice),
            vm_start_s=self.vm_start_s,
            sure=f"{self.confidence} {bounds} {proof}",
        )

    def __repr__(self) -> str:
        """Describe the plan in one line."""
        return (
            f"<BroadcastPlan {self.plan_id}: {self.verdict}, "
            f"{len(self.destinations)} destinations, {self.volume_gb:g} GB, "
            f"{self.duration_s:.0f} s, ${self.cost_usd.total:.2f}>"
        )


def _trees(page: TextPage, plan: BroadcastPlan, most: int) -> str:
    tables = []
    for number_, tree in enumerate(plan.trees[:most], 1):
        title = f"tree {number_}, {tree.share:.0%} of the volume" if len(plan.trees) > 1 else "link"
        columns = "=link | Gbit/s=throughput_gbps | connections | $/GB=egress_usd_per_gb"
        tables.append(page.table_of(tree.legs, title + columns))
    if hidden := len(plan.trees[most:]):
        tables.append(f"{hidden} more; --trees lists all.")
    return "\n\n".join(tables)
