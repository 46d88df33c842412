"""Networks as they would be with other VM types, tuned hosts, or another kind of address.

What was measured was measured with the VMs, hosts and addresses of then: throughput of the links
concerned comes from :mod:`planner.model.baseline.modelled_links`, round-trip times stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median

import numpy as np

from planner.model.baseline.modelled_links import (
    CAP_ERROR,
    HOSTS_TUNED,
    WINDOW_SPREAD_OF_TYPE,
    baseline_site,
    set_by_models,
)
from planner.model.catalogue import Catalogue
from planner.model.estimate import ADDRESS_KINDS, AddressKind, Estimate, Figures
from planner.model.link import LIMITED_BY, Site
from planner.model.link_array import KINDS, Bools, LinkArray, Origins, taken
from planner.model.network import Network
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS
from planner.model.verification import VerifiedPath


def by_models(
    links: LinkArray,
    sites: Mapping[str, Site],
    catalogue: Catalogue,
    chosen: Bools,
    address: AddressKind | None = None,
    kept: Bools | None = None,
) -> LinkArray:
    """Return links, those that are `chosen`, (n, n), with throughput from models.

    Their round-trip times and loss stay, and the aggregates of those that are `kept`, (n, n). What
    no model knows stays whole, or where an address is given is left out. `sites` are those of all
    regions, in order; the address is that of the chosen ones, each its own unless given.
    """
    for number, kind in enumerate(ADDRESS_KINDS, 1):
        of_kind = links.present if address else links.whole["address"] == number
        src, dst = ends = np.nonzero(chosen & of_kind & (address in {None, kind}))
        if not len(src):
            continue
        before, origins = taken(links.whole, ends), Origins()
        rows, kinds = taken(before), links.kinds(before, "rtt_ms").astype(np.int64)
        known = set_by_models(rows, [*sites.values()], catalogue, (src, dst), kinds, kind, origins)
        for name in ("per_flow_mbps", "aggregate_gbps"):
            rows[name]["evidence"] += np.uint32(len(links.evidence))
        if kept is not None:
            for name in ("aggregate_gbps", "limited_by"):
                rows[name][kept[ends]] = before[name][kept[ends]]
        rows[~known] = 0 if address else before[~known]
        links = links.with_rows((src, dst), rows, origins)
    return links


def with_vm_types(network: Network, catalogue: Catalogue, chosen: Mapping[str, str]) -> Network:
    """Return a network as it would be with VM types that are `chosen` by region or provider.

    Round-trip times stay; throughput of the links concerned comes from models, because what was
    measured was measured with other VMs.
    """
    sites, windows_mb = dict(network.sites), _windows_of_types(network.sites.values())
    for name, site in network.sites.items():
        wanted = chosen.get(name) or chosen.get(name.partition(":")[0])
        if wanted and wanted != site.vm_type:
            typed = baseline_site(name, catalogue, chosen)
            # Hosts of the type were seen elsewhere: a window is the type's, not the region's.
            window_mb = windows_mb.get(typed.vm_type, typed.window_mb)
            sites[name] = replace(
                typed, window_mb=window_mb, vms=site.vms, private_network=site.private_network
            )
    changed = {name for name in sites if sites[name] is not network.sites[name]}
    if not changed:
        return network
    is_changed = np.array([name in changed for name in sites], bool)
    concerned = is_changed[:, None] | is_changed

    def of_vms(links: LinkArray) -> LinkArray:
        return by_models(links, sites, catalogue, concerned)

    def of_others(paths: tuple[VerifiedPath, ...]) -> tuple[VerifiedPath, ...]:
        return tuple(path for path in paths if not changed.intersection(path.regions))

    others, verified = of_vms(network.others) if network.others else None, network.verified.items()
    shown = {
        pair: replace(one, paths=of_others(one.paths))
        for pair, one in verified
        if not changed.intersection(pair)
    }
    return network.with_(sites=sites, links=of_vms(network.usual), others=others, verified=shown)


def _windows_of_types(sites: Iterable[Site]) -> dict[str, Estimate]:
    """Return the windows of VM types that flows into some site of each have shown."""
    found: dict[str, list[Estimate]] = {}
    for site in sites:
        if site.vm_type and site.window_mb.source != "baseline":
            found.setdefault(site.vm_type, []).append(site.window_mb)
    windows_mb = {}
    for vm_type, seen in found.items():
        error, one = 1 + WINDOW_SPREAD_OF_TYPE, min(seen, key=lambda each: each.relative_width)
        expected = median(each.expected for each in seen)
        figures = Figures(vm_type=vm_type)
        origin = one.origin._replace(kind="inferred", method="flows-into-vm-type", figures=figures)
        low, high = min(one.low, expected / error), max(one.high, expected * error)
        windows_mb[vm_type] = Estimate(low, expected, high, origin)
    return windows_mb


def with_tuned_hosts(network: Network, catalogue: Catalogue) -> Network:
    """Return a network as it would be if the receive windows of all hosts were raised.

    Throughput comes from models where windows limit it, or may: what was measured elsewhere stays.
    """
    sites = {
        name: replace(site, window_mb=HOSTS_TUNED)
        if site.window_mb.expected < HOSTS_TUNED.low
        else site
        for name, site in network.sites.items()
    }
    raised = np.array([sites[name] is not site for name, site in network.sites.items()], bool)

    def of_hosts(links: LinkArray) -> LinkArray:
        rates, flows = links.whole["aggregate_gbps"], links.whole["per_flow_mbps"]
        at_windows = LAW_CONNECTIONS * flows["low"] <= rates["low"] * MBPS_PER_GBPS * (
            1 + CAP_ERROR
        )
        at_windows &= links.kinds(links.whole, "aggregate_gbps") != KINDS.index("measured")
        at_windows |= links.whole["limited_by"] == LIMITED_BY.index("window")
        into = np.broadcast_to(raised, at_windows.shape)
        return by_models(links, sites, catalogue, into, kept=~at_windows)

    others = of_hosts(network.others) if network.others else None
    return network.with_(sites=sites, links=of_hosts(network.usual), others=others)
