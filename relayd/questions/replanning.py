"""The question whether to keep to a plan in progress, or to change it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from time import time as clock

from planner.model.estimate import WANTED_ADDRESSES
from planner.replanning.causes import OtherTransfer
from planner.replanning.plan import Replan
from planner.replanning.request import ReplanRequest
from relayd.questions.holds import Holds
from relayd.questions.question import Question
from relayd.questions.resolving import NetworkView, answered, vm_types_of


def replan_in_progress(wan: NetworkView, request: ReplanRequest) -> Replan:
    """Answer a :class:`~planner.replanning.request.ReplanRequest` with names of regions."""
    from planner.replanning.progress import InProgress
    from planner.replanning.recommendation import replan

    if isinstance(request.moved_gb, Mapping):
        moved = {}
        for pair, gb in request.moved_gb.items():
            src, dst = (wan.resolve(name, "moved_gb").region_id for name in pair)
            moved[src, dst] = gb
        request = replace(request, moved_gb=moved)
    workload, wanted, hosts = InProgress(request).workload, request.addresses, request.hosts
    plan = request.plan
    asked = plan["request"] if isinstance(plan, Mapping) else plan.request
    if wanted == "auto":  # VMs reach each other as the plan was asked for
        wanted = next((one for one in WANTED_ADDRESSES if one == asked.get("addresses")), "auto")
    if asked.get("hosts") == "tuned":
        hosts = "tuned"
    network = wan.network_of(workload.regions, vm_types_of(wan, request), wanted, hosts)
    own = request.document.get("plan_id")
    others = _begun_since(wan.holds().without(own), request, workload.regions)
    recommend = partial(replan, others=others)
    return answered(wan, request, request, network, workload.links_gb, recommend, own_plan=own)


def _begun_since(
    holds: Holds, request: ReplanRequest, regions: Collection[str]
) -> list[OtherTransfer]:
    """Return the transfers that began on pools of a plan in progress after it did."""
    since_s = clock() - request.elapsed_s - (request.silent_s or 0.0)
    return [
        OtherTransfer(one.transfer, one.place, max(one.egress_gbps, one.ingress_gbps))
        for one in holds.all
        if one.kind == "pool" and one.place in regions and one.began_s > since_s
    ]


_ENDS = "aws:us-east-1", "aws:sa-east-1"
REPLAN = Question(
    name="replan",
    method="replan",
    path="/v1/replans",
    command="transfers replan",
    summary="Say whether to keep to a plan in progress",
    request=ReplanRequest,
    answer=Replan,
    solve=replan_in_progress,
    example={
        "plan": {
            "plan_id": "7a0c6c1f2b3d",
            "snapshot": {"id": "1", "as_of": "2026-01-01T00:00:00Z", "source": "store"},
            "request": {"src": _ENDS[0], "dst": _ENDS[1], "volume_gb": 500},
            "throughput_gbps": 5.0,
            "paths": [{"regions": [*_ENDS], "throughput_gbps": 5.0, "share": 1.0}],
            "vms": dict.fromkeys(_ENDS, 1),
        },
        "moved_gb": 120,
        "elapsed_s": 600,
    },
    schema_name="ReplanQuestion",
    order=8,
    heading="report transfers under way",
)
