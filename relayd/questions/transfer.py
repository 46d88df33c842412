"""One transfer: where to send it through, with how many VMs and connections."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from planner.model.errors import DataError, InputError
from planner.model.network import Link
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import MOST_CANDIDATES, TransferRequest
from relayd.questions.circumstances import Circumstances

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def plan_transfer(
    wan: Wan,
    src: str,
    dst: str,
    circumstances: Circumstances,
    *,
    relays: str,
    max_age_s: float | None,
    frontier: bool,
    candidates: int,
    **goal: Any,
) -> Plan:
    """Answer :meth:`relayd.sources.wan.Wan.plan`; ``goal`` goes to the request as it is."""
    if not 1 <= candidates <= MOST_CANDIDATES:
        raise InputError(
            "candidates", f"must be a whole number from 1 to {MOST_CANDIDATES}", value=candidates
        )
    source, target, notes = wan.resolve_pair(src, dst)
    if source == target:
        raise InputError(
            "dst",
            f"is the source itself ({source})",
            value=dst,
            remedy="Name two different regions.",
        )
    forbidden = circumstances.forbidden(wan, {"src": source, "dst": target})
    if relays not in {"any", "one", "none"}:
        relays = wan.resolve(relays, "relays").region_id
        if relays in {source, target}:
            raise InputError("relays", "is an end of the transfer", value=relays)
        if relays in forbidden:
            raise InputError("relays", "is forbidden by the rules", value=relays)
    request = TransferRequest(
        source,
        target,
        margin=circumstances.margin,
        vms=circumstances.vms,
        vms_in=circumstances.vms_by_region(wan),
        connections=circumstances.connections,
        relays=relays,
        forbidden=forbidden,
        vm_start_s=circumstances.vm_start_s,
        **goal,
    )
    network = wan.network_between(source, target, circumstances.checked_vm_types(wan))
    now_s = time.time()
    if verified := network.verified.get((source, target)):
        from planner.model.verification import calibrated

        network = calibrated(network, verified, now_s)
    if max_age_s is not None:
        _refuse_old(network.link(source, target), now_s, max_age_s)
    return recommend(
        request,
        network,
        circumstances.prices(wan, network),
        catalogue=wan.catalogue,
        now_s=now_s,
        with_frontier=frontier,
        candidates=candidates,
        notes=notes,
    )


def _refuse_old(link: Link, now_s: float, max_age_s: float) -> None:
    estimate = link.aggregate_gbps
    if estimate.measured_at_s is None:
        raise DataError(
            f"{link.src} -> {link.dst} has not been measured (its figure is {estimate.source}), "
            "and a greatest age was asked for. Measure or import it, or leave the age out."
        )
    age_s = now_s - estimate.measured_at_s
    if age_s > max_age_s:
        raise DataError(
            f"{link.src} -> {link.dst} was last measured {age_s / 86400:.1f} days ago, more than "
            f"the {max_age_s / 86400:g} days asked for. Measure it again, or allow older data."
        )
