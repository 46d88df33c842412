"""The graph before anything is measured: models in place of samples, always labelled baseline.

Round-trip times come from :mod:`planner.model.baseline.backbone`, windows and caps from VM types of
the catalogue, and aggregates from the laws of :mod:`planner.model.throughput`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from math import exp, inf, log, sqrt
from types import ModuleType

from planner.model.baseline import backbone  # a plan on measured links needs none
from planner.model.catalogue import Catalogue, Region
from planner.model.errors import DataError
from planner.model.estimate import AddressKind, Estimate, Figures, Kind, Origin
from planner.model.link import Link, Site, limit_of
from planner.model.link_states import Pair
from planner.model.network import Network, Snapshot
from planner.model.throughput import (
    DEFAULT_WINDOW_MB,
    LAW_CONNECTIONS,
    LAW_VM_EGRESS_GBPS,
    PRIVATE_LAW_VM_EGRESS_GBPS,
    UNKNOWN_SPREAD,
    AggregateLaw,
    LawSpread,
    distance_class,
    law_of,
    per_flow_mbps,
)
from planner.model.units import MBPS_PER_GBPS

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
    """Return the origin of what is known of a VM by its type: one for all sites that have it."""
    return Origin("baseline", "vm-type", figures=Figures(vm_type=vm_type, note=note))


@cache
def _backbone() -> ModuleType:
    return backbone


def baseline_rtt_ms(src: Region, dst: Region) -> Estimate | None:
    """Return the modelled round-trip time, not below what light in a fibre needs."""
    backbone = _backbone()
    expected = backbone.rtt_ms(src, dst)
    if expected is None:
        return None
    least = backbone.FIBRE_MS_PER_KM * (backbone.distance_km(src, dst) or 0.0)
    error: float = backbone.P90_ERROR
    low = min(expected, max(least, expected / (1 + error)))
    return Estimate(low, expected, expected * (1 + error), BY_BACKBONE)


def flow_estimate(
    window_mb: Estimate, rtt_ms: Estimate, cap_gbps: float, kind: Kind = "baseline"
) -> Estimate:
    """Return one flow's steady throughput from the receiver's window and the round-trip time.

    The bounds combine those of both.
    """
    cap_mbps = cap_gbps * MBPS_PER_GBPS
    expected = per_flow_mbps(window_mb.expected, rtt_ms.expected, cap_mbps)
    # Independent errors add in squares.
    below = sqrt(
        (window_mb.expected / window_mb.low - 1) ** 2 + (rtt_ms.high / rtt_ms.expected - 1) ** 2
    )
    above = sqrt(
        (window_mb.high / window_mb.expected - 1) ** 2 + (rtt_ms.expected / rtt_ms.low - 1) ** 2
    )
    unlimited = per_flow_mbps(window_mb.expected, rtt_ms.expected, inf)
    return Estimate(
        min(unlimited / (1 + below), cap_mbps * (1 - CAP_ERROR)),
        expected,
        min(unlimited * (1 + above), cap_mbps),
        origin_of_flow(kind, window_mb.source, rtt_ms.source),
    )


@cache
def origin_of_flow(kind: Kind, window_kind: Kind, rtt_kind: Kind) -> Origin:
    """Return the origin of a flow that is inferred from its receiver's window."""
    figures = Figures(window_kind=window_kind, rtt_kind=rtt_kind)
    return Origin(kind, "window-over-rtt", figures=figures)


def aggregate_estimate(
    src: Site, dst: Site, rtt_ms: Estimate, proportion: float = 1.0, address: AddressKind = "public"
) -> Estimate | None:
    """Return one VM pair's saturated throughput from the providers' law and both caps.

    None where neither is known. A VM of another size than those that the law is of is taken to
    reach this proportion of it. A larger type is expected to reach as much more as its cap allows,
    and no less than what the law's VMs reach.
    """
    cap = least_cap(src, dst, address)
    law = law_of(src.region, dst.region, address)
    if law is None:
        if cap.expected == inf:
            return None
        low_gbps = cap.expected * exp(-UNKNOWN_SPREAD.below)
        return Estimate(low_gbps, cap.expected, cap.high, Origin("baseline", "vm-caps"))
    spread = law.spread_of_class(distance_class(rtt_ms.high))
    larger = larger_than_law(src, law, address)
    if larger > 1:
        # That the smaller VMs were held by their cap, not by the path, is not known of each link.
        spread = LawSpread(spread.below + log(larger), spread.above)
    providers = (src.region.partition(":")[0], dst.region.partition(":")[0])
    origin = origin_of_law(providers, exp(max(spread)) - 1)
    law_gbps = law.steady_gbps(rtt_ms.expected) * proportion * larger
    return within_cap(law_gbps, spread, cap, origin)


def larger_than_law(src: Site, law: AggregateLaw, address: AddressKind = "public") -> float:
    """Return how many times the VM of a law that is its cap a larger VM may send; 1 for others."""
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


def within_cap(law_gbps: float, spread: LawSpread, cap: Estimate, origin: Origin) -> Estimate:
    """Return what a law says of a VM pair whose VMs have a cap.

    Nothing is held to the middle of a cap, whose own bounds tell how surely it is known: the high
    bound is held to the cap's high bound.
    """
    expected = min(law_gbps, cap.expected)
    return Estimate(
        min(law_gbps * exp(-spread.below), cap.low, expected),
        expected,
        max(expected, min(law_gbps * exp(spread.above), cap.high)),
        origin,
    )


def baseline_link(src: Site, dst: Site, catalogue: Catalogue) -> Link | None:
    """Return a link from models alone, or None where a region has no coordinates."""
    rtt_ms = baseline_rtt_ms(catalogue.region(src.region), catalogue.region(dst.region))
    if rtt_ms is None:
        return None
    return link_by_models(src, dst, rtt_ms, catalogue, "public")


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


def link_by_models(
    src: Site,
    dst: Site,
    rtt_ms: Estimate,
    catalogue: Catalogue,
    address: AddressKind,
    loss_pct: float | None = None,
) -> Link | None:
    """Return a link over a kind of address with throughput from models.

    None where neither a law nor the caps of its VMs are known.
    """
    aggregate = aggregate_estimate(src, dst, rtt_ms, address=address)
    if aggregate is None:
        return None
    flow = flow_estimate(dst.window_mb, rtt_ms, flow_cap_gbps(src, catalogue, address))
    together = flow.scaled(LAW_CONNECTIONS / MBPS_PER_GBPS)
    limit = limit_of(aggregate, src, dst, together, address=address)
    return Link(src.region, dst.region, rtt_ms, flow, aggregate, loss_pct, limit, address)


def baseline_regions(catalogue: Catalogue) -> list[str]:
    """Return the ids of the regions that are part of the graph before anything is measured."""
    return [region.id for region in catalogue.regions.values() if region.baseline]


def baseline_sites(
    catalogue: Catalogue, chosen: Mapping[str, str] = {}, further: Iterable[str] = ()
) -> dict[str, Site]:
    """Return the sites of the catalogue's baseline regions and of some further ones."""
    names = dict.fromkeys((*baseline_regions(catalogue), *further))
    return {name: baseline_site(name, catalogue, chosen) for name in names}


def baseline_snapshot(catalogue: Catalogue) -> Snapshot:
    """Return the baseline's name, which changes with the catalogue."""
    return Snapshot(f"baseline-{catalogue.digest[:8] or 'built-in'}", AS_OF, "baseline")


def baseline_network(
    catalogue: Catalogue,
    chosen: Mapping[str, str] = {},
    ends: tuple[str, str] | None = None,
    further: Iterable[str] = (),
) -> Network:
    """Build the graph of the catalogue's regions with no measurement at all.

    Parameters
    ----------
    catalogue : Catalogue
    chosen : mapping, optional
        Region or provider to VM type, in place of the catalogue's defaults.
    ends : (src, dst), optional
        Build only the links out of src and into dst: all that one transfer's plan needs.
    further : iterable of str, optional
        Regions to add that are not part of the catalogue's baseline.

    Raises
    ------
    DataError
        If a region's provider has no VM type.
    """
    sites = baseline_sites(catalogue, chosen, (*(ends or ()), *further))
    links: dict[str, dict[str, Link]] = {}
    for src in sites.values():
        row = {}
        for dst in sites.values():
            if src is dst or (ends and src.region != ends[0] and dst.region != ends[1]):
                continue
            if link := baseline_link(src, dst, catalogue):
                row[dst.region] = link
        links[src.region] = row
    if ends and ends[1] not in links[ends[0]]:
        missing = [e for e in ends if catalogue.region(e).latitude_deg is None]
        raise DataError(
            f"Nothing is known of {ends[0]} -> {ends[1]}: no measurement, and "
            f"{' and '.join(missing)} has no coordinates in the catalogue. Import a "
            "measurement, or add the region to a catalogue file."
        )
    return Network(sites, links, baseline_snapshot(catalogue))


def within(value: float, error: float, origin: Origin) -> Estimate:
    """Return an estimate whose bounds are this relative error away."""
    return Estimate(value / (1 + error), value, value * (1 + error), origin)
