"""The figures that a shuffle comes down to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.model.errors import DataError, no_path
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import BITS_PER_BYTE
from planner.shared_vms.fees import LinkFees
from planner.shared_vms.quotas import participants, vms_of
from planner.shared_vms.rates import resources_at_bounds
from planner.shuffle.request import ShuffleRequest


@dataclass(frozen=True)
class ShuffleProblem:
    """The figures of a shuffle on a network.

    Attributes
    ----------
    regions : tuple of str, length n
    ends : array of bool, length n
    fees : LinkFees
    demands_gbit, usd_per_gbit, rtt_ms : arrays, shape (n, n)
        Fees are those of links where all goes direct.
    low, high : SiteResources
        The resources at the bounds of the estimates.
    vm_usd_per_h : array, length n
    """

    regions: tuple[str, ...]
    ends: np.ndarray
    resources: SiteResources
    low: SiteResources
    high: SiteResources
    fees: LinkFees
    demands_gbit: Floats
    usd_per_gbit: Floats
    rtt_ms: Floats
    vm_usd_per_h: Floats

    @property
    def most_gbit(self) -> float:
        """What no meter counts more than: the whole volume, once on each link of a path."""
        return 2.0 * float(self.demands_gbit.sum())


def shuffle_problem(request: ShuffleRequest, network: Network, prices: Prices) -> ShuffleProblem:
    """Return the figures of a shuffle.

    Raises
    ------
    InputError
        If an end is not in the network.
    DataError
        If nothing is known of any permitted path of a pair, or no fee of its direct link.
    InfeasibleError
        If quotas leave an end no VM.
    """
    for region in request.ends:
        network.check_region(region, "demands", names="name a region that")
    refuse_without_vms(network, request.ends, request.vms_in)
    ends, may_relay = set(request.ends), request.relays == "any"
    # Nothing else takes part, so nothing else is looked at.
    regions = participants(request, network, ends, relays=may_relay)
    n = len(regions)
    index = {region: i for i, region in enumerate(regions)}
    demands = np.zeros((n, n))
    for (src, dst), volume_gb in request.demands_gb.items():
        demands[index[src], index[dst]] = volume_gb * BITS_PER_BYTE
    links: dict[tuple[int, int], Link] = {}
    rtt = np.zeros((n, n))
    fees = LinkFees(prices, regions)
    for src, i in index.items():
        for dst, link in network.links.get(src, {}).items():
            j = index.get(dst)
            if j is None or i == j:
                continue
            try:
                fees.add(i, j)
            except DataError:
                if demands[i, j]:
                    raise
                continue  # what it would cost is not known, so nothing is relayed over it
            rtt[i, j] = link.rtt_ms.expected
            links[i, j] = link
    vms = vms_of(request, network, regions)
    relays = np.array([may_relay and r not in request.forbidden for r in regions])
    at = resources_at_bounds(network, regions, links, vms, relays, request.connections)
    _refuse_unreachable(request, index, at["expected"].rate_gbps, relays)
    return ShuffleProblem(
        regions,
        np.array([r in ends for r in regions]),
        at["expected"],
        at["low"],
        at["high"],
        fees,
        demands,
        fees.usd_per_gbit(demands),
        rtt,
        np.array([prices.vm_usd_per_h(r) for r in regions]),
    )


def _refuse_unreachable(
    request: ShuffleRequest, index: Mapping[str, int], rate_gbps: Floats, relays: np.ndarray
) -> None:
    known = rate_gbps > 0
    one_hop = (known[:, relays].astype(float) @ known[relays].astype(float)) > 0
    for src, dst in request.demands_gb:
        i, j = index[src], index[dst]
        if not (known[i, j] or one_hop[i, j]):
            raise no_path(src, dst)
