"""A shuffle: many transfers at once, over VMs that they share."""

from __future__ import annotations

from dataclasses import replace

from planner.fields.demands import demands_gb
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from relayd.questions.ages import dated, refuse_old
from relayd.questions.matrix_threads import one_matrix_thread
from relayd.questions.resolving import NetworkView, by_regions, notes_of, prices, vm_types


def plan_shuffle(wan: NetworkView, request: ShuffleRequest) -> ShufflePlan:
    """Answer a :class:`~planner.shuffle.request.ShuffleRequest` with names of regions."""
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
    network = wan.network_of(resolved.ends, vm_types(wan, request), request.addresses)
    # What is down carries nothing, so it is on no path; that should not go unsaid.
    down = [
        f"{state}; plans will change once it is back."
        for pair, state in network.states.items()
        if pair in demands
    ]
    refuse_old(request, wan.catalogue, network, demands)
    with one_matrix_thread():
        plan = recommend_shuffle(
            resolved,
            network,
            prices(wan, network, request),
            notes=(*notes_of(found.values()), *down),
        )
    return dated(plan, wan.catalogue, network, demands)
