"""Requests of object stores as fees, and the services that copy between buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.model.aliases import Resolution
from planner.model.catalogue import Catalogue, Fee
from planner.model.errors import InputError
from planner.model.pricing import provider_of
from planner.transfer.plan import CopyService, Plan
from planner.transfer.request import TransferRequest
from relayd.catalogue.copies import REQUESTS, copies

_FREE = "{} takes the data itself: the VMs counted in {} stand for it, and are not charged."


def with_requests(
    catalogue: Catalogue, request: TransferRequest, ends: Sequence[Resolution]
) -> Catalogue:
    """Add the requests that read and write a transfer's objects to the fees of a catalogue.

    Raises
    ------
    InputError
        If there are objects, and no price of requests at an end.
    """
    if not request.objects:
        return catalogue
    fees = list(catalogue.fees)
    for end, kind in zip(ends, ("get", "put"), strict=True):
        if not (prices := copies()["requests"].get(provider_of(end.region_id))):
            problem = "has no known price of requests there: state it as a `[[fee]]`"
            raise InputError("objects", problem, value=end.region_id)
        per_gb = request.objects / 1000 / request.volume_gb  # thousands of requests
        fees.append(
            Fee(
                f"{REQUESTS} to {'read' if kind == 'get' else 'write'} objects in {end.region_id}",
                at=(end.region_id,),
                direction="out" if kind == "get" else "in",
                usd_per_gb=prices[kind] * per_gb,
                unit="1,000 requests",
                units_per_gb=per_gb,
                source=prices["source"],
                as_of=prices["as_of"],
            )
        )
    return replace(catalogue, fees=tuple(fees))


def with_services(plan: Plan, ends: Sequence[Resolution]) -> Plan:
    """Name the managed services that copy between a plan's buckets, the cheapest first."""
    src, dst = (end.bucket[:2] for end in ends)
    if dst:
        note = _FREE.format(ends[1].bucket, ends[1].region_id)
        plan = replace(plan, warnings=(*plan.warnings, note))
    found = []
    for name, how in copies()["tool"].items() if src and dst else ():
        if "service" in how and src in how["from"] and dst in how["to"] and plan.direct.cost_usd:
            usd = plan.direct.cost_usd.egress + how["usd_per_gb"] * plan.request["volume_gb"]
            told = how["source"], how["as_of"], how.get("unconfirmed", False)
            found.append(CopyService(how["service"], name, how["usd_per_gb"], usd, *told))
    services = tuple(sorted(found, key=lambda one: one.cost_usd))
    return replace(plan, services=services) if services else plan
