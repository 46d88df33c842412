"""The figures of a broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.model.errors import no_path
from planner.model.link_array import rates_gbps
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.shared_vms.connections import Streams
from planner.shared_vms.drawn_times import link_cells
from planner.shared_vms.problem import SharedFigures, participants, shared_figures
from planner.solvers.steiner import Arcs, closure


@dataclass(frozen=True)
class BroadcastProblem(SharedFigures):
    """The figures of a broadcast on a network of n sites."""

    root: int  # position of the source
    terminals: tuple[int, ...]  # positions of the destinations, in the request's order
    volume_gbit: float  # of one copy
    # shape (n, n): infinite where there is no link. Fees if every destination gets its copy from
    # the source, or those that a later search uses
    usd_per_gbit: Floats
    # shape (n, n): rate of one VM pair with the most connections that it may have
    most_gbps: Floats

    @property
    def most_gbit(self) -> float:
        """The most that a meter can count: one copy into every site."""
        return self.volume_gbit * (len(self.regions) - 1)

    @cached_property
    def is_relay(self) -> np.ndarray:
        """True for sites that are neither source nor destination, length n."""
        found = np.ones(len(self.regions), dtype=bool)
        found[[self.root, *self.terminals]] = False
        return found

    def streams(self, trees: Sequence[Arcs], shares: Floats) -> Streams:
        """Return the volume on each link of each of some trees that carry shares."""
        tail, head = np.array([arc for arcs in trees for arc in arcs], dtype=np.int64).T
        gbit = np.repeat(shares * self.volume_gbit, [len(arcs) for arcs in trees])
        return Streams(tail, head, head, gbit)

    def links_gbit(self, streams: Streams) -> Floats:
        """Return the volume on every link, shape (n, n)."""
        links = np.zeros_like(self.rtt_ms)
        np.add.at(links, (streams.src, streams.dst), streams.amount)
        return links

    def ramps_s(self, arcs: Arcs) -> dict[int, float]:
        """Return the time that getting up to speed adds on a tree, by destination."""
        rtt_ms = {self.root: 0.0}
        for tail, head in arcs:
            rtt_ms[head] = rtt_ms[tail] + float(self.rtt_ms[tail, head])
        return {t: ramp_up_s(rtt_ms[t]) for t in self.terminals}

    def depth_s(self, arcs: Arcs) -> float:
        """Return the time that a tree needs to get up to speed."""
        return max(self.ramps_s(arcs).values())


def broadcast_problem(
    request: BroadcastRequest, network: Network, prices: Prices
) -> BroadcastProblem:
    """Return the figures of a broadcast.

    Raises InputError if an end is not in the network; DataError if a destination can't be reached
    over links whose rates and fees are known; InfeasibleError if quotas leave an end no VM.
    """
    for name, region in (("src", request.src), *(("dst", r) for r in request.destinations)):
        network.check_region(region, name)
    refuse_without_vms(network, request.ends, request.vms_in)
    regions = participants(request, network, request.ends)
    n = len(regions)
    root = regions.index(request.src)
    cells, is_root = link_cells(network, regions), np.arange(n) == root
    may_send = is_root | (request.relays != "none")
    usable = may_send[:, None] & ~is_root & (rates_gbps(cells, request.connections) > 0)
    figures = shared_figures(
        request,
        network,
        prices,
        regions,
        may_relay=np.ones(n, dtype=bool),
        usable=usable,
        no_link_ms=inf,
    )
    terminals = tuple(regions.index(r) for r in request.destinations)
    distance = closure(np.where(figures.resources.rate_gbps > 0, 1.0, inf)).distance
    for region, position in zip(request.destinations, terminals, strict=True):
        if distance[root, position] == inf:
            raise no_path(request.src, region)
    volume_gbit, star = request.volume_gb * BITS_PER_BYTE, np.zeros((n, n))
    star[root, list(terminals)] = volume_gbit
    return BroadcastProblem(
        **vars(figures),
        root=root,
        terminals=terminals,
        volume_gbit=volume_gbit,
        usd_per_gbit=figures.fees.usd_per_gbit(star, missing=inf),
        most_gbps=np.where(usable, rates_gbps(cells, PAIR_CONNECTIONS), 0.0),
    )
