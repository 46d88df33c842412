"""A schedule: many transfers with starts and deadlines, over VMs that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.model.errors import InputError
from planner.schedule.document import schedule_from
from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, timed_transfers
from relayd.questions.circumstances import Circumstances

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def plan_schedule(
    wan: Wan,
    transfers: Any,
    circumstances: Circumstances,
    *,
    existing: SchedulePlan | Mapping[str, Any] | None,
    now_s: float,
    **goal: Any,
) -> SchedulePlan:
    """Answer :meth:`relayd.sources.wan.Wan.schedule`; ``goal`` goes to the request as it is."""
    if isinstance(existing, Mapping):
        existing = schedule_from(existing)
    asked = () if transfers is None and existing else timed_transfers(transfers)
    names = dict.fromkeys(name for t in asked for name in (t.src, t.dst))
    found = {name: wan.resolve(name, "transfers") for name in names}
    for transfer in asked:
        if found[transfer.src].region_id == found[transfer.dst].region_id:
            raise InputError(
                f"transfer {transfer.id}, dst",
                "is the source itself",
                value=transfer.dst,
                remedy="What stays in a region needs no schedule.",
            )
    resolved = tuple(
        replace(t, src=found[t.src].region_id, dst=found[t.dst].region_id) for t in asked
    )
    ends = {f"transfers ({name})": resolution.region_id for name, resolution in found.items()}
    for known in existing.transfers if existing else ():
        ends |= {f"transfer {known.id}, {end}": getattr(known, end) for end in ("src", "dst")}
    request = ScheduleRequest(
        resolved,
        vms=circumstances.vms,
        vms_in=circumstances.vms_by_region(wan),
        connections=circumstances.connections,
        forbidden=circumstances.forbidden(wan, ends),
        vm_start_s=circumstances.vm_start_s,
        **goal,
    )
    regions = tuple(dict.fromkeys(ends.values()))
    network = wan.network_of(regions, circumstances.checked_vm_types(wan))
    return recommend_schedule(
        request,
        network,
        circumstances.prices(wan, network),
        existing=existing,
        now_s=now_s,
        notes=tuple(resolution.note for resolution in found.values() if resolution.note),
    )
