"""The figures that a broadcast comes down to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.model.errors import DataError, no_path
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import BITS_PER_BYTE
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.shared_vms.fees import LinkFees
from planner.shared_vms.quotas import participants, vms_of
from planner.shared_vms.rates import resources_at_bounds


@dataclass(frozen=True)
class BroadcastProblem:
    """The figures of a broadcast on a network of n sites.

    Attributes
    ----------
    regions : tuple of str, length n
    root : int
        Position of the source.
    terminals : tuple of int
        Positions of the destinations, in the request's order.
    volume_gbit : float
        Of one copy.
    resources : SiteResources
        With the greatest numbers of VMs.
    low, high : SiteResources
        The same at the bounds of the estimates.
    fees : LinkFees
    usd_per_gbit, rtt_ms : arrays, shape (n, n)
        Infinite where there is no link. Fees are those of links where every destination gets its
        copy from the source, or what else a search decides by.
    vm_usd_per_h : array, length n
    most_gbps : array, shape (n, n)
        What one VM pair reaches with as many connections as it may have.
    """

    regions: tuple[str, ...]
    root: int
    terminals: tuple[int, ...]
    volume_gbit: float
    resources: SiteResources
    low: SiteResources
    high: SiteResources
    fees: LinkFees
    usd_per_gbit: Floats
    rtt_ms: Floats
    vm_usd_per_h: Floats
    most_gbps: Floats

    @property
    def most_gbit(self) -> float:
        """What no meter counts more than: one copy into every site."""
        return self.volume_gbit * (len(self.regions) - 1)

    def of_ends(self) -> tuple[BroadcastProblem, list[int]]:
        """Return the problem without relays, and the position here of each site there."""
        sites = sorted([self.root, *self.terminals])
        square = np.ix_(sites, sites)
        problem = BroadcastProblem(
            tuple(self.regions[site] for site in sites),
            sites.index(self.root),
            tuple(sites.index(site) for site in self.terminals),
            self.volume_gbit,
            self.resources.of_sites(sites),
            self.low.of_sites(sites),
            self.high.of_sites(sites),
            self.fees.of_sites(sites),
            self.usd_per_gbit[square],
            self.rtt_ms[square],
            self.vm_usd_per_h[sites],
            self.most_gbps[square],
        )
        return problem, sites


def broadcast_problem(
    request: BroadcastRequest, network: Network, prices: Prices
) -> BroadcastProblem:
    """Return the figures of a broadcast.

    Raises
    ------
    InputError
        If an end is not in the network.
    DataError
        If a destination can't be reached over links whose rates and fees are known.
    InfeasibleError
        If quotas leave an end no VM.
    """
    for name, region in (("src", request.src), *(("dst", r) for r in request.destinations)):
        network.check_region(region, name)
    refuse_without_vms(network, request.ends, request.vms_in)
    regions = participants(request, network, request.ends, relays=request.relays == "any")
    n = len(regions)
    index = {region: i for i, region in enumerate(regions)}
    links: dict[tuple[int, int], Link] = {}
    fees, rtt = LinkFees(prices, regions), np.full((n, n), inf)
    most = np.zeros((n, n))
    for src, i in index.items():
        if request.relays == "none" and src != request.src:
            continue
        for dst, link in network.links.get(src, {}).items():
            j = index.get(dst)
            if j is None or i == j or dst == request.src:
                continue
            if link.rate_gbps(request.connections) <= 0:
                continue
            try:
                fees.add(i, j)
            except DataError:
                continue  # what it would cost is not known, so nothing is sent over it
            rtt[i, j] = link.rtt_ms.expected
            links[i, j] = link
            most[i, j] = link.rate_gbps(PAIR_CONNECTIONS)
    vms = vms_of(request, network, regions)
    everyone = np.ones(n, dtype=bool)
    at = resources_at_bounds(network, regions, links, vms, everyone, request.connections)
    root = index[request.src]
    terminals = tuple(index[r] for r in request.destinations)
    positions = dict(zip(request.destinations, terminals, strict=True))
    _refuse_unreachable(request, root, positions, at["expected"].rate_gbps > 0)
    volume_gbit = request.volume_gb * BITS_PER_BYTE
    star = np.zeros((n, n))
    star[root, list(terminals)] = volume_gbit
    return BroadcastProblem(
        regions,
        root,
        terminals,
        volume_gbit,
        at["expected"],
        at["low"],
        at["high"],
        fees,
        fees.usd_per_gbit(star, missing=inf),
        rtt,
        np.array([prices.vm_usd_per_h(r) for r in regions]),
        most,
    )


def _refuse_unreachable(
    request: BroadcastRequest, root: int, positions: Mapping[str, int], known: np.ndarray
) -> None:
    reached = np.zeros(len(known), dtype=bool)
    reached[root] = True
    for _ in range(len(known)):
        reached |= known[reached].any(axis=0)
    for region, position in positions.items():
        if not reached[position]:
            raise no_path(request.src, region)
