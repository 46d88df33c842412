"""One transfer: where to send it through, with how many VMs and connections."""

from __future__ import annotations

import time
from dataclasses import replace

from planner.model.errors import DataError, InputError
from planner.model.link import Link
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.questions.network_view import NetworkView
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
    resolved = replace(request, src=source, dst=target, relays=relays, **common)
    network = wan.network_between(source, target, vm_types(wan, request))
    now_s = time.time()
    if verified := network.verified.get((source, target)):
        from planner.transfer.calibration import calibrated

        network = calibrated(network, verified, now_s)
    if request.max_age_s is not None:
        _refuse_old(network.link(source, target), now_s, request.max_age_s)
    return recommend(
        resolved,
        network,
        prices(wan, network, request),
        catalogue=wan.catalogue,
        now_s=now_s,
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
