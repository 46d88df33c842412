"""The vCPU quotas of an account in questions of many transfers, which share a region's VMs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from planner.fields.shared import RelayingRequest
from planner.model.answer import OneMoreVm
from planner.model.network import Network
from planner.model.quotas.sites import above_quotas, beyond_quotas, left_out_text, limited_texts
from planner.model.shared_resources import Floats


def most_vms(request: RelayingRequest, network: Network, region: str) -> int:
    """Return how many VMs a plan may use in a region.

    Quotas bound the number for all regions, not one that the request states for this region.
    """
    stated = request.vms_in.get(region)
    return network.sites[region].may_run(request.vms) if stated is None else stated


def vms_of(request: RelayingRequest, network: Network, regions: Sequence[str]) -> Floats:
    """Return the same for each of n regions, shape (n,)."""
    return np.array([float(most_vms(request, network, region)) for region in regions])


def participants(
    request: RelayingRequest, network: Network, ends: Collection[str], *, relays: bool
) -> tuple[str, ...]:
    """Return the regions that may take part: the ends, and others if any with VMs may relay."""
    return tuple(
        region
        for region in network.sites
        if region in ends
        or (relays and region not in request.forbidden and most_vms(request, network, region))
    )


def warnings(
    request: RelayingRequest,
    network: Network,
    vms: Mapping[str, int],
    ends: Collection[str],
    *,
    relays: bool,
    more: Iterable[OneMoreVm] = (),
) -> tuple[str, ...]:
    """Return which quotas hold a plan to fewer VMs than asked for, and what they must be.

    Parameters
    ----------
    vms : mapping
        VMs of the plan by region.
    relays : bool
        Whether other regions than its ends may take part.
    more : iterable of OneMoreVm
        What the plan says of further VMs.
    """
    limited = {
        region: request.vms
        for region, count in vms.items()
        if region not in request.vms_in
        if count == most_vms(request, network, region) < request.vms
    }
    # A place is a region, or a link of which both ends get one more.
    places = dict.fromkeys(region for one in more for region in one.region.split(" -> "))
    wider = {region: vms.get(region, 0) + 1 for region in places if region not in limited}
    taking_part = participants(request, network, ends, relays=relays)
    left_out = network.sites.keys() - taking_part - request.forbidden if relays else ()
    return (
        *beyond_quotas(network, vms),
        *limited_texts(network, limited),
        *(
            f"One more VM needs a larger quota: {text}"
            for text in limited_texts(network, above_quotas(network, wider))
        ),
        *left_out_text(left_out),
    )
