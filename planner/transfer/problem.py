"""From a request and a graph to the figures of one transfer."""

from __future__ import annotations

from math import inf

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices, relayed_usd_per_gb, site_vms_usd_per_h
from planner.transfer.allocation import Direct, End, Relay, Transfer
from planner.transfer.request import TransferRequest


def transfer_problem(request: TransferRequest, network: Network, prices: Prices) -> Transfer:
    """Return the transfer that a request is on a network.

    Parameters
    ----------
    request, network, prices
        Expected figures of the network's estimates are taken.

    Raises
    ------
    InputError
        If an end is not in the network.
    """
    src, dst = request.src, request.dst
    for field, region in (("src", src), ("dst", dst)):
        if region not in network.sites:
            raise InputError(
                field,
                "is not part of the network",
                value=region,
                remedy="Measure it, import measurements, or add it to a catalogue file.",
            )
    egress_caps, ingress_caps = network.caps()
    index = network.index
    volume_gb = request.volume_gb
    pair_gbps = network.rates(request.connections).out_of(src)[index[dst]]
    direct = (
        Direct(pair_gbps, prices.egress_usd_per_gb(src, dst, volume_gb)) if pair_gbps > 0 else None
    )
    relays = _relays(request, network, prices) if request.relays != "none" else []
    return Transfer(
        volume_gb,
        End(egress_caps[index[src]], prices.vm_usd_per_h(src), request.quota(src)),
        End(ingress_caps[index[dst]], prices.vm_usd_per_h(dst), request.quota(dst)),
        direct,
        relays,
        request.vm_start_s,
    )


def _relays(request: TransferRequest, network: Network, prices: Prices) -> list[Relay]:
    """Return the regions that may relay, whose links both carry something at a known price."""
    src, dst = request.src, request.dst
    rates = network.rates(request.connections)
    out_of, into = rates.out_of(src), rates.into(dst)
    figures = zip(
        network.sites,
        out_of,
        into,
        map(min, out_of, into, network.forwarding_gbps),
        relayed_usd_per_gb(prices, network, src, dst, request.volume_gb),
        site_vms_usd_per_h(prices, network),
        strict=True,
    )
    only = request.relays if request.relays not in {"any", "one"} else None
    forbidden, vms, vms_in = request.forbidden, request.vms, request.vms_in
    relays = []
    for k, (region, in_gbps, out_gbps, vm_gbps, usd_per_gb, vm_usd_per_h) in enumerate(figures):
        # What a link would cost may not be known: then it can't be recommended.
        if in_gbps <= 0 or out_gbps <= 0 or usd_per_gb == inf or region in forbidden:
            continue
        if only is not None and region != only:
            continue
        quota = vms_in.get(region, vms) if vms_in else vms
        relays.append(Relay(k, in_gbps, out_gbps, vm_gbps, usd_per_gb, vm_usd_per_h, quota))
    return relays
