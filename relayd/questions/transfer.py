"""One transfer: where to send it through, with how many VMs and connections."""

from __future__ import annotations

import time
from dataclasses import replace

from planner.exploring.outcome import DIRECT, Outcome
from planner.model.calibration import calibrated
from planner.model.errors import InputError
from planner.transfer.leased_link import LeasedLink
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.questions.ages import dated, refuse_old
from relayd.questions.network_view import NetworkView
from relayd.questions.outcomes import possible_outcomes
from relayd.questions.resolving import by_regions, prices, vm_types


def plan_transfer(wan: NetworkView, request: TransferRequest) -> Plan:
    """Answer a :class:`~planner.transfer.request.TransferRequest` with names of regions."""
    source, target, notes = wan.resolve_pair(request.src, request.dst)
    if source == target:
        raise InputError(
            "dst",
            f"is the source itself ({source})",
            value=request.dst,
            remedy="Name two different regions.",
        )
    common = by_regions(wan, request, {"src": source, "dst": target})
    relays = request.relays
    if relays not in {"any", "one", "none"}:
        relays = wan.resolve(relays, "relays").region_id
        if relays in {source, target}:
            raise InputError("relays", "is an end of the transfer", value=relays)
        if relays in common["avoid"]:
            raise InputError("relays", "is forbidden by the rules", value=relays)
    resolved = replace(
        request,
        src=source,
        dst=target,
        relays=relays,
        outcomes=[_outcome(wan, outcome) for outcome in request.outcomes],
        leases=[_lease(wan, lease) for lease in request.leases],
        **common,
    )
    network = wan.network_between(source, target, vm_types(wan, request), request.addresses)
    now_s = time.time()
    if verified := network.verified.get((source, target)):
        network = calibrated(network, verified, now_s)
    refuse_old(request, wan.catalogue, network, [(source, target)])
    if resolved.outcomes:
        outcomes, doubts = possible_outcomes(wan.catalogue, network, resolved)
        resolved, notes = replace(resolved, outcomes=outcomes), (*notes, *doubts)
    plan = recommend(
        resolved,
        network,
        prices(wan, network, request),
        catalogue=wan.catalogue,
        now_s=now_s,
        notes=notes,
    )
    return dated(plan, wan.catalogue, network, [(source, target)])


def _outcome(wan: NetworkView, outcome: Outcome) -> Outcome:
    """Return an outcome with ids of regions in place of names."""
    where = f"outcomes {outcome.id}"
    found = {
        end: wan.resolve(getattr(outcome, end), f"{where}, {end}").region_id
        for end in ("src", "dst", "via")
        if getattr(outcome, end) != DIRECT
    }
    return replace(outcome, **found)


def _lease(wan: NetworkView, lease: LeasedLink) -> LeasedLink:
    """Return a lease with ids of regions in place of names."""
    src, dst = (
        wan.resolve(getattr(lease, end), f"leases {lease.id}, {end}").region_id
        for end in ("src", "dst")
    )
    if src == dst:
        raise InputError(
            f"leases {lease.id}, dst",
            f"is the source itself ({src})",
            value=lease.dst,
            remedy="A lease is of a link between two regions: give the one that receives.",
        )
    return replace(lease, src=src, dst=dst)
