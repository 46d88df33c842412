"""The question which region, with which VM, serves a use best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.comparison.plan import Ranking
from planner.comparison.request import ComparisonRequest
from planner.model.aliases import resolve_many
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from relayd.questions.caveats import Pair, dated, refuse_old
from relayd.questions.question import Question
from relayd.questions.resolving import NetworkView, choices_of, each_once, prices_of, vm_types_of


def compare_candidates(wan: NetworkView, request: ComparisonRequest) -> Ranking:
    """Answer a :class:`~planner.comparison.request.ComparisonRequest` with names of regions."""
    from planner.comparison.recommendation import recommend_candidates

    found = [wan.resolve(name, "regions") for name in request.regions]
    regions = each_once("regions", request.regions, found, "Name each once.")
    resolved = replace(request, regions=regions)
    known = wan.known_regions()
    named: frozenset[str] = frozenset(known)
    if request.candidates:
        rules = request.candidates
        named = resolve_many(rules, wan.catalogue, field="candidates", known=known, doubtful=True)
    chosen = vm_types_of(wan, request)
    ids = (*regions, *sorted(named))
    of_hosts = request.addresses, request.hosts
    network = wan.network_of(ids, chosen, *of_hosts)
    compared = [region for region in network.sites if region in named]
    types = _types(wan, request, compared)
    if types:
        providers = set(map(provider_of, types))
        compared = [region for region in compared if provider_of(region) in providers]

    def candidates() -> Iterator[tuple[str, Network, CataloguePrices]]:
        usual = prices_of(wan.catalogue, network, request)
        if not types:
            yield from ((region, network, usual) for region in compared)
        for type_id in types:
            of_provider = [r for r in compared if provider_of(r) == provider_of(type_id)]
            # The ends of the use keep their VMs, but one that is itself the candidate.
            together = [[r for r in of_provider if r not in regions]]
            for group in together + [[r] for r in of_provider if r in regions]:
                typed = {**chosen, **dict.fromkeys(group, type_id)}
                with_type = wan.network_of(ids, typed, *of_hosts) if group else network
                its_prices = prices_of(wan.catalogue, with_type, request)
                yield from ((region, with_type, its_prices) for region in group)

    def links(region: str) -> list[Pair]:
        towards = request.direction == "to"
        ends = ((region, other) if towards else (other, region) for other in regions)
        return [(src, dst) for src, dst in ends if dst in network.links.get(src, {})]

    for region in compared:
        refuse_old(request, wan.catalogue, network, links(region))
    chosen_of = choices_of(found)
    notes = tuple(one.note for one in chosen_of if one.note)
    ranking = recommend_candidates(resolved, network.snapshot, candidates(), notes=notes)
    ranking = replace(ranking, resolutions=chosen_of)
    return dated(ranking, wan.catalogue, network, links(ranking.candidates[0].region))


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
            problem = "has what is not a VM type of the catalogue"
            remedy = wan.catalogue.near_vm_types(provider, ids[0])
            raise InputError("types", problem, value=name, remedy=remedy)
        if provider_of(known[0]) not in providers:
            problem = "has a VM type of a provider without a candidate"
            remedy = "Name candidates of that provider as well, or leave the type out."
            raise InputError("types", problem, value=name, remedy=remedy)
        found += known
    return tuple(dict.fromkeys(found))


COMPARISON = Question(
    name="comparison",
    method="compare_candidates",
    path="/v1/comparisons",
    command="plan compare",
    summary="Rank providers, regions and VM types for a use",
    request=ComparisonRequest,
    answer=Ranking,
    solve=compare_candidates,
    example={
        "regions": ["aws:sa-east-1", "aws:eu-west-1"],
        "volume_gb": 100,
        "candidates": ["provider:aws", "provider:gcp"],
        "most": 5,
    },
    schema_name="ComparisonQuestion",
    order=7,
)
