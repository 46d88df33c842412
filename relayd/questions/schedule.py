"""The question which transfers can meet their deadlines, and when each sends."""

from __future__ import annotations

from dataclasses import replace

from planner.model.pricing import provider_of
from planner.schedule.plan import SchedulePlan
from planner.schedule.request import EVERYWHERE, ScheduleRequest
from relayd.questions.question import Question, TextOption
from relayd.questions.resolving import NetworkView, answered, by_regions, network_of, with_ends

TARIFF = "A tariff is of a link between two regions: give the one that receives."
STAYS = "What stays in a region needs no schedule."


def plan_schedule(wan: NetworkView, request: ScheduleRequest) -> SchedulePlan:
    """Answer a :class:`~planner.schedule.request.ScheduleRequest` with names of regions."""
    from planner.schedule.recommendation import recommend_schedule

    def place(name: str) -> str:
        if name in {EVERYWHERE, *map(provider_of, wan.known_regions())}:
            return name
        return wan.resolve(name, "disk_usd_per_gb_month").region_id

    names = dict.fromkeys(name for t in request.transfers for name in (t.src, t.dst))
    found = {name: wan.resolve(name, "transfers") for name in names}
    transfers = [with_ends(wan, t, f"transfers {t.id}", STAYS) for t in request.transfers]
    ends = {f"transfers ({name})": resolution.region_id for name, resolution in found.items()}
    for known in request.existing.transfers if request.existing else ():
        ends |= {f"existing, transfer {known.id}, {e}": getattr(known, e) for e in ("src", "dst")}
    disk_gb = {wan.resolve(name, "disk_gb").region_id: gb for name, gb in request.disk_gb.items()}
    resolved = replace(
        request,
        transfers=transfers,
        tariffs=[with_ends(wan, t, f"tariffs {t.id}", TARIFF) for t in request.tariffs],
        disk_gb=disk_gb,
        disk_usd_per_gb_month={place(n): usd for n, usd in request.disk_usd_per_gb_month.items()},
        **by_regions(wan, request, ends),
    )
    sent_gb = sum(transfer.volume_gb for transfer in transfers)
    network = network_of(wan, tuple(dict.fromkeys(ends.values())), request, sent_gb)
    pairs = [(transfer.src, transfer.dst) for transfer in transfers]
    return answered(wan, request, resolved, network, pairs, recommend_schedule, found.values())


SCHEDULE = Question(
    name="schedule",
    method="schedule",
    path="/v1/schedules",
    command="plan schedule",
    summary="Admit transfers with deadlines",
    request=ScheduleRequest,
    answer=SchedulePlan,
    solve=plan_schedule,
    example={
        "transfers": [
            {
                "id": "backup",
                "src": "aws:us-east-1",
                "dst": "aws:sa-east-1",
                "volume_gb": 200,
                "deadline_s": 7200,
            }
        ]
    },
    schema_name="ScheduleQuestion",
    order=4,
    note="A transfer that can't be admitted is part of the answer, not an error.",
    most={"transfers": 1000, "tariffs": 200, "explain": 100},
    shown=(TextOption("periods", "--periods", "list rates and paths over time"),),
)
