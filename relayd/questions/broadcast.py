"""A broadcast: one volume to several regions, with copies forwarded where that pays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InputError
from relayd.questions.circumstances import Circumstances

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def plan_broadcast(
    wan: Wan,
    src: str,
    destinations: Sequence[str],
    circumstances: Circumstances,
    *,
    frontier: bool,
    **goal: Any,
) -> BroadcastPlan:
    """Answer :meth:`relayd.sources.wan.Wan.broadcast`; ``goal`` goes to the request as it is."""
    if isinstance(destinations, str):
        raise InputError(
            "dst", "must be several names", value=destinations, remedy="Pass a list of regions."
        )
    source = wan.resolve(src, "src")
    provider = source.region_id.partition(":")[0]
    found = [wan.resolve(name, "dst", provider) for name in destinations]
    resolved = [resolution.region_id for resolution in found]
    for name, region in zip(destinations, resolved, strict=True):
        if resolved.count(region) > 1:
            raise InputError(
                "dst",
                f"is named twice ({region})",
                value=name,
                remedy="Name each destination once.",
            )
        if region == source.region_id:
            raise InputError(
                "dst", f"is the source itself ({region})", value=name, remedy="Name other regions."
            )
    ends = {"src": source.region_id, **{f"dst ({r})": r for r in resolved}}
    request = BroadcastRequest(
        source.region_id,
        tuple(resolved),
        margin=circumstances.margin,
        vms=circumstances.vms,
        vms_in=circumstances.vms_by_region(wan),
        connections=circumstances.connections,
        forbidden=circumstances.forbidden(wan, ends),
        vm_start_s=circumstances.vm_start_s,
        **goal,
    )
    network = wan.network_of(request.ends, circumstances.checked_vm_types(wan))
    return recommend_broadcast(
        request,
        network,
        circumstances.prices(wan, network),
        with_frontier=frontier,
        notes=tuple(resolution.note for resolution in (source, *found) if resolution.note),
    )
