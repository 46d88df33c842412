"""The parts of a network over one kind of address, each estimated from samples of its kind alone.

A sample over private addresses says nothing of public ones, which have paths and caps of their own.
To estimate links over private addresses, the caps of these stand in for a site's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.model.estimate import ADDRESS_KINDS, AddressKind
from planner.model.link import Site
from planner.model.link_array import KINDS, LinkArray
from planner.model.network import Network


def with_caps_of(sites: Mapping[str, Site], address: AddressKind) -> dict[str, Site]:
    """Return sites whose caps are those of a kind of address."""
    return {
        name: replace(site, egress_gbps=site.egress(address), ingress_gbps=site.ingress(address))
        for name, site in sites.items()
    }


def part_of(network: Network, address: AddressKind) -> Network:
    """Return a network of the links over one kind of address, with the caps of that kind."""
    if address == "public" and not network.others and not network.has_private_links:
        return network
    kind = ADDRESS_KINDS.index(address) + 1
    links, others = (
        found.among(network.sites).where(found.among(network.sites).whole["address"] == kind)
        for found in (network.usual, network.others)
    )
    sites = with_caps_of(network.sites, address)
    return network.with_(sites=sites, links=links.over(others), others=LinkArray())


def joined(public: LinkArray, private: LinkArray) -> tuple[LinkArray, LinkArray]:
    """Return the links in use, and the others of pairs of which both kinds are known.

    Private ones are in use where anything was measured of their throughput or that of others of
    their kind: then both ends are known to reach each other by them.
    """
    private = private.among(public.regions)
    modelled = private.kinds(private.whole, "aggregate_gbps") == KINDS.index("baseline")
    unused = modelled & public.present
    used = private.present & ~unused
    others = private.where(unused).over(public.where(used))
    return private.where(used).over(public), others


def caps_joined(public: Mapping[str, Site], private: Mapping[str, Site]) -> dict[str, Site]:
    """Return sites with the caps over private addresses that were found by measuring over them."""
    sites = dict(public)
    for name, found in private.items():
        site = sites[name]
        caps = found.egress_gbps, found.ingress_gbps
        if caps != (site.egress_gbps, site.ingress_gbps):
            sites[name] = replace(site, private_egress_gbps=caps[0], private_ingress_gbps=caps[1])
    return sites
