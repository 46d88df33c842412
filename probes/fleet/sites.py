"""The VMs that a user has in each region, as the sites that plans and forecasts assume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.model.baseline.modelled_links import CAP_ERROR, with_vm_types, within
from planner.model.catalogue import Catalogue
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, Estimate, Origin
from planner.model.link import Site
from planner.model.link_array import KINDS, LinkArray, bounds_of
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from probes.fleet.hosts import Fleet, Host

STATED = Origin("baseline", "fleet-file")


@dataclass(frozen=True, slots=True)
class FleetSite:
    """The VMs of a fleet in one region.

    Attributes
    ----------
    vms : int
    vm_type : str
        Id of the catalogue; ``""`` where it is not known.
    egress_gbps, ingress_gbps : float | None
        Caps of one VM, where its owner states them.
    private_network : str
        Name of the network of their private addresses; ``""`` where these are not used.
    """

    vms: int
    vm_type: str = ""
    egress_gbps: float | None = None
    ingress_gbps: float | None = None
    private_network: str = ""


def fleet_sites(fleet: Fleet, catalogue: Catalogue) -> dict[str, FleetSite]:
    """Return the VMs of each region; where hosts of one differ, as the last in the file is."""
    sites: dict[str, FleetSite] = {}
    for host in fleet:
        before = sites.get(host.region)
        sites[host.region] = FleetSite(
            1 + (before.vms if before else 0),
            _vm_type(host, catalogue) or (before.vm_type if before else ""),
            _gbps(host.egress_mbps) or (before.egress_gbps if before else None),
            _gbps(host.ingress_mbps) or (before.ingress_gbps if before else None),
            _private_network(host, fleet),
        )
    return sites


def _private_network(host: Host, fleet: Fleet) -> str:
    """Return the name of the private network that a host is on, as the fleet file says."""
    if fleet.addresses == "public" or not host.private_address:
        return ""
    return "the fleet's" if fleet.addresses == "private" else f"the fleet's at {host.provider}"


def _vm_type(host: Host, catalogue: Catalogue) -> str:
    """Return the id of a host's VM type in the catalogue; ``""`` where it has none."""
    name = f"{host.provider}:{host.vm_type.removeprefix('Standard_')}"
    return name if name in catalogue.vm_types else ""


def _gbps(mbps: float | None) -> float | None:
    return mbps / MBPS_PER_GBPS if mbps else None


def with_fleet(network: Network, catalogue: Catalogue, fleet: Mapping[str, FleetSite]) -> Network:
    """Return a network with a fleet's VMs at the sites where it has any.

    Measurements with VMs of another type give way to models. Stated caps hold until the caps of
    those VMs are measured.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
    fleet : mapping
        Region to its VMs; regions that the network lacks are left out.
    """
    here = {region: vms for region, vms in fleet.items() if region in network.sites}
    if not here:
        return network
    vm_types = {region: vms.vm_type for region, vms in here.items() if vms.vm_type}
    network = with_vm_types(network, catalogue, vm_types)
    sites = {**network.sites, **{name: _site(network.sites[name], here[name]) for name in here}}
    links, others = (_within_caps(found, sites) for found in (network.usual, network.others))
    return network.with_(sites=sites, links=links, others=others)


def _site(site: Site, vms: FleetSite) -> Site:
    out, into = site.private_egress_gbps, site.private_ingress_gbps
    return replace(
        site,
        egress_gbps=_stated(site.egress_gbps, vms.egress_gbps),
        ingress_gbps=_stated(site.ingress_gbps, vms.ingress_gbps),
        vms=vms.vms,
        private_egress_gbps=out and _stated(out, vms.egress_gbps),
        private_ingress_gbps=into and _stated(into, vms.ingress_gbps),
        private_network=vms.private_network or site.private_network,
    )


def _stated(cap_gbps: Estimate, stated_gbps: float | None) -> Estimate:
    if stated_gbps is None or cap_gbps.source == "measured":
        return cap_gbps
    return within(stated_gbps, CAP_ERROR, STATED)


def _within_caps(links: LinkArray, sites: Mapping[str, Site]) -> LinkArray:
    """Return links whose rates, unless they were measured, are within the caps of their ends."""
    if not links:
        return links
    cells = links.whole.copy()
    rate = cells["aggregate_gbps"]
    measured = links.kinds(cells, "aggregate_gbps") == KINDS.index("measured")
    for number, address in enumerate(ADDRESS_KINDS, 1):
        egress = bounds_of(site.egress(address) for site in sites.values())[:, None]
        ingress = bounds_of(site.ingress(address) for site in sites.values())
        caps = np.where(egress["expected"] <= ingress["expected"], egress, ingress)
        over = (cells["address"] == number) & ~measured & (rate["expected"] > caps["expected"])
        for bound in BOUNDS:
            rate[bound][over] = np.minimum(rate[bound], caps[bound])[over]
    return links.with_cells(cells)
