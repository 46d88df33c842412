"""The parts of a network over one kind of address, each estimated from samples of its kind alone.

A sample over private addresses says nothing of public ones, which have paths and caps of their own.
To estimate links over private addresses, the caps of these stand in for a site's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from planner.model.columns.block import AGGREGATE_ORIGIN
from planner.model.columns.links import Origins
from planner.model.columns.table import LinkArrays
from planner.model.estimate import AddressKind
from planner.model.link import Link, Site
from planner.model.network import Network
from probes.estimation.origins import are_baseline


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
    links: dict[str, dict[str, Link]] = {region: {} for region in network.sites}
    for found in (network.usual, network.others):
        for src, row in found.items():
            links[src].update({dst: link for dst, link in row.items() if link.address == address})
    return network.with_(sites=with_caps_of(network.sites, address), links=links, others={})


def joined(
    public: LinkArrays, private: LinkArrays, origins: Origins
) -> tuple[LinkArrays, LinkArrays]:
    """Return the links in use, and the others of pairs of which both kinds are known.

    Private ones are in use where anything was measured of their throughput or that of others of
    their kind: then both ends are known to reach each other by them.
    """
    size = len(public.names)
    over_public, over_private = (table.src * size + table.dst for table in (public, private))
    modelled = are_baseline(origins, private.columns[AGGREGATE_ORIGIN])
    unused = modelled & np.isin(over_private, over_public)
    replaced = np.isin(over_public, over_private[~unused])
    used = public.take(~replaced).joined(private.take(~unused))
    return used, private.take(unused).joined(public.take(replaced))


def caps_joined(public: Mapping[str, Site], private: Mapping[str, Site]) -> dict[str, Site]:
    """Return sites with the caps over private addresses that were found by measuring over them."""
    sites = dict(public)
    for name, found in private.items():
        site = sites[name]
        caps = found.egress_gbps, found.ingress_gbps
        if caps != (site.egress_gbps, site.ingress_gbps):
            sites[name] = replace(site, private_egress_gbps=caps[0], private_ingress_gbps=caps[1])
    return sites
