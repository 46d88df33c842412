"""Which outcomes of past transfers can be true: they pass the gate that samples pass."""

from __future__ import annotations

from planner.exploring.outcome import Outcome
from planner.model.catalogue import Catalogue
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS, gbps_text
from planner.transfer.request import MOST_VMS_UNASKED, TransferRequest
from probes.importers.physics import PhysicalGate
from probes.samples import Sample


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
