"""Answers questions: from the names and rules of a request to regions, VM types and prices.

A question's room of the planner is loaded when it is asked, so that a command loads one alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any, Protocol, TypeVar

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.request import BroadcastRequest
from planner.comparison.plan import Ranking
from planner.comparison.request import ComparisonRequest
from planner.exploring.outcome import DIRECT, Outcome
from planner.fields.demands import demands_gb
from planner.fields.shared import MOST_VMS_UNASKED, PricedRequest, RuledRequest
from planner.model.aliases import Resolution, permitted, resolve_many
from planner.model.answer import Recommendation
from planner.model.calibration import calibrated
from planner.model.catalogue import Catalogue, Fee, Hosts
from planner.model.errors import InputError
from planner.model.estimate import WANTED_ADDRESSES, WantedAddresses
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from planner.model.rate_cuts import with_lasting_caps
from planner.model.units import MBPS_PER_GBPS, rate_text
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import ReduceRequest, TasksRequest
from planner.replanning.plan import Replan
from planner.replanning.request import ReplanRequest
from planner.schedule.plan import SchedulePlan
from planner.schedule.request import EVERYWHERE, ScheduleRequest, Tariff, TimedTransfer
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.request import ShuffleRequest
from planner.transfer.plan import CopyService, Plan
from planner.transfer.request import TransferRequest
from probes.importers.limits import PhysicalGate
from probes.metrics import Metric
from probes.samples import Sample
from relayd.catalogue.copies import REQUESTS, copies
from relayd.questions.caveats import Pair, dated, refuse_old

A = TypeVar("A", bound=Recommendation)
R = TypeVar("R", Tariff, TimedTransfer)
TARIFF = "A tariff is of a link between two regions: give the one that receives."
_ITSELF = "is the source itself ({})"
_FREE = "{} takes the data itself: the VMs counted in {} stand for it, and are not charged."
STAYS = "What stays in a region needs no schedule."


class NetworkView(Protocol):
    """The part of :class:`relayd.Wan` that answers are made with."""

    @property
    def catalogue(self) -> Catalogue:
        """Regions, VM types and prices."""

    def network_of(
        self,
        regions: Sequence[str],
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
        hosts: Hosts = ...,
    ) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""

    def resolve(self, name: str, field: str = ..., prefer_provider: str | None = ...) -> Resolution:
        """Return the region that a name or alias stands for."""

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[Resolution, ...]]:
        """Return both ends of a transfer as region ids, with what they were chosen from."""


# ---- one transfer ------------------------------------------------------------------------------


def plan_transfer(wan: NetworkView, request: TransferRequest) -> Plan:
    """Answer a :class:`~planner.transfer.request.TransferRequest` with names of regions."""
    from planner.transfer.recommendation import recommend

    source, target, found = wan.resolve_pair(request.src, request.dst)
    if source == target:
        remedy = "Name two different regions; zones of one are regions of a catalogue file."
        raise InputError("dst", _ITSELF.format(source), value=request.dst, remedy=remedy)
    common = _by_regions(wan, request, {"src": source, "dst": target})
    relays = request.relays
    if relays not in {"any", "one", "none"}:
        relays = wan.resolve(relays, "relays").region_id
        if relays in {source, target}:
            raise InputError("relays", "is an end of the transfer", value=relays)
        if relays in common["avoid"]:
            raise InputError("relays", "is forbidden by the rules", value=relays)
        partitions = {wan.catalogue.region(end).partition for end in (source, target)}
        if (relay := wan.catalogue.region(relays)).is_apart and relay.partition not in partitions:
            problem = f"is in a partition of its own ({relay.partition})"
            remedy = "Such a region relays for its partition alone."
            raise InputError("relays", problem, value=relays, remedy=remedy)
    outcomes = []
    for one in request.outcomes:
        ends = {end: getattr(one, end) for end in ("src", "dst", "via")}
        regions = {
            end: wan.resolve(name, f"outcomes {one.id}, {end}").region_id
            for end, name in ends.items()
            if name != DIRECT
        }
        outcomes.append(replace(one, **regions))
    resolved = replace(request, src=source, dst=target, relays=relays, outcomes=outcomes, **common)
    network = _network_of(wan, (source, target), request)
    now_s = time.time()
    if verified := network.verified.get((source, target)):
        network = calibrated(network, verified, now_s)
    doubts: tuple[str, ...] = ()
    if resolved.outcomes:
        possible, doubts = _possible_outcomes(wan.catalogue, network, resolved)
        resolved = replace(resolved, outcomes=possible)
    recommended = partial(recommend, catalogue=wan.catalogue, now_s=now_s)
    catalogue = _with_requests(wan.catalogue, resolved, found)
    prices = _prices(catalogue, network, request, [target] if found[1].bucket else ())
    pairs = [(source, target)]
    answer = _answer(
        wan, request, resolved, network, pairs, recommended, found, doubts, prices=prices
    )
    return _with_services(answer, found)


def _possible_outcomes(
    catalogue: Catalogue, network: Network, request: TransferRequest
) -> tuple[list[Outcome], tuple[str, ...]]:
    """Return the outcomes that VMs at both ends can have had, and a warning of the others.

    A report may claim that a transfer was done at once, and rows may have the wrong unit. A
    transfer may have used as many VMs as plans take unasked, or as this one may.
    """
    from planner.transfer.problem import most_vms

    gate, sites = PhysicalGate(catalogue), network.sites
    vms = max(
        [MOST_VMS_UNASKED, *(most_vms(request, sites[r]) for r in (request.src, request.dst))]
    )
    possible: list[Outcome] = []
    faults: list[str] = []
    for one in request.outcomes:
        src_vm, dst_vm = (sites[e].vm_type if e in sites else "" for e in (one.src, one.dst))
        mbps = MBPS_PER_GBPS * one.rate_gbps / vms
        metric: Metric = "aggregate_mbps"
        figure = (one.src, one.dst, metric, mbps, one.ended_s, "transfer")
        of_one_vm = Sample(*figure, src_vm=src_vm, dst_vm=dst_vm)
        if fault := gate.fault(of_one_vm):
            faults.append(f"{one.id} ({rate_text(one.rate_gbps)}): {fault}")
        else:
            possible.append(one)
    if not faults:
        return possible, ()
    count = "1 outcome does" if len(faults) == 1 else f"{len(faults)} outcomes do"
    said = f"{count} not count, were it of {vms} VMs at each end: {faults[0]}."
    return possible, (said,)


def _with_requests(
    catalogue: Catalogue, request: TransferRequest, ends: Sequence[Resolution]
) -> Catalogue:
    """Add the requests that read and write a transfer's objects to the fees of a catalogue.

    Raises
    ------
    InputError
        If there are objects, and no price of requests at an end.
    """
    if not request.objects:
        return catalogue
    fees = list(catalogue.fees)
    for end, kind in zip(ends, ("get", "put"), strict=True):
        if not (prices := copies()["requests"].get(provider_of(end.region_id))):
            problem = "has no known price of requests there: state it as a `[[fee]]`"
            raise InputError("objects", problem, value=end.region_id)
        per_gb = request.objects / 1000 / request.volume_gb  # thousands of requests
        fees.append(
            Fee(
                f"{REQUESTS} to {'read' if kind == 'get' else 'write'} objects in {end.region_id}",
                at=(end.region_id,),
                direction="out" if kind == "get" else "in",
                usd_per_gb=prices[kind] * per_gb,
                unit="1,000 requests",
                units_per_gb=per_gb,
                source=prices["source"],
                as_of=prices["as_of"],
            )
        )
    return replace(catalogue, fees=tuple(fees))


def _with_services(plan: Plan, ends: Sequence[Resolution]) -> Plan:
    """Name the managed services that copy between a plan's buckets, the cheapest first."""
    src, dst = (end.bucket[:2] for end in ends)
    if dst:
        note = _FREE.format(ends[1].bucket, ends[1].region_id)
        plan = replace(plan, warnings=(*plan.warnings, note))
    found = []
    for name, how in copies()["tool"].items() if src and dst else ():
        if "service" in how and src in how["from"] and dst in how["to"] and plan.direct.cost_usd:
            usd = plan.direct.cost_usd.egress + how["usd_per_gb"] * plan.request["volume_gb"]
            told = how["source"], how["as_of"], how.get("unconfirmed", False)
            found.append(CopyService(how["service"], name, how["usd_per_gb"], usd, *told))
    services = tuple(sorted(found, key=lambda one: one.cost_usd))
    return replace(plan, services=services) if services else plan


# ---- many transfers ----------------------------------------------------------------------------


def plan_broadcast(wan: NetworkView, request: BroadcastRequest) -> BroadcastPlan:
    """Answer a :class:`~planner.broadcast.request.BroadcastRequest` with names of regions."""
    from planner.broadcast.recommendation import recommend_broadcast

    source = wan.resolve(request.src, "src")
    provider = provider_of(source.region_id)
    found = [wan.resolve(name, "destinations", provider) for name in request.destinations]
    destinations = _each_once(
        "destinations", request.destinations, found, "Name each destination once."
    )
    if source.region_id in destinations:
        named = request.destinations[destinations.index(source.region_id)]
        problem = f"name the source itself ({source.region_id})"
        raise InputError("destinations", problem, value=named, remedy="Name other regions.")
    ends = {"src": source.region_id, **{f"destinations ({r})": r for r in destinations}}
    resolved = replace(
        request, src=source.region_id, destinations=destinations, **_by_regions(wan, request, ends)
    )
    network = _network_of(wan, resolved.ends, request, request.volume_gb * len(destinations))
    pairs = [(source.region_id, region) for region in destinations]
    names = source, *found
    return _answer(wan, request, resolved, network, pairs, recommend_broadcast, names)


def plan_shuffle(wan: NetworkView, request: ShuffleRequest) -> ShufflePlan:
    """Answer a :class:`~planner.shuffle.request.ShuffleRequest` with names of regions."""
    from planner.shuffle.recommendation import recommend_shuffle

    found = {name: wan.resolve(name, "demands") for name in request.ends}
    # Two names may mean one region; what it sends itself needs no WAN.
    demands = demands_gb(
        [
            (found[src].region_id, found[dst].region_id, volume_gb)
            for (src, dst), volume_gb in request.demands_gb.items()
        ]
    )
    ends = {f"demands ({name})": resolution.region_id for name, resolution in found.items()}
    resolved = replace(request, demands_gb=demands, **_by_regions(wan, request, ends))
    network = _network_of(wan, resolved.ends, request, sum(demands.values()))
    # What is down carries nothing, so it is on no path; that should not go unsaid.
    down = [
        f"{state}; plans will change once it is back."
        for pair, state in network.states.items()
        if pair in demands
    ]
    names = found.values()
    return _answer(wan, request, resolved, network, demands, recommend_shuffle, names, down)


def plan_schedule(wan: NetworkView, request: ScheduleRequest) -> SchedulePlan:
    """Answer a :class:`~planner.schedule.request.ScheduleRequest` with names of regions."""
    from planner.schedule.recommendation import recommend_schedule

    def place(name: str) -> str:
        if name in {EVERYWHERE, *map(provider_of, wan.known_regions())}:
            return name
        return wan.resolve(name, "disk_usd_per_gb_month").region_id

    names = dict.fromkeys(name for t in request.transfers for name in (t.src, t.dst))
    found = {name: wan.resolve(name, "transfers") for name in names}
    transfers = [_with_ends(wan, t, f"transfers {t.id}", STAYS) for t in request.transfers]
    ends = {f"transfers ({name})": resolution.region_id for name, resolution in found.items()}
    for known in request.existing.transfers if request.existing else ():
        ends |= {f"existing, transfer {known.id}, {e}": getattr(known, e) for e in ("src", "dst")}
    disk_gb = {wan.resolve(name, "disk_gb").region_id: gb for name, gb in request.disk_gb.items()}
    resolved = replace(
        request,
        transfers=transfers,
        tariffs=[_with_ends(wan, t, f"tariffs {t.id}", TARIFF) for t in request.tariffs],
        disk_gb=disk_gb,
        disk_usd_per_gb_month={place(n): usd for n, usd in request.disk_usd_per_gb_month.items()},
        **_by_regions(wan, request, ends),
    )
    sent_gb = sum(transfer.volume_gb for transfer in transfers)
    network = _network_of(wan, tuple(dict.fromkeys(ends.values())), request, sent_gb)
    pairs = [(transfer.src, transfer.dst) for transfer in transfers]
    return _answer(wan, request, resolved, network, pairs, recommend_schedule, found.values())


# ---- where to compute, and with what -----------------------------------------------------------


def place_reduce(wan: NetworkView, request: ReduceRequest) -> ReducePlacement:
    """Answer a :class:`~planner.placement.request.ReduceRequest` with names of regions."""
    from planner.placement.reduce import recommend_reduce

    found = {name: wan.resolve(name, "input_gb") for name in request.input_gb}
    reducers = [wan.resolve(name, "reduce_in") for name in request.reduce_in]
    inputs: dict[str, float] = {}
    for name, volume_gb in request.input_gb.items():
        region, problem = found[name].region_id, "names a region twice"
        if region in inputs:
            raise InputError("input_gb", problem, value=region, remedy="Add them up.")
        inputs[region] = volume_gb
    common = _by_regions(wan, request, {f"input_gb {n}": r.region_id for n, r in found.items()})
    denied = _forbidden(wan, request, {})
    chosen = tuple(dict.fromkeys(resolution.region_id for resolution in reducers))
    resolved = replace(
        request,
        input_gb=inputs,
        reduce_in=[region for region in chosen or inputs if region not in denied],
        **common,
    )
    network = _network_of(wan, (*inputs, *chosen), request)
    names = (*found.values(), *reducers)
    pairs = [(src, dst) for src in inputs for dst in resolved.reduce_in if src != dst]
    return _answer(wan, request, resolved, network, pairs, recommend_reduce, names)


def place_tasks(wan: NetworkView, request: TasksRequest) -> TaskPlacement:
    """Answer a :class:`~planner.placement.request.TasksRequest` with names of regions."""
    from planner.placement.tasks import recommend_tasks

    found = [wan.resolve(vm.region, f"vms {vm.id}, region") for vm in request.machines]
    machines = [
        replace(vm, region=resolution.region_id)
        for vm, resolution in zip(request.machines, found, strict=True)
    ]
    resolved = replace(request, machines=machines)
    regions = tuple(dict.fromkeys(machine.region for machine in machines))
    network = _network_of(wan, regions, request)
    pairs = list(permutations(regions, 2))
    return _answer(wan, request, resolved, network, pairs, recommend_tasks, found)


def compare_candidates(wan: NetworkView, request: ComparisonRequest) -> Ranking:
    """Answer a :class:`~planner.comparison.request.ComparisonRequest` with names of regions."""
    from planner.comparison.recommendation import recommend_candidates

    found = [wan.resolve(name, "regions") for name in request.regions]
    regions = _each_once("regions", request.regions, found, "Name each once.")
    resolved = replace(request, regions=regions)
    known = wan.known_regions()
    named: frozenset[str] = frozenset(known)
    if request.candidates:
        rules = request.candidates
        named = resolve_many(rules, wan.catalogue, field="candidates", known=known, doubtful=True)
    chosen = _vm_types(wan, request)
    ids = (*regions, *sorted(named))
    of_hosts = request.addresses, request.hosts
    network = wan.network_of(ids, chosen, *of_hosts)
    compared = [region for region in network.sites if region in named]
    types = _types(wan, request, compared)
    if types:
        providers = set(map(provider_of, types))
        compared = [region for region in compared if provider_of(region) in providers]

    def candidates() -> Iterator[tuple[str, Network, CataloguePrices]]:
        usual = _prices(wan.catalogue, network, request)
        if not types:
            yield from ((region, network, usual) for region in compared)
        for type_id in types:
            of_provider = [r for r in compared if provider_of(r) == provider_of(type_id)]
            # The ends of the use keep their VMs, but one that is itself the candidate.
            together = [[r for r in of_provider if r not in regions]]
            for group in together + [[r] for r in of_provider if r in regions]:
                typed = {**chosen, **dict.fromkeys(group, type_id)}
                with_type = wan.network_of(ids, typed, *of_hosts) if group else network
                its_prices = _prices(wan.catalogue, with_type, request)
                yield from ((region, with_type, its_prices) for region in group)

    def links(region: str) -> list[Pair]:
        towards = request.direction == "to"
        ends = ((region, other) if towards else (other, region) for other in regions)
        return [(src, dst) for src, dst in ends if dst in network.links.get(src, {})]

    for region in compared:
        refuse_old(request, wan.catalogue, network, links(region))
    chosen_of = _chosen(found)
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


def replan_in_progress(wan: NetworkView, request: ReplanRequest) -> Replan:
    """Answer a :class:`~planner.replanning.request.ReplanRequest` with names of regions."""
    from planner.replanning.progress import InProgress
    from planner.replanning.recommendation import replan

    if isinstance(request.moved_gb, Mapping):
        moved = {}
        for pair, gb in request.moved_gb.items():
            src, dst = (wan.resolve(name, "moved_gb").region_id for name in pair)
            moved[src, dst] = gb
        request = replace(request, moved_gb=moved)
    workload, wanted, hosts = InProgress(request).workload, request.addresses, request.hosts
    plan = request.plan
    asked = plan["request"] if isinstance(plan, Mapping) else plan.request
    if wanted == "auto":  # VMs reach each other as the plan was asked for
        wanted = next((one for one in WANTED_ADDRESSES if one == asked.get("addresses")), "auto")
    if asked.get("hosts") == "tuned":
        hosts = "tuned"
    network = wan.network_of(workload.regions, _vm_types(wan, request), wanted, hosts)
    return _answer(wan, request, request, network, workload.links_gb, replan)


# ---- what they share ---------------------------------------------------------------------------


def _answer(
    wan: NetworkView,
    request: PricedRequest,
    resolved: PricedRequest,
    network: Network,
    pairs: Iterable[Pair],
    recommend: Callable[..., A],
    named: Iterable[Resolution] | None = None,
    notes: Iterable[str] = (),
    prices: CataloguePrices | None = None,
) -> A:
    """Recommend at today's prices, and add caveats on the links that were asked about.

    The request is given as it was asked, and with ids of regions in place of names; what names
    stand for and notes, where the question's answer has room for them.

    Raises
    ------
    DataError
        If these links, or their prices, are older than the request allows.
    """
    refuse_old(request, wan.catalogue, network, pairs)
    chosen = _chosen(named or ())
    more = {} if named is None else {"notes": (*(one.note for one in chosen if one.note), *notes)}
    prices = prices or _prices(wan.catalogue, network, request)
    found = recommend(resolved, network, prices, **more)
    if chosen:
        found = replace(found, resolutions=chosen)
    return dated(found, wan.catalogue, network, pairs, request.addresses)


def _prices(
    catalogue: Catalogue,
    network: Network,
    request: PricedRequest,
    without_vms: Collection[str] = (),
) -> CataloguePrices:
    """Return the catalogue's prices at the tiers that this month has reached."""
    if catalogue.has_interconnects and request.addresses == "public":
        catalogue = replace(catalogue, fees=tuple(fee for fee in catalogue.fees if not fee.gbps))
    return CataloguePrices(catalogue, network, request.month_to_date_gb, without_vms)


def _network_of(
    wan: NetworkView, regions: Sequence[str], request: PricedRequest, sent_gb: float = 0.0
) -> Network:
    """Return the network that a question rests on, with caps that last for what is sent in all."""
    of_hosts = request.addresses, request.hosts
    network = wan.network_of(regions, _vm_types(wan, request), *of_hosts)
    return with_lasting_caps(network, wan.catalogue.vm_types, sent_gb) if sent_gb else network


def _chosen(found: Iterable[Resolution]) -> tuple[Resolution, ...]:
    """Keep buckets, and what names that were not clear stand for, each once."""
    return tuple(dict.fromkeys(one for one in found if one.note or one.bucket))


def _each_once(
    field: str, names: Iterable[str], found: Iterable[Resolution], remedy: str
) -> list[str]:
    """Return regions of which none may be named twice."""
    regions = [resolution.region_id for resolution in found]
    for name, region in zip(names, regions, strict=True):
        if regions.count(region) > 1:
            raise InputError(field, f"name a region twice ({region})", value=name, remedy=remedy)
    return regions


def _by_regions(wan: NetworkView, request: RuledRequest, ends: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that every question shares, with regions in place of names and rules.

    The ends are the regions of fields, by what errors call these.
    """
    vms_in = {wan.resolve(name, "vms_in").region_id: n for name, n in request.vms_in.items()}
    return {"vms_in": vms_in, "avoid": sorted(_forbidden(wan, request, ends)), "allow": ()}


def _forbidden(wan: NetworkView, request: RuledRequest, ends: Mapping[str, str]) -> frozenset[str]:
    """Return the regions that must not relay.

    Raises
    ------
    InputError
        If a rule names nothing, or an end is itself in a place to avoid.
    """
    if not request.avoid and not request.allow:
        return frozenset()
    known = wan.known_regions()
    may_relay = permitted(wan.catalogue, allow=request.allow, avoid=request.avoid, known=known)
    denied = resolve_many(request.avoid, wan.catalogue, field="avoid", known=known)
    for name, end in ends.items():
        if end in denied:
            remedy = "Rules bind relays and both ends: change the rule or the end."
            raise InputError(name, "is itself in a place to avoid", value=end, remedy=remedy)
    return frozenset(known) - may_relay - set(ends.values())


def _vm_types(wan: NetworkView, request: PricedRequest) -> dict[str, str]:
    """Return region or provider to a VM type's id in the catalogue.

    Raises
    ------
    InputError
        If a place or a type is not known.
    """
    chosen = {}
    for where, name in request.vm_types.items():
        is_provider = where in set(map(provider_of, wan.known_regions()))
        place = where if is_provider else wan.resolve(where, "vm_types").region_id
        provider = provider_of(place)
        vm_id = name if ":" in name else f"{provider}:{name.removeprefix('Standard_')}"
        if vm_id not in wan.catalogue.vm_types:
            problem = f"has what is not a VM type of {provider} in the catalogue"
            remedy = wan.catalogue.near_vm_types(provider, vm_id)
            raise InputError("vm_types", problem, value=name, remedy=remedy)
        chosen[place] = vm_id
    return chosen


def _with_ends(wan: NetworkView, item: R, where: str, remedy: str) -> R:
    """Return a tariff or transfer with ids of regions in place of names.

    Errors call it what `where` says, such as ``transfers backup``; the remedy is for two names of
    one region.
    """
    src = wan.resolve(item.src, f"{where}, src").region_id
    dst = wan.resolve(item.dst, f"{where}, dst").region_id
    if src == dst:
        raise InputError(f"{where}, dst", _ITSELF.format(src), value=item.dst, remedy=remedy)
    return item.with_(src=src, dst=dst)
