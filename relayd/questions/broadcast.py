"""A broadcast: one volume to several regions, with copies forwarded where that pays."""

from __future__ import annotations

from dataclasses import replace

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InputError
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import NetworkView, by_regions, notes_of, prices, vm_types


def plan_broadcast(wan: NetworkView, request: BroadcastRequest) -> BroadcastPlan:
    """Answer a :class:`~planner.broadcast.request.BroadcastRequest` with names of regions."""
    source = wan.resolve(request.src, "src")
    provider = source.region_id.partition(":")[0]
    found = [wan.resolve(name, "destinations", provider) for name in request.destinations]
    destinations = [resolution.region_id for resolution in found]
    for name, region in zip(request.destinations, destinations, strict=True):
        if destinations.count(region) > 1:
            raise InputError(
                "destinations",
                f"name a region twice ({region})",
                value=name,
                remedy="Name each destination once.",
            )
        if region == source.region_id:
            raise InputError(
                "destinations",
                f"name the source itself ({region})",
                value=name,
                remedy="Name other regions.",
            )
    ends = {"src": source.region_id, **{f"destinations ({r})": r for r in destinations}}
    resolved = replace(
        request, src=source.region_id, destinations=destinations, **by_regions(wan, request, ends)
    )
    network = wan.network_of(resolved.ends, vm_types(wan, request), request.addresses)
    pairs = [(source.region_id, region) for region in destinations]
    refuse_old(request, wan.catalogue, network, pairs)
    plan = recommend_broadcast(
        resolved, network, prices(wan, network, request), notes=notes_of((source, *found))
    )
    return dated(plan, wan.catalogue, network, pairs)
