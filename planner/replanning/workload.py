"""What is left of a plan, as plain figures: volumes on links, routes and VMs, and their time.

Transfers, shuffles and broadcasts all come down to volumes on links that share the VMs of their
sites (:mod:`planner.model.shared_resources`), so the same calculation serves an old plan on new
estimates and a new plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, TypeAlias

import numpy as np

from planner.fields.demands import Pair
from planner.model.estimate import BOUNDS
from planner.model.network import Network
from planner.model.pricing import Prices, metered_usd_per_gb
from planner.model.shared_resources import SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.model.vm_limits import PAIR_CONNECTIONS, caps_by_kind, link_gbps

AtBounds: TypeAlias = tuple[float, float, float]
"""Where links are as fast as their bounds, as expected, and as slow."""


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

    links_gb: Mapping[Pair, float]
    routes: frozenset[tuple[str, ...]]
    vms: Mapping[str, int]

    @property
    def regions(self) -> tuple[str, ...]:
        """All regions that take part."""
        ends = [region for link in self.links_gb for region in link]
        return tuple(dict.fromkeys([*ends, *self.vms]))

    def transfer_s(
        self, network: Network, connections: int, pair_connections: int = PAIR_CONNECTIONS
    ) -> AtBounds:
        """Return the time that the VMs need for what is left.

        Parameters
        ----------
        connections, pair_connections : int
            Of a VM, in all; and of a VM to one other, at most.
        """
        index = {region: i for i, region in enumerate(self.regions)}
        n = len(index)
        links = np.zeros((n, n))
        rates = {bound: (np.zeros((n, n)), np.zeros((n, n))) for bound in BOUNDS}
        for (src, dst), gb in self.links_gb.items():
            if gb <= 0:
                continue
            at, link = (index[src], index[dst]), network.link(src, dst)
            links[at] = gb * BITS_PER_BYTE
            for bound, (pair, whole) in rates.items():
                pair[at], whole[at] = link_gbps(link, connections, bound, pair_connections)
        vms = np.array([float(max(1, self.vms.get(region, 1))) for region in index])
        caps = {bound: caps_by_kind(network, list(index), bound) for bound in BOUNDS}
        low, expected, high = (
            SiteResources(
                *rates[bound], *caps[bound][:2], vms, np.ones(n, dtype=bool), None, *caps[bound][2:]
            )
            for bound in BOUNDS
        )
        if (expected.rate_gbps[links > 0] <= 0).any():
            return inf, inf, inf
        fast_s, slow_s = expected.bounds_s(links, vms, low, high)
        time_s = expected.time_s(links)
        return min(fast_s, time_s), time_s, max(slow_s, time_s)

    def ramp_up_s(self, network: Network, known: frozenset[tuple[str, ...]] = frozenset()) -> float:
        """Return what getting up to speed takes on routes that are not known yet."""
        rtts_ms = [
            sum(network.link(a, b).rtt_ms.expected for a, b in pairwise(route))
            for route in self.routes - known
        ]
        return ramp_up_s(max(rtts_ms, default=0.0))

    def egress_usd(self, prices: Prices) -> float:
        """Return the fees of what is left."""
        left_gb = {link: gb for link, gb in self.links_gb.items() if gb > 0}
        usd_per_gb = metered_usd_per_gb(prices, left_gb)
        return sum(gb * usd_per_gb[link] for link, gb in left_gb.items())

    def vm_usd_per_h(self, prices: Prices) -> float:
        """Return what its VMs cost an hour together."""
        return sum(n * prices.vm_usd_per_h(region) for region, n in self.vms.items())

    def is_like(self, other: Workload) -> bool:
        """Whether another does the same with the same VMs, to a thousandth of a link."""
        most = max(other.links_gb.values())
        return dict(self.vms) == dict(other.vms) and all(
            abs(self.links_gb.get(link, 0.0) - other.links_gb.get(link, 0.0)) <= 1e-3 * most
            for link in {*self.links_gb, *other.links_gb}
        )


def workload_of(plan: Mapping[str, Any], left_gb: float | Mapping[Pair, float]) -> Workload:
    """Return what a plan does with what is left: the same shares of its paths or trees.

    Parameters
    ----------
    plan : mapping
        Of a transfer, a shuffle or a broadcast, as :meth:`Answer.model_dump` gives it.
    left_gb : float or mapping
        What every destination lacks; of a shuffle, what each pair does.
    """
    by_pair = left_gb if isinstance(left_gb, Mapping) else {}
    whole_gb = 0.0 if isinstance(left_gb, Mapping) else left_gb
    paths = [(path["regions"], path["share"], whole_gb) for path in plan.get("paths") or ()]
    for pair in plan.get("pairs") or ():
        gb = by_pair.get((pair["src"], pair["dst"]), 0.0)
        paths += [(path["regions"], path["share"], gb) for path in pair["paths"] if gb > 0]
    links_gb: dict[Pair, float] = defaultdict(float)
    routes = {tuple(regions) for regions, *_ in paths}
    for regions, share, gb in paths:
        for link in pairwise(regions):
            links_gb[link] += gb * share
    for tree in plan.get("trees") or ():
        reached: dict[str, tuple[str, ...]] = {}
        for link in tree["legs"]:
            before = reached.setdefault(link["src"], (link["src"],))
            reached[link["dst"]] = (*before, link["dst"])
            links_gb[link["src"], link["dst"]] += whole_gb * tree["share"]
        routes |= {route for route in reached.values() if len(route) > 1}
    return Workload(dict(links_gb), frozenset(routes), dict(plan["vms"]))
