"""A shuffle: many transfers at once, over VMs that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.model.demands import demands_gb as read_demands
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from relayd.questions.circumstances import Circumstances
from relayd.sources.matrix_threads import one_matrix_thread

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def plan_shuffle(
    wan: Wan,
    demands_gb: Any,
    circumstances: Circumstances,
    *,
    regions: Sequence[str] | None,
    frontier: bool,
    **goal: Any,
) -> ShufflePlan:
    """Answer :meth:`relayd.sources.wan.Wan.shuffle`; ``goal`` goes to the request as it is."""
    named = read_demands(demands_gb, regions)
    found = {
        name: wan.resolve(name, "demands")
        for name in dict.fromkeys(name for pair in named for name in pair)
    }
    # Two names may mean one region; what it sends itself needs no WAN.
    resolved = read_demands(
        [
            (found[src].region_id, found[dst].region_id, volume_gb)
            for (src, dst), volume_gb in named.items()
        ]
    )
    ends = {f"demands ({name})": resolution.region_id for name, resolution in found.items()}
    request = ShuffleRequest(
        resolved,
        margin=circumstances.margin,
        vms=circumstances.vms,
        vms_in=circumstances.vms_by_region(wan),
        connections=circumstances.connections,
        forbidden=circumstances.forbidden(wan, ends),
        vm_start_s=circumstances.vm_start_s,
        **goal,
    )
    network = wan.network_of(request.ends, circumstances.checked_vm_types(wan))
    notes = [resolution.note for resolution in found.values() if resolution.note]
    # What is down carries nothing, so it is on no path; that should not go unsaid.
    notes += [
        f"{state}; plans will change once it is back."
        for pair, state in network.states.items()
        if pair in request.demands_gb
    ]
    prices = circumstances.prices(wan, network)
    with one_matrix_thread():
        return recommend_shuffle(
            request, network, prices, with_frontier=frontier, notes=tuple(notes)
        )
