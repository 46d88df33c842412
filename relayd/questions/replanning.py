"""A plan in progress: keep to it, or change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.model.estimate import WANTED_ADDRESSES, WantedAddresses
from planner.replanning.plan import Replan
from planner.replanning.progress import in_progress
from planner.replanning.recommendation import replan
from planner.replanning.request import ReplanRequest
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import NetworkView, prices, vm_types


def replan_in_progress(wan: NetworkView, request: ReplanRequest) -> Replan:
    """Answer a :class:`~planner.replanning.request.ReplanRequest` with names of regions."""
    if isinstance(request.moved_gb, Mapping):
        moved = {
            (wan.resolve(src, "moved_gb").region_id, wan.resolve(dst, "moved_gb").region_id): gb
            for (src, dst), gb in request.moved_gb.items()
        }
        request = replace(request, moved_gb=moved)
    workload = in_progress(request).workload
    network = wan.network_of(workload.regions, vm_types(wan, request), _addresses(request))
    refuse_old(request, wan.catalogue, network, workload.links_gb)
    answer = replan(request, network, prices(wan, network, request))
    return dated(answer, wan.catalogue, network, workload.links_gb)


def _addresses(request: ReplanRequest) -> WantedAddresses:
    """Return over which addresses VMs are to reach each other: as the plan was asked for."""
    if request.addresses != "auto":
        return request.addresses
    plan = request.plan
    asked = (plan["request"] if isinstance(plan, Mapping) else plan.request).get("addresses")
    return next((wanted for wanted in WANTED_ADDRESSES if wanted == asked), "auto")
