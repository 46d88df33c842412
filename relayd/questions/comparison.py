"""A comparison: which region, with which VM, serves a use best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.comparison.plan import Ranking
from planner.comparison.recommendation import recommend_candidates
from planner.comparison.request import ComparisonRequest
from planner.model.aliases import resolve_many
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from relayd.questions.ages import dated, refuse_old
from relayd.questions.resolving import NetworkView, notes_of, prices, vm_types


def compare_candidates(wan: NetworkView, request: ComparisonRequest) -> Ranking:
    """Answer a :class:`~planner.comparison.request.ComparisonRequest` with names of regions."""
    found = [wan.resolve(name, "regions") for name in request.regions]
    regions = tuple(resolution.region_id for resolution in found)
    for name, region in zip(request.regions, regions, strict=True):
        if regions.count(region) > 1:
            raise InputError(
                "regions", f"name a region twice ({region})", value=name, remedy="Name each once."
            )
    resolved = replace(request, regions=regions)
    known = wan.known_regions()
    named: frozenset[str] = frozenset(known)
    if request.candidates:
        rules = request.candidates
        named = resolve_many(rules, wan.catalogue, field="candidates", known=known).possible
    chosen = vm_types(wan, request)
    ids = (*regions, *sorted(named))
    network = wan.network_of(ids, chosen, request.addresses)
    compared = [region for region in network.sites if region in named]
    types = _types(wan, request, compared)
    if types:
        providers = {provider_of(type_id) for type_id in types}
        compared = [region for region in compared if provider_of(region) in providers]

    def candidates() -> Iterator[tuple[str, Network, CataloguePrices]]:
        usual = prices(wan, network, request)
        if not types:
            yield from ((region, network, usual) for region in compared)
        for type_id in types:
            of_provider = [r for r in compared if provider_of(r) == provider_of(type_id)]
            # The ends of the use keep their VMs, but one that is itself the candidate.
            together = [[r for r in of_provider if r not in regions]]
            for group in together + [[r] for r in of_provider if r in regions]:
                typed = {**chosen, **dict.fromkeys(group, type_id)}
                with_type = wan.network_of(ids, typed, request.addresses) if group else network
                its_prices = prices(wan, with_type, request)
                yield from ((region, with_type, its_prices) for region in group)

    def links(region: str) -> list[tuple[str, str]]:
        towards = request.direction == "to"
        ends = ((region, other) if towards else (other, region) for other in regions)
        return [(src, dst) for src, dst in ends if dst in network.links.get(src, {})]

    for region in compared:
        refuse_old(request, wan.catalogue, network, links(region))
    comparison = recommend_candidates(
        resolved, network.snapshot, candidates(), notes=notes_of(found)
    )
    return dated(comparison, wan.catalogue, network, links(comparison.candidates[0].region))


def _types(
    wan: NetworkView, request: ComparisonRequest, compared: Iterable[str]
) -> tuple[str, ...]:
    """Return the ids of the VM types to compare, each of a provider that has candidates."""
    providers = list(dict.fromkeys(map(provider_of, compared)))
    found: list[str] = []
    for name in request.types:
        bare = name.removeprefix("Standard_")
        ids = [bare] if ":" in bare else [f"{provider}:{bare}" for provider in providers]
        known = [one for one in ids if one in wan.catalogue.vm_types]
        if not known:
            provider = provider_of(bare) if ":" in bare else providers[0]
            raise InputError(
                "types",
                "has what is not a VM type of the catalogue",
                value=name,
                remedy=wan.catalogue.near_vm_types(provider, ids[0]),
            )
        if provider_of(known[0]) not in providers:
            raise InputError(
                "types",
                "has a VM type of a provider without a candidate",
                value=name,
                remedy="Name candidates of that provider as well, or leave the type out.",
            )
        found += known
    return tuple(dict.fromkeys(found))
