"""The question how to run many transfers at once."""

from __future__ import annotations

from dataclasses import replace

from planner.fields.demands import demands_gb
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.request import ShuffleRequest
from relayd.questions.question import Question, TextOption
from relayd.questions.resolving import NetworkView, answered, by_regions, network_of


def plan_shuffle(wan: NetworkView, request: ShuffleRequest) -> ShufflePlan:
    """Answer a :class:`~planner.shuffle.request.ShuffleRequest` with names of regions."""
    from planner.shuffle.recommendation import recommend_shuffle

    found = {name: wan.resolve(name, "demands") for name in request.ends}
    # Two names may mean one region; what it sends itself needs no WAN.
    demands = demands_gb(
        [
            (found[src].region_id, found[dst].region_id, volume_gb)
            for (src, dst), volume_gb in request.demands_gb.items()
        ]
    )
    ends = {f"demands ({name})": resolution.region_id for name, resolution in found.items()}
    resolved = replace(request, demands_gb=demands, **by_regions(wan, request, ends))
    network = network_of(wan, resolved.ends, request, sum(demands.values()))
    # What is down carries nothing, so it is on no path; that should not go unsaid.
    down = [
        f"{state}; plans will change once it is back."
        for pair, state in network.states.items()
        if pair in demands
    ]
    names = found.values()
    notes = [*getattr(request.demands_gb, "notes", ()), *down]
    return answered(wan, request, resolved, network, demands, recommend_shuffle, names, notes)


SHUFFLE = Question(
    name="shuffle",
    method="shuffle",
    path="/v1/shuffles",
    command="plan shuffle",
    summary="Recommend how to run many transfers",
    request=ShuffleRequest,
    answer=ShufflePlan,
    solve=plan_shuffle,
    example={
        "demands": [
            {"src": "aws:us-east-1", "dst": "aws:sa-east-1", "volume_gb": 100},
            {"src": "aws:us-east-1", "dst": "aws:eu-west-1", "volume_gb": 50},
        ],
        "vms": 2,
    },
    schema_name="ShuffleQuestion",
    order=2,
    most={"demands": 10_000},
    shown=(TextOption("pairs", "--pairs", "list every pair, with its paths"),),
)
