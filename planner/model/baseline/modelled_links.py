"""Sites and links from models: before anything is measured, of further regions and VM types.

Round-trip times come from :mod:`planner.model.baseline.backbone`, windows and caps from VM types of
the catalogue, and aggregates from the laws of :mod:`planner.model.throughput`. What is of links is
arithmetic on arrays, a value for each link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import exp, inf, log

import numpy as np

from planner.model.baseline import backbone
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError
from planner.model.estimate import (
    ADDRESS_KINDS,
    BOUNDS,
    AddressKind,
    Estimate,
    Figures,
    Kind,
    Origin,
    WantedAddresses,
)
from planner.model.link import Site
from planner.model.link_array import (
    FIGURE,
    KINDS,
    LINK,
    Bools,
    Floats,
    Ints,
    LinkArray,
    Origins,
    Records,
    bounds_of,
    limits_of,
    opaque,
    put,
    scaled,
    slow_connections_of,
    taken,
)
from planner.model.network import Network, Snapshot
from planner.model.throughput import (
    CLASSES_MS,
    LAW_CONNECTIONS,
    LAW_VM_EGRESS_GBPS,
    MBIT_PER_MB,
    PRIVATE_LAW_VM_EGRESS_GBPS,
    STOCK_IN_FLIGHT_MB,
    STOCK_RANGE_MB,
    STOCK_RANGES_MB,
    TUNED_WINDOW_MB,
    UNKNOWN_SPREAD,
    AggregateLaw,
    crosses_border,
    law_of,
    stock_window_mb,
)
from planner.model.units import MBPS_PER_GBPS, MS_PER_S

AS_OF = "2022-05-01"
WINDOW_SPREAD_OF_TYPE = 0.15
WINDOW_ERROR = 0.33  # a receiver of the type, but with settings not seen: 3 MB +- a third
CAP_ERROR = 0.06
NO_CAP_KNOWN = Estimate(inf, inf, inf, Origin("baseline", "vm-type-unknown"))
BY_BACKBONE = Origin("baseline", "backbone")
_VM_CAPS = Origin("baseline", "vm-caps")
HOSTS_TUNED = Estimate(*TUNED_WINDOW_MB, Origin("baseline", "hosts-tuned"))

# ---- sites ---------------------------------------------------------------------------------------


def baseline_site(region: str, catalogue: Catalogue, chosen: Mapping[str, str] = {}) -> Site:
    """Return a region's site with the caps and the window of its VM type.

    Without a VM type for its provider, caps are unknown and the window is Linux's default.
    """
    try:
        vm = catalogue.vm_type(region, chosen)
    except DataError:  # a provider of which only measurements are known
        network = catalogue.region(region).private_network
        caps = NO_CAP_KNOWN, NO_CAP_KNOWN, stock_window(region)
        return Site(region, "", *caps, private_network=network)
    origin = Origin("baseline", "vm-type", figures=Figures(vm_type=vm.id, note=vm.source))
    private_egress_gbps = private_ingress_gbps = None
    if (sends_gbps := vm.region_egress_gbps) is not None and sends_gbps > vm.egress_gbps:
        private_egress_gbps = within(sends_gbps, CAP_ERROR, origin)
        # A VM takes in what another one of its type can send; no provider limits less than that.
        receives_gbps = max(vm.ingress_gbps, sends_gbps)
        private_ingress_gbps = within(receives_gbps, CAP_ERROR, origin)
    window_mb = stock_window(region)
    if vm.hosts == "tuned":
        window_mb = HOSTS_TUNED
    elif vm.window_mb != window_mb.expected:  # of a type that was measured
        window_mb = within(vm.window_mb, WINDOW_ERROR, origin)
    return Site(
        region,
        vm.id,
        within(vm.egress_gbps, CAP_ERROR, origin),
        within(vm.ingress_gbps, CAP_ERROR, origin),
        window_mb,
        private_egress_gbps=private_egress_gbps,
        private_ingress_gbps=private_ingress_gbps,
        private_network=catalogue.region(region).private_network,
    )


def stock_window(region: str) -> Estimate:
    """Return the receive window of hosts as they come, of a type that no one measured."""
    low, high = STOCK_RANGES_MB.get(region.partition(":")[0], STOCK_RANGE_MB)
    return Estimate(low, stock_window_mb(region), high, Origin("baseline", "system-default"))


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
    if not law.holds_for_vms or not of_type or cap_gbps <= of_law_gbps:
        return 1.0
    return cap_gbps / of_law_gbps


def least_cap(src: Site, dst: Site, address: AddressKind = "public") -> Estimate:
    """Return the cap of one VM that holds a pair: the lower of its egress and ingress caps."""
    return min(src.egress(address), dst.ingress(address), key=lambda cap: cap.expected)


def flow_caps_gbps(
    sites: Iterable[Site], catalogue: Catalogue, address: AddressKind = "public"
) -> tuple[Floats, Floats]:
    """Return the caps of a single flow out of sites, and into them.

    Infinite where no type is known. Over private addresses, where those of a VM have a cap of their
    own, none is documented but that one.
    """
    caps = []
    for site in sites:
        vm = catalogue.vm_types.get(site.vm_type)
        of_both = (vm.flow_gbps, vm.flow_into_gbps) if vm else (inf, inf)
        private = site.private_egress_gbps if address == "private" else None
        caps.append([max(cap, private.expected) if private else cap for cap in of_both])
    out, into = np.array(caps, np.float64).reshape(-1, 2).T
    return out, into


def baseline_regions(catalogue: Catalogue) -> list[str]:
    """Return the ids of the regions that are part of the graph before anything is measured."""
    return [region.id for region in catalogue.regions.values() if region.baseline]


def within(value: float, error: float, origin: Origin) -> Estimate:
    """Return an estimate whose bounds are this relative error away."""
    return Estimate(value / (1 + error), value, value * (1 + error), origin)


# ---- throughput ----------------------------------------------------------------------------------


def set_by_models(
    rows: Records,
    sites: Sequence[Site],
    catalogue: Catalogue,
    ends: tuple[Ints, Ints],
    rtt_kinds: Ints,
    address: AddressKind,
    origins: Origins,
) -> Bools:
    """Complete links between n sites by what models say; False where they know no rate.

    One flow reaches its window over the round-trip time. Many reach what the providers'
    law says, within both caps and their windows. `rows` of LINK have round-trip times, of kinds
    that are positions in KINDS, and loss; the rest is written, with numbers of origins.
    """
    src, dst = ends
    egress = taken(bounds_of(site.egress(address) for site in sites), src)
    ingress = taken(bounds_of(site.ingress(address) for site in sites), dst)
    lower = egress["expected"] <= ingress["expected"]
    caps = np.where(lower, opaque(egress), opaque(ingress)).view(FIGURE)
    flows_out, flows_in = flow_caps_gbps(sites, catalogue, address)
    flows, rates, rtts_ms = rows["per_flow_mbps"], rows["aggregate_gbps"], rows["rtt_ms"]
    windows_mb = windows_of(sites, ends)
    caps_mbps = np.minimum(flows_out[src], flows_in[dst]) * MBPS_PER_GBPS
    at_cap = set_flows(flows, windows_mb, rtts_ms, caps_mbps)
    window_kinds = np.array([KINDS.index(site.window_mb.source) for site in sites])[dst]
    of_flow = np.zeros((len(KINDS), len(KINDS)), np.int64)
    for window, rtt in set(zip(window_kinds.tolist(), rtt_kinds.tolist(), strict=True)):
        origin = origin_of_flow("baseline", KINDS[window], KINDS[rtt])
        of_flow[window, rtt] = origins.number_of(origin)
    flows["evidence"] = of_flow[window_kinds, rtt_kinds]
    flows["evidence"][at_cap] = origins.held_to("flow-cap", flows["evidence"][at_cap])
    domains = [catalogue.region(site.region).law_domain for site in sites]
    set_rates(rates, sites, domains, ends, rtts_ms, caps, address, origins)
    known: Bools = np.isfinite(rates["expected"])
    windows_gbps = scaled(flows, LAW_CONNECTIONS / MBPS_PER_GBPS)
    held = held_to_windows(rates, windows_gbps)
    rates["evidence"][held] = origins.held_to("windows", rates["evidence"][held])
    rows["limited_by"] = limits_of(rates, caps, windows_gbps)
    regions = [site.region for site in sites]
    rows["slow_connections"] = slow_connections_of(regions, ends, rows["limited_by"])
    rows["address"] = ADDRESS_KINDS.index(address) + 1
    return known


def windows_of(sites: Sequence[Site], ends: tuple[Ints, Ints]) -> Records:
    """Return the windows of connections between some of n sites, in MB.

    A receiver's; of one as it comes, no more than the sender keeps in flight. What was measured or
    raised was so with its senders.
    """
    src, dst = ends
    sent = [STOCK_IN_FLIGHT_MB.get(site.region.partition(":")[0], inf) for site in sites]
    tuned = np.array([site.window_mb.origin.method == "hosts-tuned" for site in sites], bool)
    stock = np.array([site.window_mb.origin.method == "system-default" for site in sites], bool)
    found = taken(bounds_of(site.window_mb for site in sites), dst)
    sent_mb = np.where(stock[dst] & ~tuned[src], np.array(sent)[src], inf)
    held = np.minimum(1.0, sent_mb / found["expected"])
    found["low"] *= held
    found["expected"] *= held
    return found


def set_flows(flows: Records, windows_mb: Records, rtts_ms: Records, caps_mbps: Floats) -> Bools:
    """Set the steady throughput of one flow, ``min(W / RTT, cap)``; errors add in squares.

    Marks the flows that their cap holds.
    """
    window, rtt = windows_mb["expected"], rtts_ms["expected"]
    with np.errstate(over="ignore"):  # over a round trip of next to no time
        unlimited = MBIT_PER_MB * window * MS_PER_S / rtt
    below = np.hypot(window / windows_mb["low"] - 1, rtts_ms["high"] / rtt - 1)
    above = np.hypot(windows_mb["high"] / window - 1, rtt / rtts_ms["low"] - 1)
    flows["low"] = np.minimum(unlimited / (1 + below), caps_mbps * (1 - CAP_ERROR))
    flows["expected"] = np.minimum(unlimited, caps_mbps)
    flows["high"] = np.minimum(unlimited * (1 + above), caps_mbps)
    at_cap: Bools = unlimited > caps_mbps
    return at_cap


def held_to_windows(rates: Records, windows_gbps: Records) -> Bools:
    """Hold rates of many connections to what their windows allow; mark those that these change.

    Where one of the two is not known (NaN), rates stay.
    """
    held: Bools = windows_gbps["expected"] < rates["expected"]
    for bound in BOUNDS:
        less = windows_gbps[bound] < rates[bound]
        rates[bound] = np.where(less, windows_gbps[bound], rates[bound])
    return held


def set_rates(
    rates: Records,
    sites: Sequence[Site],
    domains: Sequence[str],
    ends: tuple[Ints, Ints],
    rtts_ms: Records,
    caps: Records,
    address: AddressKind,
    origins: Origins,
    shares: Floats | None = None,
) -> None:
    """Set the saturated throughput of VM pairs, and the number of its origin.

    A VM larger than those that a law is of is expected to reach as much more as its cap allows.
    Infinite where neither a law nor a cap is known, and across China's border. Of VMs of other
    sizes, a share of the law may be given for each site; `domains` are :attr:`.Region.law_domain`.
    """
    src, dst = ends
    rates["low"] = caps["expected"] * exp(-UNKNOWN_SPREAD.below)
    rates["expected"], rates["high"] = caps["expected"], caps["high"]
    rates["evidence"] = origins.number_of(_VM_CAPS)
    distance = np.searchsorted(CLASSES_MS, rtts_ms["high"], side="right")
    distinct = list(dict.fromkeys(domains))
    number = np.array([distinct.index(name) for name in domains], np.int64)
    key = (number[src] * len(distinct) + number[dst]) * (len(CLASSES_MS) + 1) + distance
    for one in np.unique(key).tolist():
        pair, near = divmod(one, len(CLASSES_MS) + 1)
        a, b = (distinct[place] for place in divmod(pair, len(distinct)))
        if crosses_border(a, b):
            rates["expected"][key == one] = inf
        if law := law_of(a, b, address):
            places = np.flatnonzero(key == one)
            sources = src[places].tolist()
            larger_of = {i: larger_than_law(sites[i], law, address) for i in set(sources)}
            larger = np.array([larger_of[i] for i in sources])
            spread, cap = law.spread_of_class(near), caps[places]
            below = spread.below + np.log(larger)  # what held smaller VMs is not known of each link
            steady = law.steady_gbps(rtts_ms["expected"][places]) * larger
            steady *= 1.0 if shares is None else shares[src[places]]
            bounds = within_caps(steady, below, spread.above, cap)
            for bound, values in zip(BOUNDS, bounds, strict=True):
                rates[bound][places] = values
            for times in set(larger_of.values()):
                error = exp(max(spread.below + log(times), spread.above)) - 1
                figures = Figures(error=round(error, 2), between=(a, b))
                origin = Origin("baseline", "provider-pair-law", figures=figures)
                rates["evidence"][places[larger == times]] = origins.number_of(origin)


def within_caps(
    rates: Floats, below: Floats, above: Floats | float, caps: Records
) -> tuple[Floats, Floats, Floats]:
    """Return the bounds of rates by laws, of VM pairs whose VMs have caps.

    Nothing is held to the middle of a cap, whose own bounds tell how surely it is known: the high
    bound is held to the cap's high bound.
    """
    expected = np.minimum(rates, caps["expected"])
    return (
        np.minimum(np.minimum(rates * np.exp(-below), caps["low"]), expected),
        expected,
        np.maximum(expected, np.minimum(rates * np.exp(above), caps["high"])),
    )


# ---- networks ------------------------------------------------------------------------------------


def baseline_links(
    sites: Sequence[Site], catalogue: Catalogue, wanted: Bools, address: AddressKind = "public"
) -> LinkArray:
    """Return the wanted links, (n, n), from models alone, but for regions without coordinates."""
    regions = [catalogue.region(site.region) for site in sites]
    placed = np.array([region.is_placed for region in regions], bool)
    src, dst = np.nonzero(wanted & placed[:, None] & placed & ~np.eye(len(sites), dtype=bool))
    expected, distance_km = backbone.rtts_ms(regions, src, dst)
    error, origins = backbone.P90_ERROR, Origins()
    rows = np.zeros(len(src), LINK)
    least = np.maximum(backbone.FIBRE_MS_PER_KM * distance_km, expected / (1 + error))
    rtts_ms = rows["rtt_ms"]
    rtts_ms["low"], rtts_ms["expected"] = np.minimum(expected, least), expected
    rtts_ms["high"] = expected * (1 + error)
    rtts_ms["evidence"] = origins.number_of(BY_BACKBONE)
    rows["loss_pct"] = np.nan
    kinds = np.full(len(src), KINDS.index("baseline"))
    known = set_by_models(rows, sites, catalogue, (src, dst), kinds, address, origins)
    table = np.zeros(wanted.shape, LINK)
    put(table, (src[known], dst[known]), taken(rows, known))
    return LinkArray.of_origins([site.region for site in sites], table, origins.all)


def baseline_network(catalogue: Catalogue, further: Iterable[str] = ()) -> Network:
    """Build the graph of the catalogue's regions, and of further ones, with no measurement at all.

    A provider without a VM type is a DataError.
    """
    names = dict.fromkeys((*baseline_regions(catalogue), *further))
    sites = {name: baseline_site(name, catalogue) for name in names}
    links = baseline_links(list(sites.values()), catalogue, _wanted(sites, sites))
    name = f"baseline-{catalogue.digest[:8] or 'built-in'}"  # which changes with the catalogue
    return Network(sites, links, Snapshot(name, AS_OF, "baseline"))


def with_regions(network: Network, catalogue: Catalogue, regions: Iterable[str]) -> Network:
    """Return a network with the regions that it lacks, and their links, from models."""
    new = [name for name in dict.fromkeys(regions) if name not in network.sites]
    if not new:
        return network
    sites = {**network.sites, **{name: baseline_site(name, catalogue) for name in new}}
    links = baseline_links(list(sites.values()), catalogue, _wanted(sites, new))
    return network.with_(sites=sites, links=network.usual.over(links))


def between_zones(
    network: Network, catalogue: Catalogue, ends: tuple[str, str], addresses: WantedAddresses
) -> Network:
    """Return a network of two zones, or VMs of one, and a link from the first to the second.

    The catalogue has both as keys of one region, whose quotas and fleet they share. EC2 lets a VM
    send less than it receives only out of a region (EC2 user guide, instance network bandwidth).
    """
    address: AddressKind = "public" if addresses == "public" else "private"
    site = network.sites[catalogue.region(ends[0]).id]
    if address == "private" and ends[0].startswith("aws:"):
        cap = max(site.egress(address), site.ingress(address), key=lambda cap: cap.expected)
        site = replace(site, egress_gbps=cap, private_egress_gbps=None)
    quotas = tuple(quota._replace(vm_vcpus=2 * quota.vm_vcpus) for quota in site.quotas)
    site = replace(site, quotas=quotas, vms=site.vms and max(1, site.vms // 2))
    sites = [replace(site, region=end) for end in ends]
    links = baseline_links(sites, catalogue, np.triu(np.ones((2, 2), bool)), address)
    return Network(dict(zip(ends, sites, strict=True)), links, network.snapshot)


def _wanted(sites: Iterable[str], new: Iterable[str]) -> Bools:
    """Return the links into and out of new regions."""
    names, added = list(sites), set(new)
    is_new = np.array([name in added for name in names], bool)
    found: Bools = is_new[:, None] | is_new
    return found
