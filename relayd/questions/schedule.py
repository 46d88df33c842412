"""A schedule: many transfers with starts and deadlines, over VMs that they share."""

from __future__ import annotations

from dataclasses import replace

from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import EVERYWHERE, ScheduleRequest
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import (
    NetworkView,
    by_regions,
    notes_of,
    prices,
    vm_types,
    with_ends,
)

STAYS = "What stays in a region needs no schedule."
RECEIVER = "A tariff is of a link between two regions: give the one that receives."


def plan_schedule(wan: NetworkView, request: ScheduleRequest) -> SchedulePlan:
    """Answer a :class:`~planner.schedule.request.ScheduleRequest` with names of regions."""
    names = dict.fromkeys(name for t in request.transfers for name in (t.src, t.dst))
    found = {name: wan.resolve(name, "transfers") for name in names}
    transfers = [with_ends(wan, t, f"transfers {t.id}", STAYS) for t in request.transfers]
    tariffs = [
        with_ends(wan, tariff, f"tariffs {tariff.id}", RECEIVER) for tariff in request.tariffs
    ]
    ends = {f"transfers ({name})": resolution.region_id for name, resolution in found.items()}
    for known in request.existing.transfers if request.existing else ():
        ends |= {f"existing, transfer {known.id}, {e}": getattr(known, e) for e in ("src", "dst")}
    resolved = replace(
        request,
        transfers=transfers,
        tariffs=tariffs,
        disk_gb={
            wan.resolve(name, "disk_gb").region_id: gb for name, gb in request.disk_gb.items()
        },
        disk_usd_per_gb_month={
            _place(wan, name): usd for name, usd in request.disk_usd_per_gb_month.items()
        },
        **by_regions(wan, request, ends),
    )
    network = wan.network_of(
        tuple(dict.fromkeys(ends.values())), vm_types(wan, request), request.addresses
    )
    pairs = [(transfer.src, transfer.dst) for transfer in transfers]
    refuse_old(request, wan.catalogue, network, pairs)
    plan = recommend_schedule(
        resolved, network, prices(wan, network, request), notes=notes_of(found.values())
    )
    return dated(plan, wan.catalogue, network, pairs)


def _place(wan: NetworkView, name: str) -> str:
    """Return a provider or `*` as it is, and the id of a region."""
    providers = {region.partition(":")[0] for region in wan.known_regions()}
    if name in {EVERYWHERE, *providers}:
        return name
    return wan.resolve(name, "disk_usd_per_gb_month").region_id
