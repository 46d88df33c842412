"""One transfer: where to send it through, with how many VMs and connections."""

from __future__ import annotations

import time
from dataclasses import replace

from planner.exploring.outcome import DIRECT, Outcome
from planner.model.calibration import calibrated
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS, gbps_text
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import MOST_VMS_UNASKED, TransferRequest
from probes.importers.physics import PhysicalGate
from probes.samples import Sample
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import NetworkView, by_regions, prices, vm_types, with_ends

RECEIVER = "A lease is of a link between two regions: give the one that receives."


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
        leases=[with_ends(wan, lease, f"leases {lease.id}", RECEIVER) for lease in request.leases],
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


def possible_outcomes(
    catalogue: Catalogue, network: Network, request: TransferRequest
) -> tuple[list[Outcome], tuple[str, ...]]:
    """Return the outcomes that VMs at both ends can have had, and a warning of the others.

    Whoever may report transfers can say that one was done at once, and who writes rows can mistake
    the unit. A transfer may have used as many VMs as plans take unasked, or as this one may.
    """
    gate = PhysicalGate(catalogue)
    vms = max(MOST_VMS_UNASKED, request.vms or 0, *request.vms_in.values())
    possible: list[Outcome] = []
    faults: list[str] = []
    for one in request.outcomes:
        src_vm, dst_vm = (
            network.sites[end].vm_type if end in network.sites else "" for end in (one.src, one.dst)
        )
        mbps = MBPS_PER_GBPS * one.rate_gbps / vms
        of_one_vm = Sample(
            *(one.src, one.dst, "aggregate_mbps", mbps, one.ended_s, "transfer"),
            src_vm=src_vm,
            dst_vm=dst_vm,
        )
        if fault := gate.fault(of_one_vm):
            faults.append(f"{one.id} ({gbps_text(one.rate_gbps)} Gbit/s): {fault}")
        else:
            possible.append(one)
    if not faults:
        return possible, ()
    count = "1 outcome does" if len(faults) == 1 else f"{len(faults)} outcomes do"
    said = f"{count} not count, were it of {vms} VMs at each end: {faults[0]}."
    return possible, (said,)
