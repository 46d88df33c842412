"""Which kind of address each link of a network is over: public or private.

Public and private addresses of one pair of regions are different links: Google Cloud lets a VM send
7 Gbit/s to public addresses and, between its regions, all that its network card can over private
ones (6.8 and 28 Gbit/s were measured between n2-standard-32). Unless a question says otherwise, a
link is over private addresses where both ends can: their sites name the same private network, or
measurements over private addresses have shown it.
"""

from __future__ import annotations

from planner.model.baseline.graph import link_by_models
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, WantedAddresses
from planner.model.link import Link, Site
from planner.model.network import Network


def over_addresses(network: Network, catalogue: Catalogue, wanted: WantedAddresses) -> Network:
    """Return a network whose links in use are over a kind of address.

    Links over the other kind are kept in :attr:`.Network.others`, so that any kind leads to any
    other.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
        For links over private addresses of which nothing is known but that they are there: their
        round-trip time and loss are those over public ones, their throughput is from models.
    wanted : {"auto", "public", "private"}
        ``auto``: private where both ends can. ``private``: also between all regions of one
        provider.
    """
    sites = network.sites
    may_change = (
        network.others
        or network.has_private_links
        or wanted == "private"
        or (wanted == "auto" and any(site.private_network for site in sites.values()))
    )
    if not may_change:  # the usual case
        return network
    links: dict[str, dict[str, Link]] = {}
    others: dict[str, dict[str, Link]] = {}
    changed = False
    for src, row in network.usual.items():
        links[src] = dict(row)
        for dst, link in row.items():
            other = network.others.get(src, {}).get(dst)
            kind = _kind(sites[src], sites[dst], link, other, wanted)
            if kind != link.address:
                found = other or link_by_models(
                    sites[src], sites[dst], link.rtt_ms, catalogue, kind, link.loss_pct
                )
                if found is not None:
                    links[src][dst], other, changed = found, link, True
            if other is not None:
                others.setdefault(src, {})[dst] = other
    return network.with_(links=links, others=others) if changed else network


def _kind(
    src: Site, dst: Site, link: Link, other: Link | None, wanted: WantedAddresses
) -> AddressKind:
    """Return over which kind of address the link of two sites is to be."""
    if wanted == "public":
        return "public"
    same_provider = src.region.partition(":")[0] == dst.region.partition(":")[0]
    if wanted == "private" and same_provider:
        return "private"
    if src.private_network and src.private_network == dst.private_network:
        return "private"
    known = link if link.address == "private" else other
    # From models alone, it is there because another question asked for it.
    return "private" if known and known.aggregate_gbps.source != "baseline" else "public"
