"""The vCPU quotas of an account as limits of a network's sites, and what plans say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.model.catalogue import Catalogue, covers
from planner.model.errors import InfeasibleError
from planner.model.link import Site
from planner.model.network import Network
from planner.model.quotas.vcpus import PROVIDER_NAMES, VcpuQuota, VmQuota, family_key

REGIONS_NAMED = 5


def with_quotas(network: Network, catalogue: Catalogue) -> Network:
    """Return a network whose sites know the catalogue's quotas for the VM types used there.

    A fleet goes before a quota: its VMs exist. Of the quotas of one family that cover a region, its
    own goes before those of patterns, and of these the last.
    """
    if not catalogue.vcpu_quotas:
        return network
    of_region = defaultdict[str, list[VcpuQuota]](list)
    for quota in catalogue.vcpu_quotas:
        of_region[quota.region].append(quota)
    patterns = [place for place in of_region if place not in network.sites]
    sites = {}
    for region, site in network.sites.items():
        vm = catalogue.vm_types.get(site.vm_type)
        found: dict[str, VmQuota] = {}
        if vm is not None and not site.vms:
            known = catalogue.region(region)
            # What comes later goes before.
            covering = [*(place for place in patterns if covers(place, known)), region]
            for quota in (quota for place in covering for quota in of_region.get(place, ())):
                if quota.counts(vm.id):
                    family = family_key(quota.family) or quota.family
                    found[family] = VmQuota(quota, vm.vcpus)
        sites[region] = replace(site, quotas=tuple(found.values()))
    return network.with_(sites=sites)


def with_running(network: Network, vms: Mapping[str, int]) -> Network:
    """Return a network whose quotas allow the number of VMs that runs already in each region."""
    limited = [region for region in vms if network.sites[region].quotas]
    if not limited:
        return network
    sites = dict(network.sites)
    for region in limited:
        quotas = (quota._replace(running=vms[region]) for quota in sites[region].quotas)
        sites[region] = replace(sites[region], quotas=tuple(quotas))
    return network.with_(sites=sites)


def without_quotas(network: Network) -> Network:
    """Return a network as it would be if its quotas allowed any number of VMs."""
    sites = {region: replace(site, quotas=()) for region, site in network.sites.items()}
    return network.with_(sites=sites)


def refuse_without_vms(
    network: Network, ends: Iterable[str], vms_in: Mapping[str, int] = {}
) -> None:
    """Refuse ends whose quotas leave no VM, but for those that a request states VMs of.

    An InfeasibleError names the quota and what it must be.
    """
    for region in ends:
        site = network.sites.get(region)  # one that is missing is refused elsewhere
        if site and region not in vms_in and not site.may_run(1):
            limit, request = _limit_and_request(site, 1)
            remedy = f"{request}, or name a VM type with fewer vCPUs."
            raise InfeasibleError(f"{region} may run {limit}", remedy)


def limited_texts(network: Network, wanted: Mapping[str, int]) -> list[str]:
    """Return sentences about VMs that quotas do not allow, with the increases to ask for.

    More are `wanted` in each of these regions than its quotas allow.
    """
    regions: dict[str, list[str]] = {}
    for region, count in wanted.items():
        limit, request = _limit_and_request(network.sites[region], count)
        regions.setdefault(f"{limit}. {request}.", []).append(region)
    return [
        f"{' and '.join(names)} may {'each ' if names[1:] else ''}run {text}"
        for text, names in regions.items()
    ]


def beyond_quotas(network: Network, vms: Mapping[str, int]) -> list[str]:
    """Return warnings about VMs that a request states and quotas do not allow."""
    beyond = above_quotas(network, vms)
    return [f"Planned with more VMs, as asked: {text}" for text in limited_texts(network, beyond)]


def above_quotas(network: Network, vms: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of VMs, by region, that quotas do not allow."""
    return {region: n for region, n in vms.items() if network.sites[region].may_run(n) < n}


def left_out_text(regions: Iterable[str]) -> list[str]:
    """Return a warning about regions that may not relay because quotas leave them no VM."""
    names = sorted(regions)
    shown = ", ".join(names[:REGIONS_NAMED]) + (", ..." if names[REGIONS_NAMED:] else "")
    text = f"Not considered as relays, because their vCPU quotas leave no VM: {shown}."
    return [text] if names else []


def _limit_and_request(site: Site, wanted: int) -> tuple[str, str]:
    """Return the VMs that may run at a site, and the request to let a number of them run."""
    short = [quota for quota in site.quotas if quota.vms < wanted]
    name, provider = site.vm_type.partition(":")[2], site.region.partition(":")[0]
    what = " and ".join(str(quota.vcpus_for(wanted)) for quota in short)
    return (
        f"{_vms(site.may_run(wanted))} of {name} with {site.quotas[0].vm_vcpus} vCPUs: "
        f"{' and '.join(map(str, short))}",
        f"Ask {PROVIDER_NAMES.get(provider, provider)} to raise {'them' if short[1:] else 'it'} "
        f"to {what} for {_vms(wanted)}",
    )


def _vms(count: int) -> str:
    return f"{count or 'no'} VM{'' if count < 2 else 's'}"
