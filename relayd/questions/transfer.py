"""The question how to move a volume from one region to another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planner.model.aliases import Resolution, zone_of
from planner.model.answer import Cost
from planner.model.baseline.backbone import ZONES_MS
from planner.model.baseline.modelled_links import between_zones
from planner.model.calibration import calibrated
from planner.model.catalogue import Catalogue, Fee, Tier
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices, provider_of
from planner.transfer.plan import CopyService, Offer, Plan
from planner.transfer.request import TransferRequest
from relayd.catalogue.copies import REQUESTS, copies
from relayd.questions.question import Question, TextOption
from relayd.questions.resolving import (
    ITSELF,
    NetworkView,
    answered,
    by_regions,
    network_of,
    prices_of,
)

_FREE = "{} takes the data itself: the VMs counted in {} stand for it, and are not charged."


def plan_transfer(wan: NetworkView, request: TransferRequest) -> Plan:
    """Answer a :class:`~planner.transfer.request.TransferRequest` with names of regions.

    Within a region, ends are two zones, or VMs of one. Raises an InputError if these are buckets,
    or `relays` names a region that can't relay.
    """
    from planner.transfer.recommendation import decided, recommend

    source, target, found = wan.resolve_pair(request.src, request.dst)
    common = by_regions(wan, request, {"src": source, "dst": target})
    relays = request.relays
    if relays not in {"any", "one", "none"}:
        relays = wan.resolve(relays, "relays").region_id
        if relays in {source, target}:
            raise InputError("relays", "is an end of the transfer", value=relays)
        if relays in common["avoid"]:
            raise InputError("relays", "is forbidden by the rules", value=relays)
        partitions = {wan.catalogue.region(end).partition for end in (source, target)}
        if (relay := wan.catalogue.region(relays)).is_apart and relay.partition not in partitions:
            problem = f"is in a partition of its own ({relay.partition})"
            remedy = "Such a region relays for its partition alone."
            raise InputError("relays", problem, value=relays, remedy=remedy)
    network, known = network_of(wan, (source, target), request), wan.catalogue
    notes: tuple[str, ...] = ()
    if source == target:
        vms = common["vms_in"].get(source)
        source, target, known, notes = _zones(known, request, source, found)
        network = between_zones(network, known, (source, target), request.addresses)
        common["vms_in"] = dict.fromkeys((source, target), vms) if vms else {}
    resolved = replace(request, src=source, dst=target, relays=relays, **common)
    now_s = time.time()
    if verified := network.verified.get((source, target)):
        network = calibrated(network, verified, now_s)
    recommended = partial(recommend, catalogue=known, now_s=now_s)
    catalogue = _with_requests(known, resolved, found)
    prices = prices_of(catalogue, network, request, [target] if found[1].bucket else ())
    pairs = [(source, target)]

    def outcome(request: TransferRequest, network: Network, prices: Prices) -> tuple[float, Cost]:
        chosen = decided(request, network, prices, known).chosen
        return chosen.duration_s, chosen.cost

    of = wan, request, resolved, network, pairs, recommended, found, notes
    answer = answered(*of, prices=prices, decided=outcome)
    return _with_services(answer, found)


def _zones(
    catalogue: Catalogue, request: TransferRequest, region: str, found: Sequence[Resolution]
) -> tuple[str, str, Catalogue, tuple[str, ...]]:
    """Return both ends of a transfer within a region, a catalogue that has them, and a note."""
    if any(end.bucket for end in found):
        remedy = "Within a region a store copies by itself: name zones of VMs, or another region."
        raise InputError("dst", ITSELF.format(region), value=request.dst, remedy=remedy)
    kept = catalogue.region(region)
    src, dst = (zone_of(name, kept) for name in (request.src, request.dst))
    ends = src or region, dst or region
    which = "two zones" if src and dst else "taken for two zones, the dearer case"
    if ends[0] == ends[1]:
        ends = ends[0], f"{ends[0]}-other-{'vm' if src else 'zone'}"
    catalogue = replace(catalogue, regions={**catalogue.regions, **dict.fromkeys(ends, kept)})
    price = catalogue.egress_price(*ends)
    if src == dst != "":
        which = "one zone"
        if request.addresses != "public":
            free = replace(price, name=f"{price.name}, in one", tiers=(Tier(0.0),))
            catalogue = replace(catalogue, egress_prices=(*catalogue.egress_prices, free))
    note = (
        f"Both ends are in {region}: {which}. The rate is what caps of VMs allow, a round trip of "
        f"{ZONES_MS:g} ms is assumed, and no relay is considered."
    )
    return *ends, catalogue, (note,)


def _with_requests(
    catalogue: Catalogue, request: TransferRequest, ends: Sequence[Resolution]
) -> Catalogue:
    """Add the requests that read and write a transfer's objects to the fees of a catalogue.

    Raises InputError if there are objects, and no price of requests at an end.
    """
    if not request.objects:
        return catalogue
    fees = list(catalogue.fees)
    for end, kind in zip(ends, ("get", "put"), strict=True):
        if not (prices := copies()["requests"].get(provider_of(end.region_id))):
            problem = "has no known price of requests there: state it as a fee in a catalogue file"
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


def _with_services(plan: Plan, ends: Sequence[Resolution]) -> Plan:
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
    if not found:
        return plan
    services, path = sorted(found, key=lambda one: one.cost_usd), tuple(plan.direct.vms)
    offers = [
        Offer(
            *(one.name, "service", (), None, None, Cost.of(one.cost_usd, 0.0), {}, (path,)),
            why=f"Needs no VM, in a time not known; its own fee is ${one.usd_per_gb:g} a GB",
            emit=one.emit,
        )
        for one in services
    ]
    return replace(plan, services=tuple(services), offers=(*plan.offers, *offers))


TRANSFER = Question(
    name="transfer",
    method="plan",
    path="/v1/plans",
    command="plan",
    summary="Recommend how to move a volume",
    request=TransferRequest,
    answer=Plan,
    solve=plan_transfer,
    example={
        "src": "us-east",
        "dst": "sa",
        "volume_gb": 500,
        "vms": 4,
        "avoid": ["provider:azure"],
    },
    schema_name="PlanRequest",
    order=1,
    shown=(
        TextOption("candidates", "--candidates"),
        TextOption("assumed", "--volume", given=False),
    ),
    emits=True,
)
