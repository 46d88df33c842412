"""From a request and a graph to the figures of one transfer."""

from __future__ import annotations

from planner.errors import DataError, InputError
from planner.network import Network
from planner.pricing import Prices
from planner.request import TransferRequest
from planner.transfer import Direct, End, Relay, Transfer


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
    rates = network.rates(request.connections)
    out_of, into = rates.out_of(src), rates.into(dst)
    egress_caps, ingress_caps = network.caps()
    index = network.index
    volume_gb = request.volume_gb
    pair_gbps = out_of[index[dst]]
    direct = (
        Direct(pair_gbps, prices.egress_usd_per_gb(src, dst, volume_gb)) if pair_gbps > 0 else None
    )
    relays = []
    for region, k in index.items() if request.relays != "none" else ():
        in_gbps, out_gbps = out_of[k], into[k]
        if in_gbps <= 0 or out_gbps <= 0 or region in request.forbidden:
            continue
        if request.relays not in {"any", "one", region}:
            continue
        try:
            fee = prices.egress_usd_per_gb(src, region, volume_gb)
            fee += prices.egress_usd_per_gb(region, dst, volume_gb)
        except DataError:
            continue  # what it would cost is not known, so it can't be recommended
        relays.append(
            Relay(
                k,
                in_gbps,
                out_gbps,
                min(in_gbps, out_gbps, ingress_caps[k], egress_caps[k]),
                fee,
                prices.vm_usd_per_h(region),
                request.quota(region),
            )
        )
    return Transfer(
        volume_gb,
        End(egress_caps[index[src]], prices.vm_usd_per_h(src), request.quota(src)),
        End(ingress_caps[index[dst]], prices.vm_usd_per_h(dst), request.quota(dst)),
        direct,
        relays,
        request.vm_start_s,
    )
