"""What a plan fills: the caps of VMs and the links whose limit its rates reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from planner.model.network import Network
from probes.verification.predictions import PathPrediction, PlanPrediction, RateRange

LimitKind: TypeAlias = Literal["egress cap", "ingress cap", "link"]
Limit: TypeAlias = tuple[LimitKind, tuple[str, ...]]
"""A kind, and the region or the two regions of a link."""

FULL_SHARE = 0.97
"""A plan fills what it uses more of than this."""


@dataclass(frozen=True, slots=True)
class FullLimit:
    """A limit that a plan fills, and what is known of it.

    Attributes
    ----------
    kind : {"egress cap", "ingress cap", "link"}
        Of all VMs of a region; or of a link with as many connections as it takes.
    regions : tuple of str
        One, or the two ends of the link.
    rate : RateRange
    """

    kind: LimitKind
    regions: tuple[str, ...]
    rate: RateRange


def limits_of(path: PathPrediction) -> Iterator[Limit]:
    """Yield what a path takes a part of."""
    for src, dst in pairwise(path.regions):
        yield "egress cap", (src,)
        yield "ingress cap", (dst,)
        yield "link", (src, dst)


def filled_by(plan: PlanPrediction, network: Network) -> tuple[FullLimit, ...]:
    """Return the limits that a plan fills, by the estimates of a network."""
    used_gbps: dict[Limit, float] = defaultdict(float)
    for path in plan.paths:
        for limit in limits_of(path):
            used_gbps[limit] += path.rate.expected_gbps
    found = []
    for (kind, regions), gbps in used_gbps.items():
        site = network.sites[regions[0]]
        of_one_vm = (
            network.link(*regions).aggregate_gbps
            if kind == "link"
            else site.egress_gbps
            if kind == "egress cap"
            else site.ingress_gbps
        )
        rate = RateRange(of_one_vm.low, of_one_vm.expected, of_one_vm.high)
        rate = rate.scaled(min(plan.vms[region] for region in regions))
        if gbps >= FULL_SHARE * rate.expected_gbps:
            found.append(FullLimit(kind, regions, rate))
    return tuple(found)
