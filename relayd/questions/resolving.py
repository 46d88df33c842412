"""Shared by questions: regions, VM types and prices for the names and rules of a request."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from planner.fields.shared import PricedRequest, RuledRequest
from planner.model.aliases import Resolution, permitted, resolve_many
from planner.model.answer import Cost, PlanOnVms, Recommendation, WithoutOthers
from planner.model.catalogue import Catalogue, Hosts
from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.estimate import WantedAddresses
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from planner.model.rate_cuts import with_lasting_caps
from planner.model.units import duration_text, usd_text
from planner.schedule.request import Tariff, TimedTransfer
from relayd.questions.caveats import Pair, at_border, dated, refuse_old
from relayd.questions.holds import Holds, held_at, refuse_full, what_is_left, when_free, with_room
from relayd.times import utc_text

A = TypeVar("A", bound=Recommendation)
R = TypeVar("R", Tariff, TimedTransfer)
MOST_WAITS = 8
"""Ends of other transfers, the first of all, after which a start is tried."""
ITSELF = "is the source itself ({})"


class NetworkView(Protocol):
    """The part of :class:`relayd.Wan` that answers are made with."""

    @property
    def catalogue(self) -> Catalogue:
        """Regions, VM types and prices."""

    def network_of(
        self,
        regions: Sequence[str],
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
        hosts: Hosts = ...,
    ) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""

    def holds(self) -> Holds:
        """Return the capacity that transfers under way hold now."""

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""

    def at(self, snapshot: str) -> NetworkView:
        """Return the network as an earlier snapshot has it, at today's prices."""

    def resolve(self, name: str, field: str = ..., prefer_provider: str | None = ...) -> Resolution:
        """Return the region that a name or alias stands for."""

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[Resolution, ...]]:
        """Return both ends of a transfer as region ids, with what they were chosen from."""


def answered(
    wan: NetworkView,
    request: PricedRequest,
    resolved: PricedRequest,
    network: Network,
    pairs: Iterable[Pair],
    recommend: Callable[..., A],
    named: Iterable[Resolution] | None = None,
    notes: Iterable[str] = (),
    prices: CataloguePrices | None = None,
    own_plan: str | None = None,
    decided: Callable[..., tuple[float, Cost]] | None = None,
) -> A:
    """Recommend at today's prices, and add caveats on the links that were asked about.

    The request is given as it was asked, and with ids of regions in place of names; what names
    stand for and notes, where the question's answer has room for them. The answer is on what
    transfers under way leave, but for one of them that follows `own_plan`; `decided` tells duration
    and cost of an answer alone, where that takes less time.

    Raises
    ------
    InfeasibleError
        If no plan meets the limits, or none on what is left.
    DataError
        If these links, or their prices, are older than the request allows, or not known.
    """
    prices = prices or prices_of(wan.catalogue, network, request)
    chosen = choices_of(named or ())
    more = {} if named is None else {"notes": (*(one.note for one in chosen if one.note), *notes)}
    holds, solve = wan.holds().without(own_plan), partial(recommend, resolved, **more)
    try:
        refuse_old(request, prices.catalogue, network, pairs)
        if holds.all:
            outcome = partial(decided, resolved) if decided else None
            of = wan.catalogue, network, prices, tuple(pairs), holds
            found = _on_what_is_left(*of, solve, outcome, queue=request.queue)
        else:
            found = solve(network, prices)
    except DataError as fault:
        raise DataError(f"{fault} {at_border(wan.catalogue, network, pairs)}".rstrip()) from None
    if chosen:
        found = replace(found, resolutions=chosen)
    return dated(found, prices.catalogue, network, pairs, request.addresses)


def _on_what_is_left(
    catalogue: Catalogue,
    network: Network,
    prices: CataloguePrices,
    pairs: Collection[Pair],
    holds: Holds,
    recommend: Callable[..., A],
    decided: Callable[..., tuple[float, Cost]] | None,
    *,
    queue: bool,
) -> A:
    """Recommend on what transfers under way leave; with `queue` from when it ends soonest."""

    def solve(held: Holds) -> A:
        refuse_full(network, held, pairs)
        return recommend(*what_is_left(network, prices, held, catalogue))

    starts_at_s = None
    try:
        found = solve(holds)
    except InfeasibleError as fault:
        try:
            found, starts_at_s = when_free(holds, solve)
        except InfeasibleError:
            raise fault from None  # others are not in the way
        if not queue or starts_at_s is None:
            raise with_room(fault, starts_at_s) from None
    if queue and (now := _outcome_of(found)):
        end_s = (starts_at_s or time.time()) + now.duration_s
        for at_s in holds.ends(since_s=starts_at_s or 0.0)[:MOST_WAITS]:
            if (later := _outcome_of(answer := solve(holds.after(at_s)))) is None:
                break
            if at_s + later.duration_s < end_s:
                found, starts_at_s, end_s = answer, at_s, at_s + later.duration_s
    holds = holds if starts_at_s is None else holds.after(starts_at_s)
    ends = {end for pair in pairs for end in pair}
    used = found.vms if isinstance(found, PlanOnVms) else {}
    held = held_at(network, holds, ends.union(used), catalogue)
    without = None
    if any(one.limits for one in held):
        if decided:
            alone: WithoutOthers | None = WithoutOthers(*decided(network, prices))
        else:
            alone = _outcome_of(recommend(network, prices))
        without = alone if alone != _outcome_of(found) else None
    said = [*map(str, held)]
    if without:
        took = f"{duration_text(without.duration_s)} at {usd_text(without.cost_usd.total)}"
        said.append(f"Without these transfers, it would take {took}.")
    if starts_at_s is not None:
        said.insert(0, f"Planned from {utc_text(starts_at_s)}, when others leave enough.")
    more: dict[str, Any] = {"held": held, "without_others": without, "starts_at_s": starts_at_s}
    return replace(found, warnings=(*said, *found.warnings), **more)


def _outcome_of(answer: Recommendation) -> WithoutOthers | None:
    if not isinstance(answer, PlanOnVms):
        return None
    return WithoutOthers(answer.duration_s, answer.cost_usd)


def prices_of(
    catalogue: Catalogue,
    network: Network,
    request: PricedRequest,
    without_vms: Collection[str] = (),
) -> CataloguePrices:
    """Return the catalogue's prices at the tiers that this month has reached."""
    if catalogue.has_interconnects and request.addresses == "public":
        catalogue = replace(catalogue, fees=tuple(fee for fee in catalogue.fees if not fee.gbps))
    return CataloguePrices(catalogue, network, request.month_to_date_gb, without_vms)


def network_of(
    wan: NetworkView, regions: Sequence[str], request: PricedRequest, sent_gb: float = 0.0
) -> Network:
    """Return the network that a question rests on, with caps that last for what is sent in all."""
    of_hosts = request.addresses, request.hosts
    network = wan.network_of(regions, vm_types_of(wan, request), *of_hosts)
    return with_lasting_caps(network, wan.catalogue.vm_types, sent_gb) if sent_gb else network


def choices_of(found: Iterable[Resolution]) -> tuple[Resolution, ...]:
    """Keep buckets, and what names that were not clear stand for, each once."""
    return tuple(dict.fromkeys(one for one in found if one.note or one.bucket))


def each_once(
    field: str, names: Iterable[str], found: Iterable[Resolution], remedy: str
) -> list[str]:
    """Return regions, of which none may be named twice, or raise an InputError."""
    regions = [resolution.region_id for resolution in found]
    for name, region in zip(names, regions, strict=True):
        if regions.count(region) > 1:
            raise InputError(field, f"name a region twice ({region})", value=name, remedy=remedy)
    return regions


def by_regions(wan: NetworkView, request: RuledRequest, ends: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that every question shares, with regions in place of names and rules.

    The ends are the regions of fields, by what errors call these.
    """
    vms_in = {wan.resolve(name, "vms_in").region_id: n for name, n in request.vms_in.items()}
    return {"vms_in": vms_in, "avoid": sorted(forbidden(wan, request, ends)), "allow": ()}


def forbidden(wan: NetworkView, request: RuledRequest, ends: Mapping[str, str]) -> frozenset[str]:
    """Return the regions that must not relay.

    Raises
    ------
    InputError
        If a rule names nothing, or an end is itself in a place to avoid.
    """
    if not request.avoid and not request.allow:
        return frozenset()
    known = wan.known_regions()
    may_relay = permitted(wan.catalogue, allow=request.allow, avoid=request.avoid, known=known)
    denied = resolve_many(request.avoid, wan.catalogue, field="avoid", known=known)
    for name, end in ends.items():
        if end in denied:
            remedy = "Rules bind relays and both ends: change the rule or the end."
            raise InputError(name, "is itself in a place to avoid", value=end, remedy=remedy)
    return frozenset(known) - may_relay - set(ends.values())


def vm_types_of(wan: NetworkView, request: PricedRequest) -> dict[str, str]:
    """Return region or provider to a VM type's id in the catalogue.

    Raises
    ------
    InputError
        If a place or a type is not known.
    """
    chosen = {}
    for where, name in request.vm_types.items():
        is_provider = where in set(map(provider_of, wan.known_regions()))
        place = where if is_provider else wan.resolve(where, "vm_types").region_id
        provider = provider_of(place)
        vm_id = name if ":" in name else f"{provider}:{name.removeprefix('Standard_')}"
        if vm_id not in wan.catalogue.vm_types:
            problem = f"has what is not a VM type of {provider} in the catalogue"
            remedy = wan.catalogue.near_vm_types(provider, vm_id)
            raise InputError("vm_types", problem, value=name, remedy=remedy)
        chosen[place] = vm_id
    return chosen


def with_ends(wan: NetworkView, item: R, where: str, remedy: str) -> R:
    """Return a tariff or transfer with ids of regions in place of names.

    Errors call it what `where` says, such as ``transfers backup``; the remedy is for two names of
    one region.
    """
    src = wan.resolve(item.src, f"{where}, src").region_id
    dst = wan.resolve(item.dst, f"{where}, dst").region_id
    if src == dst:
        raise InputError(f"{where}, dst", ITSELF.format(src), value=item.dst, remedy=remedy)
    return item.with_(src=src, dst=dst)
