"""Which kind of address each link of a network is over: public or private.

Public and private addresses of one pair of regions are different links: Google Cloud lets a VM send
7 Gbit/s to public addresses and, between its regions, all that its network card can over private
ones (6.8 and 28 Gbit/s were measured between n2-standard-32). Unless a question says otherwise, a
link is over private addresses where both ends can: their sites name the same private network, an
interconnect joins them, or measurements over private addresses have shown it. A network that a
provider sets up unasked is an assumption: it gives way once a link between its regions was measured
over public addresses, because a relay must not look faster than a direct path for being over
another kind.

Partitions are parts of a provider's regions that are networks of their own: those in China, of
governments and sovereign ones. Accounts, backbone and prices are their own, and traffic between two
of them is traffic to the internet (AWS General Reference, partitions; Azure documentation,
sovereign clouds; read 2026-11).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from planner.model.baseline.changed_hosts import by_models
from planner.model.catalogue import DEFAULT_NETWORK, Catalogue
from planner.model.estimate import ADDRESS_KINDS, WantedAddresses
from planner.model.link import LinkFigure
from planner.model.link_array import KINDS, Bools, LinkArray
from planner.model.network import Network

_RATES: tuple[LinkFigure, ...] = ("per_flow_mbps", "aggregate_gbps")
_PUBLIC, _PRIVATE = (ADDRESS_KINDS.index(kind) + 1 for kind in ADDRESS_KINDS)


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
        provider's partition.
    """
    sites, usual = network.sites, network.usual
    if not (  # the usual case
        network.others
        or network.has_private_links
        or wanted == "private"
        or (wanted == "auto" and any(site.private_network for site in sites.values()))
        or (wanted == "auto" and catalogue.has_interconnects)
    ):
        return network
    others = network.others.among(sites)
    kinds = np.where(_private(network, others, catalogue, wanted), _PRIVATE, _PUBLIC)
    change = usual.present & (kinds != usual.whole["address"])
    if not change.any():
        return network
    swapped = change & others.present
    known = others.where(swapped)
    for number, address in enumerate(ADDRESS_KINDS, 1):
        missing = change & ~swapped & (kinds == number)
        if missing.any():
            modelled = by_models(usual.where(missing), sites, catalogue, missing, address)
            known = known.over(modelled)
    replaced = usual.where(known.present & change)
    return network.with_(links=known.over(usual), others=replaced.over(others))


def within_partitions(network: Network, catalogue: Catalogue, ends: Collection[str]) -> Network:
    """Return a network without links from one partition to another, but for those between ends.

    So none relays what another partition sends. Regions that every customer may use count as one
    partition, whichever provider's.
    """
    regions = [catalogue.region(name) for name in network.sites]
    if not any(region.is_apart for region in regions):
        return network
    parts = np.array([region.partition if region.is_apart else "" for region in regions])
    is_end = np.array([region.id in ends for region in regions])
    kept = (parts[:, None] == parts) | (is_end[:, None] & is_end)
    others = network.others.among(network.sites).where(kept) if network.others else None
    return network.with_(links=network.usual.where(kept), others=others)


def _private(
    network: Network, others: LinkArray, catalogue: Catalogue, wanted: WantedAddresses
) -> Bools:
    """Return which links are to be over private addresses."""
    names = list(network.sites)
    found: Bools = np.zeros((len(names), len(names)), bool)
    if wanted == "public":
        return found
    networks = np.array([site.private_network for site in network.sites.values()])
    if wanted == "auto" and _are_tested_publicly(network, others, networks == DEFAULT_NETWORK):
        networks[networks == DEFAULT_NETWORK] = ""
    found |= (networks[:, None] == networks) & (networks != "")
    if wanted == "private":
        partitions = np.array([catalogue.region(name).partition for name in names])
        found |= partitions[:, None] == partitions
    for fee in catalogue.fees if catalogue.has_interconnects else ():
        for link in fee.links([*map(catalogue.region, names)]) if fee.gbps else ():
            found[link] = True
    baseline = KINDS.index("baseline")
    usual_is_private = network.usual.whole["address"] == _PRIVATE
    for links, counts in ((network.usual, usual_is_private), (others, ~usual_is_private)):
        # From models alone, it is there because another question asked for it.
        kind = links.kinds(links.whole, "aggregate_gbps")
        found |= counts & links.present & (kind != baseline)
    return found


def _are_tested_publicly(network: Network, others: LinkArray, is_end: Bools) -> bool:
    """Return whether a link between some regions was measured over public addresses."""
    measured, pairs = KINDS.index("measured"), is_end[:, None] & is_end
    return any(
        bool(
            (
                pairs
                & links.present
                & (links.whole["address"] == _PUBLIC)
                & (links.kinds(links.whole, figure) == measured)
            ).any()
        )
        for links in (network.usual, others)
        for figure in _RATES
    )
