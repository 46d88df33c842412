"""Links that carry more at first: their mean rate over the volume of a transfer.

A link falls from ``a`` to ``b`` after a volume G, or after a time T, in which it has carried
``G = a T / 8``. Over a volume V beyond G it takes ``8 G / a + 8 (V - G) / b``, so on average it
carries ``V / (G / a + (V - G) / b)``. A path that takes a share of V only is better off than that:
it is on the safe side. So is what more VMs have: the volume at the first rate counts once.

Network credits of a VM are such a fall, too: a rate above what its type is documented to have for
long is that of a burst, which "typically" lasts 5 to 60 minutes (EC2 user guide, instance network
bandwidth, read 2026-11): the least of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.model.catalogue import VmType
from planner.model.estimate import Estimate, RateCut
from planner.model.link import Link, Site
from planner.model.link_array import KINDS
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, duration_text

BURST_S = 300.0
WELL_ABOVE = 1.25
"""Times what is documented: what the errors of a test don't explain."""


def with_first_rates(network: Network, src: str, dst: str, volume_gb: float) -> Network:
    """Return the network as a transfer that begins now finds it, on average over its volume.

    Only links that it may use are looked at, directly and over one relay.
    """
    changed = []
    for link, cut in _links_that_fall(network, src, dst):
        more = average_gbps(cut, volume_gb) / cut.after_gbps
        changed.append(replace(link, aggregate_gbps=link.aggregate_gbps.scaled(more)))
    return network.with_(links=network.usual.with_links(changed)) if changed else network


def with_lasting_caps(
    network: Network, vm_types: Mapping[str, VmType], volume_gb: float
) -> Network:
    """Return the network with caps that VMs have on average over a volume, where tests found more.

    Only types with network credits: what one of their VMs sends and receives for long is
    documented, and tests that end before the credits do find the burst; a single flow that passed
    the documented rate shows that there are credits.
    """
    changed = {}
    for name, site in network.sites.items():
        vm = vm_types.get(site.vm_type)
        if vm and vm.wan_burst_gbps:
            lasting, flows = (vm.egress_gbps, vm.ingress_gbps), _fastest_flows_gbps(network, name)
            known = zip((site.egress_gbps, site.ingress_gbps), lasting, flows, strict=True)
            egress, ingress = (_over_volume(*of, vm, volume_gb) for of in known)
            if egress is not site.egress_gbps or ingress is not site.ingress_gbps:
                changed[name] = replace(site, egress_gbps=egress, ingress_gbps=ingress)
    return network.with_(sites={**network.sites, **changed}) if changed else network


def _fastest_flows_gbps(network: Network, name: str) -> tuple[float, float]:
    """Return the most that one flow was measured at out of, and into, a site."""
    links, at = network.links, network.index[name]
    found = []
    for cells in (links.row(at), links.column(at)):
        measured = links.kinds(cells, "per_flow_mbps") == KINDS.index("measured")
        mbps = cells["per_flow_mbps"]["expected"][measured]
        found.append(float(mbps.max(initial=0.0)) / MBPS_PER_GBPS)
    return found[0], found[1]


def _over_volume(
    cap: Estimate, lasting_gbps: float, flow_gbps: float, vm: VmType, volume_gb: float
) -> Estimate:
    if cap.origin.method == "vm-type" and flow_gbps > WELL_ABOVE * cap.expected:
        cap = cap.scaled(vm.wan_burst_gbps / cap.expected)  # a flow passed it
    if cap.expected <= WELL_ABOVE * lasting_gbps or cap.origin.rate_cut:
        return cap
    first_gb = cap.expected * BURST_S / BITS_PER_BYTE
    cut = RateCut(BURST_S, first_gb, cap.expected, lasting_gbps, "burst")
    return cap.scaled(average_gbps(cut, volume_gb) / cap.expected)


def average_gbps(cut: RateCut, volume_gb: float) -> float:
    """Return the mean rate of a link over a volume."""
    first_gb = _first_gb(cut)
    if volume_gb <= first_gb:
        return cut.before_gbps
    return volume_gb / (first_gb / cut.before_gbps + (volume_gb - first_gb) / cut.after_gbps)


def in_words(link: Link, volume_gb: float) -> str | None:
    """Describe a link whose rate falls, for a plan; None for other links."""
    cut = link.aggregate_gbps.origin.rate_cut
    if cut is None:
        return None
    after = f"{cut.after_gb:.3g} GB" if cut.cause == "volume" else f"{cut.after_s:.0f} s"
    fall = (
        f"{link.src} -> {link.dst} falls from {cut.before_gbps:.3g} to {cut.after_gbps:.3g} Gbit/s "
        f"a VM pair after {after}"
    )
    if cut.cause == "burst":
        return f"{fall}: the plan counts on the second alone."
    if volume_gb <= _first_gb(cut):
        return f"{fall}; this transfer may end before."
    return f"{fall}: {average_gbps(cut, volume_gb):.3g} on average over {volume_gb:g} GB."


def burst_in_words(site: Site, cut: RateCut) -> str:
    """Describe a VM with a token bucket, for a plan that counts on the lasting rate alone."""
    rest = ""
    if cut.refill_gbps:
        tokens_gb = cut.after_gb * (1 - cut.after_gbps / cut.before_gbps)
        rest = f", and rests {duration_text(BITS_PER_BYTE * tokens_gb / cut.refill_gbps)} for more"
    return (
        f"A VM at {site.region} sends {cut.before_gbps:.3g} Gbit/s for the first "
        f"{cut.after_gb:.3g} GB, then {cut.after_gbps:.3g}{rest}: the plan counts on what lasts."
    )


def credits_in_words(site: Site, vm: VmType) -> str:
    """Describe what credits of a VM's type mean for a plan; empty for types without."""
    cap, burst_gbps = site.egress_gbps, vm.wan_burst_gbps
    if burst_gbps:
        said = (
            f"{vm.id} VMs at {site.region} have {vm.egress_gbps:g} Gbit/s for long, and up to "
            f"{burst_gbps:g} while network credits last (5 to 60 minutes, says EC2's guide): "
            f"the plan counts on {cap.expected:.3g}."
        )
        if cap.expected <= WELL_ABOVE * vm.egress_gbps:
            return said
        return f"{said} Tests that outlast the bursts tell (`relayd probe --aggregate-time 60min`)."
    if vm.burstable:
        return (
            f"{vm.id} VMs at {site.region} are burstable: without CPU credits they may send less "
            f"than the {vm.egress_gbps:g} Gbit/s that are documented."
        )
    return ""


def _links_that_fall(network: Network, src: str, dst: str) -> Iterator[tuple[Link, RateCut]]:
    """Yield the links out of a source, and into a destination, whose rate falls.

    But for a burst at the start, which is the VM's, and which all its links share.
    """
    links, index, names = network.usual, network.index, network.usual.regions
    out = [(src, names[k], cut) for k, cut in links.rate_cuts(links.row(index[src]))]
    into = [(names[k], dst, cut) for k, cut in links.rate_cuts(links.column(index[dst]))]
    into = [one for one in into if links.link(src, one[0])]
    yield from ((links[a][b], cut) for a, b, cut in (*out, *into) if cut.cause != "burst")


def _first_gb(cut: RateCut) -> float:
    return cut.before_gbps * cut.after_s / BITS_PER_BYTE if cut.cause == "time" else cut.after_gb
