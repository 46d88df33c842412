"""A ranking: candidates in order, with times and costs, and how sure the order is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.model.answer import Cost, Recommendation
from planner.model.estimate import Kind


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

    def __repr__(self) -> str:
        """Describe the comparison in one line."""
        best = self.candidates[0]
        return f"<Ranking {self.plan_id}: {best.region} is the best of {self.compared}>"
