"""One transfer as a problem: plain figures, made from a request and a network.

For a source s, a destination d and relays r, with flows ``x_p`` in Gbit/s on the direct path and
on each relay path, and integer numbers of VMs ``n``::

    sum_p x_p = R                                                the rate
    R <= E_s n_s,   R <= I_d n_d                                 VM caps at the ends
    sum_p x_p / (K f_sp) <= n_s,   sum_p x_p / (K f_pd) <= n_d   connections at the ends
    x_sd <= P_sd n_s,   x_sd <= P_sd n_d                         limit of the direct path
    x_r <= P_sr n_s,   x_r <= P_rd n_d                           limits of a relay's links
    x_r <= u_r n_r,   u_r = min(P_sr, P_rd, I_r, E_r)            what one relay VM forwards
    0 <= n_v <= N_v                                              quotas

    cost = D sum_p (x_p / R) fee_p + sum_v n_v price_v (T + t_start),    T = 8 D / R

K is the number of connections of one VM, f the rate of one connection, and P what one VM pair
reaches with K connections, ``min(A, K f)``. Paths share the VMs' connections and caps; the limit of
a link is its own, so a slow path leaves the rest of its VMs to others. As ``P <= K f``, the
connections of a relay VM suffice for what it forwards.

A VM may send more over private addresses than over public ones. Where paths of both kinds leave it,
E is the higher cap, and ``min(K f, E_public)`` is in place of ``K f`` on links over public
addresses, which keeps their sum within ``E_public n``. It is on the safe side: that row counts the
connections over private addresses, too. The same holds for what enters a VM.

:mod:`planner.transfer.optimum` solves it; `tests/planner/independent.py` states it for
another solver, to test against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

from planner.fields.shared import MOST_VMS
from planner.model.baseline.modelled_links import least_cap
from planner.model.link import Site
from planner.model.network import Network
from planner.model.pricing import Prices, relayed_usd_per_gb
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.transfer.request import MOST_VMS_UNASKED, TransferRequest


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Direct:
    """The direct path.

    Attributes
    ----------
    pair_gbps : float
        What one VM pair reaches: ``P``.
    usd_per_gb : float
    connections_gbps : float
        What the connections of one VM would carry if nothing else limited them: ``K f``, at
        least `pair_gbps`.
    """

    pair_gbps: float
    usd_per_gb: float
    connections_gbps: float = inf


# Not frozen: a plan makes one for each of some 70 regions, and freezing triples the time of that.
@dataclass(slots=True)
class Relay:
    """A path through one relay; not changed once made.

    Attributes
    ----------
    region : int
        Identifies the relay; breaks ties.
    in_gbps, out_gbps : float
        What one VM pair reaches on the first and the second link: ``P``.
    vm_gbps : float
        What one relay VM forwards: the least of both links and the VM's caps.
    usd_per_gb : float
        Egress fees of both links together.
    in_connections_gbps, out_connections_gbps : float
        What the connections of one VM would carry on the first and the second link if nothing
        else limited them: ``K f``, at least `in_gbps` and `out_gbps`.
    """

    region: int
    in_gbps: float
    out_gbps: float
    vm_gbps: float
    usd_per_gb: float
    vm_usd_per_h: float
    quota: int
    in_connections_gbps: float = inf
    out_connections_gbps: float = inf


@dataclass(frozen=True, slots=True)
class TransferProblem:
    """Everything that one transfer's plan depends on.

    Attributes
    ----------
    volume_gb : float
    direct : Direct | None
        None where there is no direct link or it is not allowed.
    relays : sequence of Relay
    vm_start_s : float
        Time that a VM is paid for before the transfer begins.
    """

    volume_gb: float
    src: End
    dst: End
    direct: Direct | None
    relays: Sequence[Relay]
    vm_start_s: float = 0.0

    @property
    def gbps_h(self) -> float:
        """Duration in hours at 1 Gbit/s."""
        return BITS_PER_BYTE * self.volume_gb / S_PER_H

    def between(self, src: End, dst: End, relays: Sequence[Relay]) -> TransferProblem:
        """Return it with other ends and relays."""
        return replace(self, src=src, dst=dst, relays=relays)


def most_vms(request: TransferRequest, site: Site, unasked: int = MOST_VMS) -> int:
    """Return the number of VMs that a plan may use at a site: that stated, else all there are.

    Where the request states no number, `unasked` bounds it. Quotas bound all numbers but those that
    it states for a region.
    """
    if site.region in request.vms_in:
        return request.vms_in[site.region]
    vms = request.vms
    if vms is None:
        vms = min(site.vms or MOST_VMS_UNASKED, unasked)
    return site.may_run(vms) if site.quotas else vms


def quotas_may_bind(request: TransferRequest, network: Network) -> bool:
    """Return whether some quota allows fewer VMs than a plan may otherwise use."""
    most = request.vms or MOST_VMS_UNASKED
    return any(
        site.quotas and site.may_run(most) < most and site.region not in request.vms_in
        for site in network.sites.values()
    )


def transfer_problem(
    request: TransferRequest, network: Network, prices: Prices, unasked_vms: int = MOST_VMS
) -> TransferProblem:
    """Return the transfer that a request is on a network.

    Parameters
    ----------
    request, network, prices
        Expected figures of the network's estimates are taken.
    unasked_vms : int, optional
        Most VMs at sites for which the request states no number.

    Raises
    ------
    InputError
        If an end is not in the network.
    """
    src, dst = request.src, request.dst
    for field, region in (("src", src), ("dst", dst)):
        network.check_region(region, field)
    egress_caps, ingress_caps = network.caps()
    index = network.index
    volume_gb = request.volume_gb
    pair_rates = _pair_rates(request, network)
    pair_gbps = pair_rates[0][index[dst]]
    direct = None
    if pair_gbps > 0:
        flow_gbps = network.rates(1).out_of(src)[index[dst]]
        fee = prices.egress_usd_per_gb(src, dst, volume_gb)
        direct = Direct(pair_gbps, fee, request.connections * flow_gbps)
    relays = []
    if request.relays != "none":
        relays = _relays(request, network, prices, pair_rates, unasked_vms)
    src_vms, dst_vms = (
        most_vms(request, network.sites[region], unasked_vms) for region in (src, dst)
    )
    transfer = TransferProblem(
        volume_gb,
        End(egress_caps[index[src]], prices.vm_usd_per_h(src), src_vms),
        End(ingress_caps[index[dst]], prices.vm_usd_per_h(dst), dst_vms),
        direct,
        relays,
        request.vm_start_s,
    )
    return _by_kind(transfer, request, network) if network.has_private_links else transfer


def _pair_rates(request: TransferRequest, network: Network) -> tuple[list[float], list[float]]:
    """Return the rates of one VM pair out of the source and into the destination.

    Where links over private addresses are in use, no more than the caps of each link's own kind.
    """
    src, dst = request.src, request.dst
    rates = network.rates(request.connections)
    if not network.has_private_links:
        return rates.out_of(src), rates.into(dst)
    sites, links = network.sites, network.links
    out_of = [
        min(gbps, least_cap(sites[src], site, links[src][site.region].address).expected)
        if gbps
        else 0.0
        for gbps, site in zip(rates.out_of(src), sites.values(), strict=True)
    ]
    into = [
        min(gbps, least_cap(site, sites[dst], links[site.region][dst].address).expected)
        if gbps
        else 0.0
        for gbps, site in zip(rates.into(dst), sites.values(), strict=True)
    ]
    return out_of, into


def _by_kind(
    transfer: TransferProblem, request: TransferRequest, network: Network
) -> TransferProblem:
    """Return a transfer with the caps of each path's own kind of address."""
    sites, links, regions = network.sites, network.links, list(network.sites)
    source, destination = sites[request.src], sites[request.dst]

    def sends_gbps(to: str) -> float:
        return source.egress(links[request.src][to].address).expected

    def receives_gbps(by: str) -> float:
        return destination.ingress(links[by][request.dst].address).expected

    first = [regions[relay.region] for relay in transfer.relays]
    out = first + ([request.dst] if transfer.direct else [])
    into = first + ([request.src] if transfer.direct else [])
    src_gbps = max(map(sends_gbps, out), default=transfer.src.cap_gbps)
    dst_gbps = max(map(receives_gbps, into), default=transfer.dst.cap_gbps)

    def shared(connections_gbps: float, cap_gbps: float, highest_gbps: float) -> float:
        return min(connections_gbps, cap_gbps) if cap_gbps < highest_gbps else connections_gbps

    direct = transfer.direct
    if direct:
        most_gbps = shared(direct.connections_gbps, sends_gbps(request.dst), src_gbps)
        most_gbps = shared(most_gbps, receives_gbps(request.src), dst_gbps)
        direct = replace(direct, connections_gbps=most_gbps)
    for relay, region in zip(transfer.relays, first, strict=True):
        relay.in_connections_gbps = shared(relay.in_connections_gbps, sends_gbps(region), src_gbps)
        relay.out_connections_gbps = shared(
            relay.out_connections_gbps, receives_gbps(region), dst_gbps
        )
    return replace(
        transfer,
        src=replace(transfer.src, cap_gbps=src_gbps),
        dst=replace(transfer.dst, cap_gbps=dst_gbps),
        direct=direct,
    )


def _relays(
    request: TransferRequest,
    network: Network,
    prices: Prices,
    pair_rates: tuple[list[float], list[float]],
    unasked_vms: int,
) -> list[Relay]:
    """Return the regions that may relay, whose links both carry something at a known price."""
    src, dst, connections = request.src, request.dst, request.connections
    flows = network.rates(1)
    out_of, into = pair_rates
    figures = zip(
        count(),
        network.sites,
        out_of,
        into,
        [connections * gbps for gbps in flows.out_of(src)],
        [connections * gbps for gbps in flows.into(dst)],
        map(min, out_of, into, *network.caps()),
        relayed_usd_per_gb(prices, network.sites, src, dst, request.volume_gb),
        map(prices.vm_usd_per_h, network.sites),
        (most_vms(request, site, unasked_vms) for site in network.sites.values()),
    )
    forbidden = request.forbidden
    if request.relays not in {"any", "one"}:
        forbidden = forbidden.union(network.sites.keys() - {request.relays})
    # What a link would cost may not be known: then it can't be recommended.
    return [
        Relay(k, gbps_in, gbps_out, vm_gbps, fee, usd, vms, each_in, each_out)
        for k, region, gbps_in, gbps_out, each_in, each_out, vm_gbps, fee, usd, vms in figures
        if gbps_in > 0 and gbps_out > 0 and fee != inf and vms > 0 and region not in forbidden
    ]
