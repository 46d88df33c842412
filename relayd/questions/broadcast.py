"""The question how to bring one volume to several regions."""

from __future__ import annotations

from dataclasses import replace

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InputError
from planner.model.pricing import provider_of
from relayd.questions.question import Question, TextOption
from relayd.questions.resolving import NetworkView, answered, by_regions, each_once, network_of


def plan_broadcast(wan: NetworkView, request: BroadcastRequest) -> BroadcastPlan:
    """Answer a :class:`~planner.broadcast.request.BroadcastRequest` with names of regions.

    Raises an InputError if a destination is the source, or is named twice.
    """
    from planner.broadcast.recommendation import recommend_broadcast

    source = wan.resolve(request.src, "src")
    provider = provider_of(source.region_id)
    found = [wan.resolve(name, "destinations", provider) for name in request.destinations]
    destinations = each_once(
        "destinations", request.destinations, found, "Name each destination once."
    )
    if source.region_id in destinations:
        named = request.destinations[destinations.index(source.region_id)]
        problem = f"name the source itself ({source.region_id})"
        raise InputError("destinations", problem, value=named, remedy="Name other regions.")
    ends = {"src": source.region_id, **{f"destinations ({r})": r for r in destinations}}
    resolved = replace(
        request, src=source.region_id, destinations=destinations, **by_regions(wan, request, ends)
    )
    network = network_of(wan, resolved.ends, request, request.volume_gb * len(destinations))
    pairs = [(source.region_id, region) for region in destinations]
    names = source, *found
    return answered(wan, request, resolved, network, pairs, recommend_broadcast, names)


BROADCAST = Question(
    name="broadcast",
    method="broadcast",
    path="/v1/broadcasts",
    command="plan broadcast",
    summary="Recommend how to bring one volume to several regions",
    request=BroadcastRequest,
    answer=BroadcastPlan,
    solve=plan_broadcast,
    example={
        "src": "aws:us-east-1",
        "destinations": ["aws:eu-west-1", "aws:ap-northeast-1"],
        "volume_gb": 50,
    },
    schema_name="BroadcastQuestion",
    order=3,
    most={"destinations": 100},
    shown=(TextOption("trees", "--trees", "list every tree"),),
)
