"""The graph before anything is measured: models in place of samples, always labelled baseline.

Round-trip times come from :mod:`planner.model.baseline.backbone`, windows and caps from VM types of
the catalogue, and aggregates from the laws of :mod:`planner.model.throughput`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from math import inf

from planner.model.catalogue import Catalogue
from planner.model.errors import DataError
from planner.model.estimate import AddressKind, Estimate, Figures, Kind, Origin
from planner.model.link import Site
from planner.model.link_states import Pair
from planner.model.network import Snapshot
from planner.model.throughput import (
    DEFAULT_WINDOW_MB,
    LAW_VM_EGRESS_GBPS,
    PRIVATE_LAW_VM_EGRESS_GBPS,
    AggregateLaw,
)

AS_OF = "2022-05-01"
WINDOW_ERROR = 0.33  # a receiver of the type, but with settings not seen: 3 MB +- a third
CAP_ERROR = 0.06
NO_CAP_KNOWN = Estimate(inf, inf, inf, Origin("baseline", "vm-type-unknown"))
BY_BACKBONE = Origin("baseline", "backbone")


def baseline_site(region: str, catalogue: Catalogue, chosen: Mapping[str, str] = {}) -> Site:
    """Return a region's site with the caps and the window of its VM type.

    Without a VM type for its provider, caps are unknown and the window is Linux's default.
    """
    try:
        vm = catalogue.vm_type(region, chosen)
    except DataError:  # a provider of which only measurements are known
        return Site(
            region,
            "",
            NO_CAP_KNOWN,
            NO_CAP_KNOWN,
            within(DEFAULT_WINDOW_MB, WINDOW_ERROR, Origin("baseline", "system-default")),
            private_network=catalogue.region(region).private_network,
        )
    origin = origin_of_vm_type(vm.id, vm.source)
    private_egress_gbps = private_ingress_gbps = None
    if (sends_gbps := vm.region_egress_gbps) is not None and sends_gbps > vm.egress_gbps:
        private_egress_gbps = within(sends_gbps, CAP_ERROR, origin)
        # A VM takes in what another one of its type can send; no provider limits less than that.
        receives_gbps = max(vm.ingress_gbps, sends_gbps)
        private_ingress_gbps = within(receives_gbps, CAP_ERROR, origin)
    return Site(
        region,
        vm.id,
        within(vm.egress_gbps, CAP_ERROR, origin),
        within(vm.ingress_gbps, CAP_ERROR, origin),
        within(vm.window_mb, WINDOW_ERROR, origin),
        private_egress_gbps=private_egress_gbps,
        private_ingress_gbps=private_ingress_gbps,
        private_network=catalogue.region(region).private_network,
    )


@cache
def origin_of_vm_type(vm_type: str, note: str) -> Origin:
    """Return the origin of figures from a VM type: one for all sites that have it."""
    return Origin("baseline", "vm-type", figures=Figures(vm_type=vm_type, note=note))


@cache
def origin_of_flow(kind: Kind, window_kind: Kind, rtt_kind: Kind) -> Origin:
    """Return the origin of a flow that is inferred from its receiver's window."""
    figures = Figures(window_kind=window_kind, rtt_kind=rtt_kind)
    return Origin(kind, "window-over-rtt", figures=figures)


def larger_than_law(src: Site, law: AggregateLaw, address: AddressKind = "public") -> float:
    """Return the ratio of a larger VM's cap to that of a law whose VMs it limits; else 1."""
    provider = src.region.partition(":")[0]
    of_law_gbps = LAW_VM_EGRESS_GBPS.get(provider, inf)
    if address == "private":
        of_law_gbps = PRIVATE_LAW_VM_EGRESS_GBPS.get(provider, of_law_gbps)
    cap = src.egress(address)
    cap_gbps = cap.expected
    # A cap that was measured above its type's tells of that VM, not of what the law's VMs lack.
    of_type = cap.origin.method == "vm-type"
    if law.exponent or not of_type or cap_gbps <= of_law_gbps:
        return 1.0
    return cap_gbps / of_law_gbps


@lru_cache(maxsize=1024)
def origin_of_law(providers: Pair, error: float) -> Origin:
    """Return the origin of what a law of two providers says, with its relative error."""
    figures = Figures(error=round(error, 2), between=providers)
    return Origin("baseline", "provider-pair-law", figures=figures)


def least_cap(src: Site, dst: Site, address: AddressKind = "public") -> Estimate:
    """Return the cap of one VM that holds a pair: the lower of its egress and ingress caps."""
    return min(src.egress(address), dst.ingress(address), key=lambda cap: cap.expected)


def flow_cap_gbps(src: Site, catalogue: Catalogue, address: AddressKind = "public") -> float:
    """Return the cap of a single flow out of a site; infinity where no VM type is known.

    Over private addresses, where those of a VM have a cap of their own, none is documented but
    that one.
    """
    vm = catalogue.vm_types.get(src.vm_type)
    if vm is None:
        return inf
    private = src.private_egress_gbps if address == "private" else None
    return max(vm.flow_gbps, private.expected) if private else vm.flow_gbps


def baseline_regions(catalogue: Catalogue) -> list[str]:
    """Return the ids of the regions that are part of the graph before anything is measured."""
    return [region.id for region in catalogue.regions.values() if region.baseline]


def baseline_snapshot(catalogue: Catalogue) -> Snapshot:
    """Return the baseline's name, which changes with the catalogue."""
    return Snapshot(f"baseline-{catalogue.digest[:8] or 'built-in'}", AS_OF, "baseline")


def within(value: float, error: float, origin: Origin) -> Estimate:
    """Return an estimate whose bounds are this relative error away."""
    return Estimate(value / (1 + error), value, value * (1 + error), origin)
