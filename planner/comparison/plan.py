"""A ranking: candidates in order, with times and costs, and how sure the order is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.model.answer import Cost, Recommendation
from planner.model.estimate import Kind
from planner.model.text.blocks import answer_text, bounds_text
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import volume_text


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate: VMs of a type in a region.

    Attributes
    ----------
    rank : int
        From 1, by the expected figures.
    rank_low, rank_high : int | None
        Range of its rank in 90 % of draws of the unknowns; None where the objective is itself about
        the bounds.
    probability : float | None
        That it is the best.
    duration_s : float
        Until the last region is done, getting up to speed included; low and high with all links
        and VMs as fast or as slow as their bounds.
    throughput_gbps : float
        Of all its links together, meanwhile.
    cost_usd : Cost
        Of the volume for each region, with the VMs at both ends.
    gb_per_usd : float | None
        Volume moved for a dollar; None where nothing is paid.
    rtt_ms, worst_rtt_ms : float
        Mean and greatest over the regions.
    limit : str
        What holds it: ``egress`` or ``ingress`` of its VM, ``connections``, or a link.
    source : Kind
        The least certain that it rests on.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    vms : dict of str to int
        By region.
    """

    rank: int
    region: str
    vm_type: str
    duration_s: float
    duration_s_low: float
    duration_s_high: float
    throughput_gbps: float
    cost_usd: Cost
    gb_per_usd: float | None
    rtt_ms: float
    worst_rtt_ms: float
    limit: str
    source: Kind
    rank_low: int | None
    rank_high: int | None
    probability: float | None
    vm_start_s: float = 0.0
    vms: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BestOfProvider:
    """The best candidate of a provider."""

    provider: str
    region: str
    vm_type: str
    rank: int


@dataclass(frozen=True, slots=True)
class Ranking(Recommendation):
    """Candidates in the order of the objective.

    Attributes
    ----------
    compared : int
        How many there are; `candidates` has the first of them.
    providers : tuple of BestOfProvider
        In the order of their ranks.
    """

    request: dict[str, Any]
    reason: str
    compared: int
    candidates: tuple[Ranked, ...]
    providers: tuple[BestOfProvider, ...]

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people: the best and why, then the others in order."""
        request, best = self.request, self.candidates[0]
        regions, volume = request["regions"], volume_text(request["volume_gb"])
        each = "each of " * (len(regions) > 1)
        columns = (
            "=rank | region | VM type=type | takes=duration_s | Gbit/s=throughput_gbps | "
            "$=cost_usd.total | RTT, ms=rtt_ms:.0f | known by=source"
        )
        if best.probability is not None:
            columns += " | rank=ranks | best=probability:.0%"

        def ranks(one: Ranked) -> str:
            low, high = one.rank_low, one.rank_high
            return f"{low}-{high}" if low != high else str(low)

        candidates = page.table_of(
            self.candidates,
            columns,
            left=True,
            ranks=ranks,
            type=lambda one: one.vm_type.partition(":")[2] or "-",
        )
        providers = ""
        if len(self.providers) > 1:
            named = (f"{one.provider} {one.region} ({one.rank})" for one in self.providers)
            providers = page.filled(
                f"The best of each provider, with its rank: {', '.join(named)}."
            )
        bounds = bounds_text(best.duration_s_low, best.duration_s_high)
        return answer_text(
            page,
            self,
            f"{best.region} ranks first of {self.compared}.",
            f"{volume} {request['direction']} {each}{', '.join(regions)}",
            candidates,
            providers,
            sure=f"{best.region}: limited by {best.limit}. {bounds}",
        )

    def __repr__(self) -> str:
        """Describe the comparison in one line."""
        best = self.candidates[0]
        return f"<Ranking {self.plan_id}: {best.region} is the best of {self.compared}>"
