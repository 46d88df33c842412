"""What may be said with any question: VMs, connections, rules for relays, prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from planner.model.aliases import permitted, resolve_many
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.transfer.request import DEFAULT_CONNECTIONS, DEFAULT_MARGIN, DEFAULT_VM_START_S

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


class CommonOptions(TypedDict, total=False):
    """The keywords that every question takes; :class:`Circumstances` says what they mean."""

    margin: float
    vms: int
    vms_in: Mapping[str, int]
    connections: int
    avoid: Sequence[str]
    allow: Sequence[str]
    month_to_date_gb: Mapping[str, float]
    vm_types: Mapping[str, str]
    vm_start_s: float


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for a question, whatever it asks.

    Attributes
    ----------
    margin : float
        How much relays must surely gain before they are recommended (0.1 is ten percent).
    vms : int
        VMs a region: the most for one transfer, the number for many.
    vms_in : mapping
        Region to its own number.
    connections : int
        TCP connections that one VM opens.
    avoid, allow : sequences of str
        Rules for relays: ``provider:aws``, ``country:DE``, ``continent:EU``, or a region.
        A region whose country is not known is not allowed under such a rule.
    month_to_date_gb : mapping
        Provider (or ``*``) to what it has billed this month, for tiered fees.
    vm_types : mapping
        Region or provider to VM type, in place of what was measured or assumed.
    vm_start_s : float
        Time that each VM is paid for before anything is sent.
    """

    margin: float = DEFAULT_MARGIN
    vms: int = 1
    vms_in: Mapping[str, int] = field(default_factory=dict)
    connections: int = DEFAULT_CONNECTIONS
    avoid: Sequence[str] = ()
    allow: Sequence[str] = ()
    month_to_date_gb: Mapping[str, float] = field(default_factory=dict)
    vm_types: Mapping[str, str] = field(default_factory=dict)
    vm_start_s: float = DEFAULT_VM_START_S

    def vms_by_region(self, wan: Wan) -> dict[str, int]:
        """Return the numbers of VMs with the names of regions resolved."""
        return {wan.resolve(name, "vms").region_id: n for name, n in self.vms_in.items()}

    def forbidden(self, wan: Wan, ends: Mapping[str, str]) -> frozenset[str]:
        """Return the regions that must not relay.

        Parameters
        ----------
        wan : Wan
        ends : mapping
            Name of a field to the region in it, for errors.

        Raises
        ------
        InputError
            If a rule names nothing, or an end is itself in a place to avoid.
        """
        if not self.avoid and not self.allow:
            return frozenset()
        known = wan.known_regions()
        may_relay = permitted(wan.catalogue, allow=self.allow, avoid=self.avoid, known=known)
        denied = resolve_many(self.avoid, wan.catalogue, field="avoid", known=known).certain
        for name, end in ends.items():
            if end in denied:
                raise InputError(
                    name,
                    "is itself in a place to avoid",
                    value=end,
                    remedy="Rules bind relays and both ends: change the rule or the end.",
                )
        return frozenset(known) - may_relay - set(ends.values())

    def prices(self, wan: Wan, network: Network) -> CataloguePrices:
        """Return the catalogue's prices at the tiers that this month has reached."""
        for provider, volume_gb in self.month_to_date_gb.items():
            if not 0 <= volume_gb < float("inf"):
                raise InputError(
                    f"month_to_date {provider}", "must be a volume of 0 or more", value=volume_gb
                )
        return CataloguePrices(wan.catalogue, network, self.month_to_date_gb)

    def checked_vm_types(self, wan: Wan) -> dict[str, str]:
        """Return region or provider to a VM type's id in the catalogue."""
        if not self.vm_types:
            return {}
        chosen = {}
        known = wan.catalogue.vm_types
        providers = {region.partition(":")[0] for region in wan.known_regions()}
        for where, name in self.vm_types.items():
            place = where if where in providers else wan.resolve(where, "vm_type").region_id
            provider = place.partition(":")[0]
            vm_id = name if ":" in name else f"{provider}:{name}"
            if vm_id not in known:
                ours = ", ".join(
                    vm.partition(":")[2] for vm in known if vm.startswith(f"{provider}:")
                )
                raise InputError(
                    "vm_type",
                    f"is not a VM type of {provider} in the catalogue",
                    value=name,
                    remedy=f"Known are {ours}; a catalogue file of your own can add more.",
                )
            chosen[place] = vm_id
        return chosen
