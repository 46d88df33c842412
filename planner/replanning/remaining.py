"""What is left of a plan, as plain figures: volumes on links, routes and VMs, and their time.

Transfers, shuffles and broadcasts all come down to volumes on links that share the VMs of their
sites (:mod:`planner.model.shared_resources`), so the same calculation serves an old plan on new
estimates and a new plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt
from typing import Any, NamedTuple

from planner.model.estimate import Bound
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE

LinkVolumes = Mapping[tuple[str, str], float]


class TimeBounds(NamedTuple):
    """A time where links are at their high bounds, as expected, and at their low bounds."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True)
class Workload:
    """What is left to move, and how.

    Attributes
    ----------
    links_gb : mapping
        Source and destination of a link to the volume that it still carries.
    routes : frozenset of tuples of str
        The regions of each path, or of each branch of a tree from its root.
    vms : mapping
        Region to number of VMs.
    """

    links_gb: LinkVolumes
    routes: frozenset[tuple[str, ...]]
    vms: Mapping[str, int]

    @property
    def regions(self) -> tuple[str, ...]:
        """All regions that take part."""
        ends = [region for link in self.links_gb for region in link]
        return tuple(dict.fromkeys([*ends, *self.vms]))

    def transfer_s(self, network: Network, connections: int) -> TimeBounds:
        """Return the time that the VMs need for what is left.

        Errors of links are independent, as in
        :meth:`planner.model.shared_resources.SiteResources.bounds_s`.
        """
        loads: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        volumes: dict[tuple[str, str], float] = {}
        for (src, dst), gb in self.links_gb.items():
            link, gbit = network.link(src, dst), gb * BITS_PER_BYTE
            if gbit <= 0:
                continue
            needs = tuple(
                gbit / rate if (rate := link.rate_gbps(connections, bound)) > 0 else inf
                for bound in _BOUNDS
            )
            for row in ((src, "egress_gbps"), (dst, "ingress_gbps")):
                loads.setdefault(row, []).append((needs[0], needs[1], needs[2]))
                volumes[row] = volumes.get(row, 0.0) + gbit
        times = [0.0, 0.0, 0.0]
        for (region, cap), needs_of in loads.items():
            vms = max(1, self.vms.get(region, 1))
            expected = sum(need[1] for need in needs_of)
            for k, sign in ((0, -1.0), (1, 0.0), (2, 1.0)):
                error = sqrt(sum((need[k] - need[1]) ** 2 for need in needs_of))
                estimate = getattr(network.sites[region], cap)
                cap_gbps: float = getattr(estimate, _BOUNDS[k])
                load = expected + sign * error if k != 1 else expected
                least = volumes[region, cap] / cap_gbps if cap_gbps > 0 else inf
                times[k] = max(times[k], load / vms, least / vms)
        return TimeBounds(min(times[0], times[1]), times[1], max(times[2], times[1]))

    def ramp_up_s(self, network: Network, known: frozenset[tuple[str, ...]] = frozenset()) -> float:
        """Return what getting up to speed takes on routes that are not known yet."""
        fresh = [
            sum(network.link(a, b).rtt_ms.expected for a, b in pairwise(route))
            for route in self.routes - known
        ]
        return ramp_up_s(max(fresh, default=0.0))

    def egress_usd(self, prices: Prices) -> float:
        """Return the fees of what is left."""
        return sum(
            gb * prices.egress_usd_per_gb(src, dst, gb)
            for (src, dst), gb in self.links_gb.items()
            if gb > 0
        )

    def vm_usd_per_h(self, prices: Prices) -> float:
        """Return what its VMs cost an hour together."""
        return sum(n * prices.vm_usd_per_h(region) for region, n in self.vms.items())


_BOUNDS: tuple[Bound, Bound, Bound] = ("high", "expected", "low")


def workload_of_transfer(plan: Mapping[str, Any], left_gb: float) -> Workload:
    """Return what a transfer's plan does with what is left: the same shares of paths."""
    links: dict[tuple[str, str], float] = {}
    for path in plan["paths"]:
        _add(links, path["regions"], left_gb * path["share"])
    return _course(links, [path["regions"] for path in plan["paths"]], plan["vms"])


def workload_of_shuffle(
    plan: Mapping[str, Any], left_gb: Mapping[tuple[str, str], float]
) -> Workload:
    """Return what a shuffle's plan does with what is left of each pair."""
    links: dict[tuple[str, str], float] = {}
    routes = []
    for pair in plan["pairs"]:
        if (gb := left_gb.get((pair["src"], pair["dst"]), 0.0)) > 0:
            for path in pair["paths"]:
                _add(links, path["regions"], gb * path["share"])
                routes.append(path["regions"])
    return _course(links, routes, plan["vms"])


def workload_of_broadcast(plan: Mapping[str, Any], left_gb: float) -> Workload:
    """Return what a broadcast's plan does with what is left: the same shares of trees."""
    links: dict[tuple[str, str], float] = {}
    routes = []
    for tree in plan["trees"]:
        reached: dict[str, tuple[str, ...]] = {}
        for link in tree["legs"]:
            before = reached.setdefault(link["src"], (link["src"],))
            reached[link["dst"]] = (*before, link["dst"])
            _add(links, (link["src"], link["dst"]), left_gb * tree["share"])
        routes += [route for route in reached.values() if len(route) > 1]
    return _course(links, routes, plan["vms"])


def _add(links: dict[tuple[str, str], float], regions: Any, gb: float) -> None:
    for link in pairwise(regions):
        links[link] = links.get(link, 0.0) + gb


def _course(links: LinkVolumes, routes: Any, vms: Mapping[str, int]) -> Workload:
    return Workload(links, frozenset(tuple(route) for route in routes), dict(vms))
