"""One transfer as a problem: plain figures, made from a request and a network.

For a source s, a destination d and relays r, with flows ``x_p`` in Gbit/s on the direct path and
on each relay path, and integer numbers of VMs ``n``::

    sum_p x_p = R                                        the rate
    R <= E_s n_s,   R <= I_d n_d                         VM caps at the ends
    sum_p x_p / (K f_p) <= n_s                           connections that the source opens
    x_sd <= P_sd n_s,   x_sd <= Q_sd n_d                 limits of the direct path
    x_r <= P_sr n_s,   x_r <= Q_rd n_d                   limits of a relay's links
    x_r <= u_r n_r,   u_r = min(Q_sr, P_rd, I_r, E_r)    what one relay VM forwards
    0 <= n_v <= N_v                                      quotas

    cost = D sum_p (x_p / R) fee_p + (sum_v n_v price_v + h) (T + t_lead),    T = 8 D / R

t_lead is the time until VMs have started and the slowest path is up to speed, h are fees by the
hour, of what is used at all (NAT gateways, interconnects).

K is the number of connections that one VM opens. Accepting them costs nothing, so that there is no
such row where they end. f is the rate of one connection. A relay that splits TCP opens as many on
its second link as it accepted on its first, so that the slower of both counts: ``f_p`` is the least
of a path. P and Q are what a link allows each VM that sends over it, and each that receives:
``P <= K f_p``, and the measured rate of one VM pair where its path ends there. The cap of a VM that
made that rate holds this VM alone, and has a row of its own: several VMs may fill one receiver
(:func:`planner.model.link_array.held_ends`).

A VM may send more over private addresses than over public ones. Where paths of both kinds leave it,
E is the higher cap, and ``min(K f, E_public)`` is in place of ``K f`` on links over public
addresses, which keeps their sum within ``E_public n``. It is on the safe side: that row counts the
connections over private addresses, too. What enters a VM has a row of this kind for caps alone.

:mod:`planner.transfer.optimum` solves it; `tests/planner/independent.py` states it for another
solver, to test against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from planner.model.link_array import Ints, Records
from planner.model.network import Network
from planner.model.pricing import (
    Prices,
    has_fees,
    hourly_usd,
    least_connections,
    link_gbps,
    relayed_usd_per_gb,
    vm_prices_usd_per_h,
)
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.transfer.request import TransferRequest

MOST_PATHS, LEAST_PART = 3, 0.05
"""Paths that a person runs at a time, and the part of the rate for which one is worth running."""


# Not frozen, nor are the next: a plan makes many, and freezing triples the time of that.
@dataclass(slots=True)
class End:
    """The source or the destination.

    Attributes
    ----------
    cap_gbps : float
        One VM's egress cap (source) or ingress cap (destination).
    vm_usd_per_h : float
    quota : int
        Greatest number of VMs.
    """

    cap_gbps: float
    vm_usd_per_h: float
    quota: int


@dataclass(slots=True)
class TransferPath:
    """A path through one relay, or the direct one.

    Attributes
    ----------
    region : int | None
        Position of the relay, which breaks ties; None for the direct path.
    in_gbps, out_gbps : float
        What the first link allows a VM of the source (``P``), and the last one of the destination
        (``Q``).
    vm_gbps : float
        What one relay VM forwards: the least of both links and the VM's caps. Of the direct path,
        what its link carries in all, or its sites' connections.
    usd_per_gb : float
        Egress fees of all links together.
    vm_usd_per_h, quota
        Of the relay's VMs.
    in_connections_gbps, out_connections_gbps : float
        What one VM of the source, and of the destination, would carry if all its flows took this
        path and nothing but connections limited them (``K f``): at least `in_gbps` and `out_gbps`.
    usd_per_h : float
        Fees besides those of all transfers between the ends, once if it is used.
    """

    region: int | None
    in_gbps: float
    out_gbps: float
    vm_gbps: float
    usd_per_gb: float
    vm_usd_per_h: float
    quota: int
    in_connections_gbps: float = inf
    out_connections_gbps: float = inf
    usd_per_h: float = 0.0

    def most_gbps(self, src_vms: int, dst_vms: int) -> float:
        """Return its greatest rate with these VMs at the ends and all of the relay."""
        return min(self.in_gbps * src_vms, self.out_gbps * dst_vms, self.vm_gbps * self.quota)


PATH = np.dtype(
    [
        (name, np.int64 if name in {"region", "quota"} else np.float64)
        for name in TransferPath.__match_args__
    ]
)
_figures_of = attrgetter(*PATH.names or ())


class Relays(Sequence[TransferPath]):
    """Paths through one relay each: `rows` is an array of :data:`PATH`.

    It is never written to again, and neither are the paths, which are made once.
    """

    def __init__(self, rows: Records) -> None:
        self.rows = rows

    @classmethod
    def of(cls, paths: Iterable[TransferPath]) -> Relays:
        """Return the same paths as an array."""
        if isinstance(paths, Relays):
            return paths
        return cls(np.array([_figures_of(path) for path in paths], PATH))

    @cached_property
    def _all(self) -> list[TransferPath]:
        return [TransferPath(*figures) for figures in self.rows.tolist()]

    def __getitem__(self, at: Any) -> Any:
        # Of many relays, most plans look at a few.
        return self._all[at] if isinstance(at, slice) else TransferPath(*self.rows[at].item())

    def __iter__(self) -> Iterator[TransferPath]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self.rows)


NO_RELAYS = Relays.of(())


@dataclass(slots=True)
class TransferProblem:
    """Everything that one transfer's plan depends on.

    Attributes
    ----------
    direct : TransferPath | None
        None where there is no direct link or it is not allowed.
    lead_s : float
        Time that each VM is paid for besides moving: until all have started and the slowest path
        that may be used is up to speed.
    most_paths : float
        Number of paths that a plan may use: each is one more thing to run.
    least_part : float
        Of the rate: what each of its paths carries at least.
    usd_per_h : float
        Fees of both ends and the link between them, whatever the VMs.
    """

    volume_gb: float
    src: End
    dst: End
    direct: TransferPath | None
    relays: Relays
    lead_s: float = 0.0
    most_paths: float = inf
    least_part: float = 0.0
    usd_per_h: float = 0.0

    @property
    def gbps_h(self) -> float:
        """Duration in hours at 1 Gbit/s."""
        return BITS_PER_BYTE * self.volume_gb / S_PER_H

    @property
    def paths(self) -> list[TransferPath]:
        """The direct path, if there is one, and those through relays."""
        return [self.direct, *self.relays] if self.direct else [*self.relays]

    @property
    def regions(self) -> list[int | None]:
        """Positions of the relays, and None for the direct path."""
        return [*([None] if self.direct else []), *self.relays.rows["region"].tolist()]

    def over(self, paths: Sequence[TransferPath]) -> TransferProblem:
        """Return the same over other paths."""
        direct = next((path for path in paths if path.region is None), None)
        relays = Relays.of(path for path in paths if path.region is not None)
        return replace(self, direct=direct, relays=relays)

    def at_fees(self, usd_per_gb: Mapping[int | None, float]) -> TransferProblem:
        """Return the same with other egress fees of some paths, None being direct."""
        rows, direct = self.relays.rows.copy(), self.direct
        for region, fee in usd_per_gb.items():
            if region is not None:
                rows["usd_per_gb"][rows["region"] == region] = fee
            elif direct:
                direct = replace(direct, usd_per_gb=fee)
        return replace(self, direct=direct, relays=Relays(rows))

    def with_connections(self, times: float) -> TransferProblem:
        """Return the same with so many times the connections at the source."""
        rows, direct = self.relays.rows.copy(), self.direct
        rows["in_connections_gbps"] *= times
        if direct:
            direct = replace(direct, in_connections_gbps=direct.in_connections_gbps * times)
        return replace(self, direct=direct, relays=Relays(rows))


def quotas_may_bind(request: TransferRequest, network: Network) -> bool:
    """Return whether some quota allows fewer VMs than a plan may otherwise use."""
    most = request.vms or request.vm_limits.unasked
    return any(
        site.quotas and site.may_run(most) < most and site.region not in request.vms_in
        for site in network.sites.values()
    )


def transfer_problem(request: TransferRequest, network: Network, prices: Prices) -> TransferProblem:
    """Return the transfer that a request is on a network, by expected figures and without a lead.

    Raises
    ------
    InputError
        If an end is not in the network.
    """
    src, dst, volume_gb = request.src, request.dst, request.volume_gb
    for field, region in (("src", src), ("dst", dst)):
        network.check_region(region, field)
    at, to = network.index[src], network.index[dst]
    flows_out, sends, accepts = network.held_out_of(src, request.connections)
    flows_in, forwards, receives = network.held_into(dst, request.connections)
    egress_caps, ingress_caps = network.caps()
    direct, relays = None, NO_RELAYS
    if (each_gbps := float(flows_out[to])) > 0:
        fee = prices.egress_usd_per_gb(src, dst, volume_gb)
        first_gbps, last_gbps = min(float(sends[to]), each_gbps), float(receives[at])
        direct = TransferPath(None, first_gbps, last_gbps, inf, fee, 0.0, 1, each_gbps)
    if request.relays != "none":
        fees, vms = relayed_usd_per_gb(prices, network, src, dst, volume_gb), _vms(request, network)
        flows = np.minimum(flows_out, flows_in)
        into = np.minimum(sends, flows)
        # What a link would cost may not be known: then it can't be recommended.
        able = np.flatnonzero((into > 0) & (receives > 0) & (fees < inf) & (vms > 0))
        forwarded = np.minimum.reduce([accepts, forwards, egress_caps, ingress_caps, flows])
        rows = np.zeros(len(able), PATH)
        rows["out_connections_gbps"] = inf
        for name, figures in (
            ("region", np.arange(len(vms))),
            ("in_gbps", into),
            ("out_gbps", receives),
            ("vm_gbps", forwarded),
            ("usd_per_gb", fees),
            ("quota", vms),
            ("in_connections_gbps", flows),
        ):
            rows[name] = figures[able]
        rows["vm_usd_per_h"] = vm_prices_usd_per_h(prices, network, able)
        relays = Relays(rows)
    ends = [network.sites[src], network.sites[dst]]
    source, destination = (
        End(cap, prices.vm_usd_per_h(end.region), request.vm_limits.most(end))
        for end, cap in zip(ends, (float(egress_caps[at]), float(ingress_caps[to])), strict=True)
    )
    figures = volume_gb, source, destination, direct, relays
    transfer = TransferProblem(*figures, most_paths=MOST_PATHS, least_part=LEAST_PART)
    if network.has_private_links:
        transfer = _by_kind(transfer, request, network)
    return _with_fees(transfer, request, network, prices) if has_fees(prices) else transfer


def _vms(request: TransferRequest, network: Network) -> Ints:
    """Return the most VMs at each region as a relay; 0 where none may be."""
    sites, index, only = list(network.sites.values()), network.index, request.relays
    limits = request.vm_limits
    found = np.full(len(sites), request.vms or limits.unasked)
    stated = [index[region] for region in request.vms_in if region in index]
    for at in (*network.limited, *stated):
        found[at] = limits.most(sites[at])
    found[[index[region] for region in request.forbidden if region in index]] = 0
    if only not in {"any", "one"}:
        found[[at for region, at in index.items() if region != only]] = 0
    return found


def _with_fees(
    transfer: TransferProblem, request: TransferRequest, network: Network, prices: Prices
) -> TransferProblem:
    """Return a transfer with its fees by the hour, and what links carry in all."""
    src, dst = ends = request.src, request.dst
    of_ends, regions = hourly_usd(prices, ends), list(network.sites)
    paths = [replace(path) for path in transfer.paths]
    for path in paths:
        via = [] if path.region is None else [regions[path.region]]
        links = [*pairwise([src, *via, dst])]
        most_gbps = min(link_gbps(prices, *link) for link in links)
        if (most := least_connections(prices, *links)[0]) < inf:
            flow_gbps = min(network.link(*link).rate_gbps(1) for link in links)
            most_gbps = min(most_gbps, most * flow_gbps)
        if not via:
            path.vm_gbps = most_gbps
            continue
        path.usd_per_h = hourly_usd(prices, (*ends, *via)) - of_ends
        path.vm_gbps = min(path.vm_gbps, most_gbps)
        if most_gbps < inf:
            path.quota = min(path.quota, int(most_gbps / path.vm_gbps))
    return replace(transfer.over(paths), usd_per_h=of_ends)


def _by_kind(
    transfer: TransferProblem, request: TransferRequest, network: Network
) -> TransferProblem:
    """Return a transfer with the caps of each path's own kind of address."""
    links, regions = network.links, list(network.sites)
    paths = [replace(path) for path in transfer.paths]
    source, destination = network.sites[request.src], network.sites[request.dst]
    caps = []
    for path in paths:
        relay = None if path.region is None else regions[path.region]
        first, last = (
            links[request.src][relay or request.dst],
            links[relay or request.src][request.dst],
        )
        out_gbps = source.egress(first.address).expected
        in_gbps = destination.ingress(last.address).expected
        caps.append((out_gbps, in_gbps))
        path.in_gbps, path.out_gbps = min(path.in_gbps, out_gbps), min(path.out_gbps, in_gbps)
        if relay:
            site = network.sites[relay]
            accepts, forwards = site.ingress(first.address), site.egress(last.address)
            path.vm_gbps = min(path.vm_gbps, accepts.expected, forwards.expected)
    if not caps:
        return transfer
    src_gbps, dst_gbps = (max(of_end) for of_end in zip(*caps, strict=True))
    for path, (out_gbps, in_gbps) in zip(paths, caps, strict=True):
        if out_gbps < src_gbps:
            path.in_connections_gbps = min(path.in_connections_gbps, out_gbps)
        if in_gbps < dst_gbps:
            path.out_connections_gbps = in_gbps
    return replace(
        transfer.over(paths),
        src=replace(transfer.src, cap_gbps=src_gbps),
        dst=replace(transfer.dst, cap_gbps=dst_gbps),
    )
