"""From the names and rules of a request to regions, VM types and prices of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from planner.fields.shared import PricedRequest, RuledRequest
from planner.model.aliases import Resolution, permitted, resolve_many
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.estimate import WantedAddresses
from planner.model.network import Network
from planner.model.pricing import CataloguePrices

if TYPE_CHECKING:  # rooms of questions that are not asked
    from planner.schedule.tariff import Tariff
    from planner.schedule.timed_transfer import TimedTransfer
    from planner.transfer.leased_link import LeasedLink

R = TypeVar("R", "LeasedLink", "Tariff", "TimedTransfer")


class NetworkView(Protocol):
    """The part of :class:`relayd.Wan` that answers are made with."""

    @property
    def catalogue(self) -> Catalogue:
        """Regions, VM types and prices."""

    def network_between(
        self,
        src: str,
        dst: str,
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
    ) -> Network:
        """Return at least the links that a plan between two regions needs."""

    def network_of(
        self,
        regions: Sequence[str],
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
    ) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""

    def resolve(self, name: str, field: str = ..., prefer_provider: str | None = ...) -> Resolution:
        """Return the region that a name or alias stands for."""

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[str, ...]]:
        """Return both ends of a transfer as region ids, with notes on what was chosen."""


def by_regions(wan: NetworkView, request: RuledRequest, ends: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that every question shares, with regions in place of names and rules.

    Parameters
    ----------
    wan : NetworkView
    request : RuledRequest
    ends : mapping
        Name of a field, for errors, to the region in it.
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
    denied = resolve_many(request.avoid, wan.catalogue, field="avoid", known=known).certain
    for name, end in ends.items():
        if end in denied:
            raise InputError(
                name,
                "is itself in a place to avoid",
                value=end,
                remedy="Rules bind relays and both ends: change the rule or the end.",
            )
    return frozenset(known) - may_relay - set(ends.values())


def notes_of(found: Iterable[Resolution]) -> tuple[str, ...]:
    """Return what was understood from names, where that is worth saying."""
    return tuple(resolution.note for resolution in found if resolution.note)


def prices(wan: NetworkView, network: Network, request: PricedRequest) -> CataloguePrices:
    """Return the catalogue's prices at the tiers that this month has reached."""
    return CataloguePrices(wan.catalogue, network, request.month_to_date_gb)


def vm_types(wan: NetworkView, request: PricedRequest) -> dict[str, str]:
    """Return region or provider to a VM type's id in the catalogue.

    Raises
    ------
    InputError
        If a place or a type is not known.
    """
    if not request.vm_types:
        return {}
    chosen = {}
    known = wan.catalogue.vm_types
    providers = {region.partition(":")[0] for region in wan.known_regions()}
    for where, name in request.vm_types.items():
        place = where if where in providers else wan.resolve(where, "vm_types").region_id
        provider = place.partition(":")[0]
        vm_id = name if ":" in name else f"{provider}:{name.removeprefix('Standard_')}"
        if vm_id not in known:
            raise InputError(
                "vm_types",
                f"has what is not a VM type of {provider} in the catalogue",
                value=name,
                remedy=wan.catalogue.near_vm_types(provider, vm_id),
            )
        chosen[place] = vm_id
    return chosen


def with_ends(wan: NetworkView, item: R, where: str, remedy: str) -> R:
    """Return what leads from one region to another with ids of regions in place of names.

    Parameters
    ----------
    wan : NetworkView
    item : LeasedLink, Tariff or TimedTransfer
    where : str
        What errors call it, such as ``transfers backup``.
    remedy : str
        What to do where both names mean one region.
    """
    src = wan.resolve(item.src, f"{where}, src").region_id
    dst = wan.resolve(item.dst, f"{where}, dst").region_id
    if src == dst:
        raise InputError(
            f"{where}, dst", f"is the source itself ({src})", value=item.dst, remedy=remedy
        )
    return item.with_(src=src, dst=dst)
