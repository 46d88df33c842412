"""The figures of a broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.model.errors import no_path
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.shared_vms.problem import SharedFigures, participants, shared_figures


@dataclass(frozen=True)
class BroadcastProblem(SharedFigures):
    """The figures of a broadcast on a network of n sites.

    Attributes
    ----------
    root : int
        Position of the source.
    terminals : tuple of int
        Positions of the destinations, in the request's order.
    volume_gbit : float
        Of one copy.
    usd_per_gbit : array, shape (n, n)
        Infinite where there is no link. Fees if every destination gets its copy from the source,
        or those that a later search uses.
    most_gbps : array, shape (n, n)
        Rate of one VM pair with the most connections that it may have.
    """

    root: int
    terminals: tuple[int, ...]
    volume_gbit: float
    usd_per_gbit: Floats
    most_gbps: Floats

    @property
    def most_gbit(self) -> float:
        """The most that a meter can count: one copy into every site."""
        return self.volume_gbit * (len(self.regions) - 1)

    @property
    def is_relay(self) -> np.ndarray:
        """True for sites that are neither source nor destination, length n."""
        found = np.ones(len(self.regions), dtype=bool)
        found[[self.root, *self.terminals]] = False
        return found


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
    root = regions.index(request.src)
    most = np.zeros((n, n))

    def unusable(src: int, dst: int, link: Link) -> bool:
        may = dst != root and (request.relays != "none" or src == root)
        if not may or link.rate_gbps(request.connections) <= 0:
            return True
        most[src, dst] = link.rate_gbps(PAIR_CONNECTIONS)
        return False

    figures = shared_figures(
        request,
        network,
        prices,
        regions,
        may_relay=np.ones(n, dtype=bool),
        unusable=unusable,
        no_link_ms=inf,
    )
    terminals = tuple(regions.index(r) for r in request.destinations)
    positions = dict(zip(request.destinations, terminals, strict=True))
    _refuse_unreachable(request, root, positions, figures.resources.rate_gbps > 0)
    volume_gbit = request.volume_gb * BITS_PER_BYTE
    star = np.zeros((n, n))
    star[root, list(terminals)] = volume_gbit
    return BroadcastProblem(
        **vars(figures),
        root=root,
        terminals=terminals,
        volume_gbit=volume_gbit,
        usd_per_gbit=figures.fees.usd_per_gbit(star, missing=inf),
        most_gbps=most,
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
