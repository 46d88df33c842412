"""The catalogue: regions, aliases, VM types and egress prices that relayd knows.

Plain values only. ``relayd.catalogue.loading`` reads them from TOML files, checks them and merges a
user's own on top.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase  # which few catalogues need
from functools import cache, cached_property, lru_cache
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import DataError, InputError
from planner.model.estimate import AddressKind
from planner.model.quotas.vcpus import VcpuQuota

Hosts: TypeAlias = Literal["as they come", "tuned"]

DEFAULT_NETWORK = "default"
CONTINENTS = ("NAM", "SAM", "EU", "AF", "AS", "OC")
MOST_BURST_GBPS = 5.0
GBPS_A_VCPU = 4.0
"""What software that reads, encrypts and sends is taken to move with one vCPU: an assumption."""
_NEAR_SHOWN = 4
_Alike: TypeAlias = tuple[list[str], NDArray[np.int64]]
_MOST_KEPT = 2000
"""Rows of prices of one region's links, and of VMs of a network's regions."""


@dataclass(frozen=True, slots=True)
class Region:
    """A cloud datacenter (or a site of one's own).

    Attributes
    ----------
    id : str
        ``provider:name``, such as ``aws:us-east-1``.
    city, country, continent, area : str
        ``""`` where not known. Countries are ISO 3166-1 alpha-2, continents NAM, SAM, EU, AF, AS or
        OC, areas those of :mod:`planner.model.baseline.backbone`.
    latitude_deg, longitude_deg : float | None
        Of the city centre.
    baseline : bool
        Whether the region is part of the graph before anything is measured.
    access : str
        ``""`` where every customer may use it; else ``restricted`` (on request alone),
        ``government``, ``china`` (run from China) or ``sovereign`` (a partition of the provider).
    private_network : str
        Regions of the same one reach each other by private addresses. :data:`DEFAULT_NETWORK` is
        what a provider sets up unasked.
    connections_in, connections_out : int | None
        Most at once, over all VMs, over which data enters and leaves it; None without a limit.
    """

    id: str
    city: str = ""
    country: str = ""
    continent: str = ""
    area: str = ""
    latitude_deg: float | None = None
    longitude_deg: float | None = None
    baseline: bool = True
    access: str = ""
    private_network: str = ""
    connections_in: int | None = None
    connections_out: int | None = None

    @property
    def provider(self) -> str:
        """The part of the id before the colon."""
        return self.id.partition(":")[0]

    @property
    def name(self) -> str:
        """The part of the id after the colon."""
        return self.id.partition(":")[2]

    @property
    def partition(self) -> str:
        """The provider's part that it is of, with accounts and a network of its own."""
        return f"{self.provider} {self.access}" if self.is_apart else self.provider

    @property
    def law_domain(self) -> str:
        """The key by which laws of throughput know it: its partition, or mainland China."""
        return f"{self.provider} china" if self.country == "CN" else self.partition

    @property
    def is_apart(self) -> bool:
        """Return whether it is in a partition that not every customer may use."""
        return self.access not in {"", "restricted"}

    @property
    def is_placed(self) -> bool:
        """Return whether its coordinates are known."""
        return None not in (self.latitude_deg, self.longitude_deg)


TypeRate: TypeAlias = tuple[float, float, str]
"""Price of an hour in USD, rate in Gbit/s, and id of a VM type."""


SENDERS_HELD = frozenset({"gcp"})
"""Providers that cap a flow where it leaves alone. Google Cloud lets one carry 3 Gbit/s out of a
VPC and limits none that enters (Compute Engine, network bandwidth, 2026-09; one from EC2 carried
4.7 into an e2-small in February 2022). EC2 caps it in both directions (EC2 user guide)."""


@dataclass(frozen=True, slots=True)
class VmType:
    """A virtual machine type and what the network lets one such machine do."""

    id: str
    vcpus: int
    egress_gbps: float
    """Cap over all destinations together (hose model), as it lasts; so is :attr:`ingress_gbps`."""
    ingress_gbps: float
    flow_gbps: float
    """Cap of one TCP connection to other datacenters; :attr:`flow_into_gbps` is that from them."""
    window_mb: float  # effective TCP receive window in MB (10^6 bytes) of hosts as they come
    price_usd_per_h: float  # on-demand Linux price
    burstable: bool = False
    """Whether its CPU earns credits, without which it may send less than its caps."""
    source: str = ""  # where the figures are from, with the date
    region_egress_gbps: float | None = None
    """Cap to other regions of the provider over private addresses, where it is known to differ."""
    burst_gbps: float | None = None
    """What its network lets through while network credits last, where the provider says so."""
    tier1_gbps: float | None = None
    """Egress with networking that is paid for on top (Tier_1 of Google Cloud)."""
    hosts: Hosts = "as they come"  # whether their receive windows are raised (``tcp_rmem``)
    suggested: bool = True  # whether answers may name it unasked, as a default or an advice

    @property
    def provider(self) -> str:
        """The part of the id before the colon."""
        return self.id.partition(":")[0]

    @property
    def flow_into_gbps(self) -> float:
        """Cap of a single TCP connection into it; infinity where senders alone are held to one."""
        return inf if self.provider in SENDERS_HELD else self.flow_gbps

    @property
    def wan_burst_gbps(self) -> float:
        """What it sends to other regions while network credits last; 0 if no more than for long.

        EC2 limits types with bursts to 5 Gbit/s there (user guide, instance network bandwidth).
        """
        burst_gbps = min(self.burst_gbps or 0.0, MOST_BURST_GBPS)
        return burst_gbps if burst_gbps > self.egress_gbps else 0.0


@dataclass(frozen=True, slots=True)
class Tier:
    """A price per GB that holds until ``up_to_gb`` of one calendar month."""

    usd_per_gb: float
    up_to_gb: float = inf


@dataclass(frozen=True, slots=True)
class EgressPrice:
    """The price of one provider for traffic from some regions to some destinations."""

    name: str  # unique; a user's file overrides an entry by giving the same name
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    """Patterns, of which one has to match, as one of :attr:`sources` does: region ids
    (``aws:us-*``, ``*``), ``continent:EU``, ``country:BR``, or several of these that must hold
    together (``azure:* & continent:EU``). A destination may also be ``same-provider``,
    ``other-provider`` or ``same-continent``; a partition counts as a provider. Nothing but
    ``same-region`` covers zones of one region."""
    tiers: tuple[Tier, ...]  # ascending; the last reaches to infinity
    source: str = ""
    as_of: str = ""
    """Price page or file, and ``YYYY-MM`` or ``YYYY-MM-DD`` when it had the figure; ``""`` where
    none is stated."""
    unconfirmed: bool = False
    """Whether it is from memory or assumed, and no document at hand confirms it."""
    gbps: float | None = None  # what a link carries in all, where it is that of an interconnect


@dataclass(frozen=True, slots=True)
class Fee:
    """A fee besides egress: of what sites send and receive, or of links between sites."""

    name: str
    at: tuple[str, ...] = ()
    """Patterns of the sites, as :class:`EgressPrice` has them; empty where it is of links."""
    sources: tuple[str, ...] = ()
    """Patterns of the links' ends, as are :attr:`destinations`; empty where it is of sites."""
    destinations: tuple[str, ...] = ()
    direction: Literal["out", "in", "both"] = "both"
    """Of sites, what it counts: sent, received, or both. Of links, ``in`` is the way back."""
    usd_per_gb: float = 0.0
    usd_per_h: float = 0.0
    """Once a site or link in use, for as long as VMs run there."""
    unit: str = "GB"
    units_per_gb: float = 1.0
    """What answers count it in."""
    gbps: float | None = None
    """Of an interconnect: its capacity. Links that it covers go over it, by private addresses, and
    this fee is in place of egress."""
    source: str = ""
    as_of: str = ""

    def is_at(self, region: Region) -> bool:
        """Return whether it is a fee of this site."""
        return _cover(_terms(self.at), region)

    def links(self, regions: Sequence[Region]) -> Iterator[tuple[int, int]]:
        """Yield the links among regions that it is of, by position."""
        for one, region in enumerate(regions):
            for other in range(len(regions)) if _cover(_terms(self.sources), region) else ():
                for src, dst in {(one, other), (other, one)} if one != other else ():
                    if self.times(regions[src], regions[dst]):
                        yield src, dst

    def times(self, src: Region, dst: Region) -> int:
        """Count how often a GB on a link is metered."""
        if self.at:
            sent, received = self.direction != "in", self.direction != "out"
            return (sent and self.is_at(src)) + (received and self.is_at(dst))
        ways = [(src, dst)] * (self.direction != "in") + [(dst, src)] * (self.direction != "out")
        ends = _terms(self.sources), _terms(self.destinations)
        return int(any(_cover(ends[0], a) and _cover(ends[1], b, a) for a, b in ways))


class Pool(NamedTuple):
    """VMs in a region that several transfers share, and that none has to start."""

    vms: int
    vm_type: str  # id of the catalogue


@dataclass(frozen=True)
class Catalogue:
    """Everything that is known without measuring.

    `regions`, `vm_types`: by id, regions in the catalogue's order, VM types the cheapest first.
    """

    regions: dict[str, Region]
    aliases: dict[str, tuple[str, ...]]  # alias to region ids, in order of preference
    vm_types: Mapping[str, VmType]
    default_vm_types: dict[str, str]
    """Provider to the id of the VM type that is assumed unless told otherwise."""
    egress_prices: tuple[EgressPrice, ...]  # the last that matches a pair of regions holds
    digest: str = ""  # identifies the content; part of what a plan can be traced to
    vm_price_ratios: Mapping[str, float] = field(default_factory=dict)
    """Region to what VMs cost there, as a multiple of their price in the provider's first US
    region. 1 elsewhere."""
    vm_prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """VM type to region to USD for an hour, where that is known; goes before the ratio."""
    discounts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What a contract takes off, as a share (0.3 is 30 %) of ``egress`` or ``vm`` prices: by
    provider, region or VM type. ``rule NAME`` and ``TYPE in REGION`` stand for one price."""
    vcpu_quotas: tuple[VcpuQuota, ...] = ()  # what the user's account may run
    fees: tuple[Fee, ...] = ()
    link_prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Region to region to USD per GB, where a network states it; goes before :attr:`egress_prices`
    unless it is what their first tier charges, when later tiers hold, too."""
    pools: Mapping[str, Pool] = field(default_factory=dict)  # by region

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def apart(self) -> frozenset[str]:
        """The regions of partitions that not every customer may use."""
        return frozenset(name for name, region in self.regions.items() if region.is_apart)

    @cached_property
    def cheapest_by_rate(self) -> Mapping[tuple[str, AddressKind, bool], list[TypeRate]]:
        """Suggested types that last at a rate and that no cheaper one equals, cheapest first.

        By provider, kind of address, and whether they send. Types with CPU credits are left out,
        and no more counts than :data:`GBPS_A_VCPU` for each vCPU.
        """
        fronts: dict[tuple[str, AddressKind, bool], list[TypeRate]] = defaultdict(list)
        lasting = (vm for vm in self.vm_types.values() if vm.suggested and not vm.burstable)
        for vm in sorted(lasting, key=lambda vm: vm.price_usd_per_h):
            for sends, cap_gbps in ((True, vm.egress_gbps), (False, vm.ingress_gbps)):
                private_gbps = max(cap_gbps, vm.region_egress_gbps or 0.0)
                of_kinds: dict[AddressKind, float] = {"public": cap_gbps, "private": private_gbps}
                for address, most_gbps in of_kinds.items():
                    front = fronts[vm.provider, address, sends]
                    gbps = min(most_gbps, GBPS_A_VCPU * vm.vcpus)
                    if not front or gbps > front[-1][1]:
                        front.append((vm.price_usd_per_h, gbps, vm.id))
        return fronts

    def region(self, region_id: str) -> Region:
        """Return the region with this id, or of this zone; one not listed has only its id."""
        return self.regions.get(region_id) or Region(region_id, baseline=False)

    def vm_type(self, region_id: str, chosen: Mapping[str, str] | None = None) -> VmType:
        """Return the VM type used in a region.

        What is `chosen` by region or provider goes before the catalogue's defaults; if the
        catalogue lacks it, that is an InputError. A provider without a default is a DataError.
        """
        provider = region_id.partition(":")[0]
        chosen = chosen or {}
        type_id = (
            chosen.get(region_id) or chosen.get(provider) or self.default_vm_types.get(provider)
        )
        if type_id is None:
            raise DataError(
                f"No VM type is known for {region_id}: the catalogue has no default for "
                f"provider {provider!r}. Add `[default_vm_types] {provider} = ...` to your "
                "catalogue file."
            )
        if (vm_type := self.vm_types.get(type_id)) is None:
            field, remedy = f"VM type of {region_id}", self.near_vm_types(provider, type_id)
            raise InputError(field, "is not in the catalogue", value=type_id, remedy=remedy)
        return vm_type

    def vm_usd_per_h(self, region_id: str, type_id: str) -> float:
        """Return the price of a VM for an hour in a region; 0 where none is known."""
        region_id = self.region(region_id).id
        vm_type = self.vm_types.get(type_id)
        usd_per_h = self.vm_prices.get(type_id, {}).get(region_id)
        if usd_per_h is None:
            ratio = self.vm_price_ratios.get(region_id, 1.0)
            usd_per_h = vm_type.price_usd_per_h * ratio if vm_type else 0.0
        if not self.discounts:
            return usd_per_h
        provider = region_id.partition(":")[0]
        subjects = (f"{type_id} in {region_id}", type_id, region_id, provider)
        return usd_per_h * (1 - self._discount("vm", subjects))

    def near_vm_types(self, provider: str, type_id: str) -> str:
        """Return a remedy for an id that is not in the catalogue."""
        known = [known for known in self.vm_types if known.startswith(f"{provider}:")]
        if not known:
            return "Add it to a catalogue file of your own."
        near = get_close_matches(type_id[:100], known, n=_NEAR_SHOWN, cutoff=0.0)
        return (
            f"The nearest of {len(known)} known are {', '.join(near)}; a catalogue file of your "
            "own can add more."
        )

    def egress_price(self, source_id: str, destination_id: str) -> EgressPrice:
        """Return the price entry for traffic from one region to another, else a DataError.

        Less discounts, with the fees per GB of both sites and of the link.
        """
        ends = self.region(source_id).id, self.region(destination_id).id
        source, destination = map(self.priced_as, ends)
        if source == destination and ends[0] != ends[1]:  # two alike, not zones of one
            destination = next(end for end in ends if end != source)
        found = self._price_between(source, destination)
        if found is not None:
            return found
        raise DataError(
            f"No egress price is known from {source_id} to {destination_id}. Add an "
            "`[[egress]]` entry that covers it to your catalogue file."
        )

    @cached_property
    def _price_between(self) -> Callable[[str, str], EgressPrice | None]:
        rules = [
            (p, _terms(p.sources), _terms(p.destinations)) for p in reversed(self.egress_prices)
        ]

        @cache  # a plan asks for some 130 pairs, from every region
        def that_start_at(source: str) -> list[tuple[EgressPrice, _Patterns]]:
            region = self.region(source)
            return [(price, into) for price, out_of, into in rules if _cover(out_of, region)]

        def charged(price: EgressPrice, start: Region, fees_usd: float) -> EgressPrice:
            subjects = (f"rule {price.name}", start.id, start.provider) if self.discounts else ()
            share = self._discount("egress", subjects)
            return _charged(price, share, fees_usd) if share or fees_usd else price

        def price_between(source: str, destination: str) -> EgressPrice | None:
            start, end = self.region(source), self.region(destination)
            fees = sum(fee.usd_per_gb * fee.times(start, end) for fee in self.fees)
            for over in reversed(self.fees):
                if over.gbps and over.times(start, end):
                    tiers, stated = (Tier(0.0),), (over.source, over.as_of)
                    own = EgressPrice(over.name, (), (), tiers, *stated, gbps=over.gbps)
                    return _charged(own, 0.0, fees)
            rules = that_start_at(source)
            rule = next((price for price, into in rules if _cover(into, end, start)), None)
            found = rule and charged(rule, start, fees)
            usd_per_gb = self.link_prices.get(source, {}).get(destination)
            if usd_per_gb is None or (found and found.tiers[0].usd_per_gb == usd_per_gb):
                return found
            name, tiers = f"{source} -> {destination}", (Tier(usd_per_gb),)
            return charged(EgressPrice(name, (source,), (destination,), tiers), start, fees)

        return cache(price_between)

    @cached_property
    def priced_alike(self) -> Callable[[tuple[str, ...], str, bool], _Alike]:
        """From regions, an end and whether it sends, to regions that represent them in prices.

        Returns the representatives, and for each region the position of its own among them: of one
        provider, with the same price of traffic to the end, or from it; regions without a price are
        alike, too.
        """

        @lru_cache(_MOST_KEPT)
        def priced_alike(regions: tuple[str, ...], end: str, sends: bool) -> _Alike:
            numbers, found = dict[tuple[str, object], int](), []
            some: list[str] = []
            for region in regions:
                try:
                    price = self.egress_price(*((end, region) if sends else (region, end))).tiers
                except DataError:
                    price = None
                kind = region.partition(":")[0], price
                if kind not in numbers:
                    numbers[kind] = len(some)
                    some.append(region)
                found.append(numbers[kind])
            return some, np.array(found)

        return priced_alike

    @cached_property
    def vm_prices_usd_per_h(self) -> Callable[..., NDArray[np.float64]]:
        """From regions and their VM types to :meth:`vm_usd_per_h` of each."""

        @lru_cache(_MOST_KEPT)
        def prices(regions: tuple[str, ...], vm_types: tuple[str, ...]) -> NDArray[np.float64]:
            return np.array(list(map(self.vm_usd_per_h, regions, vm_types)))

        return prices

    @cached_property
    def has_interconnects(self) -> bool:
        """Whether links go over any."""
        return any(fee.gbps for fee in self.fees)

    @cached_property
    def limits_connections(self) -> bool:
        """Whether some region limits its connections."""
        return any(r.connections_in or r.connections_out for r in self.regions.values())

    @cached_property
    def priced_as(self) -> Callable[[str], str]:
        """From a region to the first that was asked for, of those whose traffic costs the same.

        A thousand regions have a million pairs, but no more prices than there are kinds of regions.
        """
        first: dict[tuple[object, ...], str] = {}
        named = {*self.discounts, *self.link_prices}.union(*self.link_prices.values())
        texts: dict[str, set[str]] = {"id": named, "prefix": set(), "glob": set()}
        lists = [(*price.sources, *price.destinations) for price in self.egress_prices]
        for patterns in lists + [(*f.at, *f.sources, *f.destinations) for f in self.fees]:
            for pattern in _terms(patterns):
                for kind, text in pattern:
                    texts.setdefault(kind, set()).add(text)

        def priced_as(region_id: str) -> str:
            region = self.region(region_id)
            kind = (
                *(region.partition, region.continent, region.country),
                region_id if region_id in named else "",
                *map(region_id.startswith, texts["prefix"]),
                *(_holds("glob", glob, region, None) for glob in texts["glob"]),
            )
            return first.setdefault(kind, region_id)

        return cache(priced_as)

    def _discount(self, kind: str, subjects: Iterable[str]) -> float:
        """Return the share that is taken off: the first subject that has one decides."""
        for subject in subjects:
            share = self.discounts.get(subject, {}).get(kind)
            if share is not None:
                return share
        return 0.0


@lru_cache(maxsize=1024)
def _charged(price: EgressPrice, share: float, fees_usd: float) -> EgressPrice:
    """Return a price less a discount, with fees for each GB; the same object for the same price."""
    less = f"{price.source}; less a discount of {share:.4g}" if share else price.source
    tiers = (Tier(t.usd_per_gb * (1 - share) + fees_usd, t.up_to_gb) for t in price.tiers)
    return replace(price, tiers=tuple(tiers), source=less)


def covers(pattern: str, region: Region) -> bool:
    """Return whether a pattern of regions, as prices have them, covers a region."""
    return _cover(_terms((pattern,)), region)


_Patterns: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""Of each pattern the terms that must all hold: a kind and a text."""
RELATIVE_TERMS = ("same-provider", "other-provider", "same-continent", "same-region")
"""Terms of destinations, as seen from the source."""
_SAME_REGION = "same-region", ""


@lru_cache(maxsize=1024)  # prices share them
def _terms(patterns: tuple[str, ...]) -> _Patterns:
    return tuple(tuple(_parsed_term(t.strip()) for t in one.split("&")) for one in patterns)


def _cover(patterns: _Patterns, region: Region, seen_from: Region | None = None) -> bool:
    is_within = seen_from is not None and region.id == seen_from.id
    return any(
        is_within == (_SAME_REGION in terms)
        and all(_holds(kind, text, region, seen_from) for kind, text in terms)
        for terms in patterns
    )


def _parsed_term(term: str) -> tuple[str, str]:
    """Return the kind of a term and its text."""
    if term in RELATIVE_TERMS:
        return term, ""
    kind, _, value = term.partition(":")
    if kind in {"continent", "country"}:
        return kind, value
    if "*" not in term:
        return "id", term
    if term.index("*") == len(term) - 1:
        return "prefix", term[:-1]
    return "glob", term


def _holds(kind: str, text: str, region: Region, seen_from: Region | None) -> bool:
    if kind == "prefix":
        return region.id.startswith(text)
    if kind in {"id", "continent", "country"}:
        return bool(getattr(region, kind) == text)
    if kind == "glob":
        return fnmatchcase(region.id, text.replace("[", "[[]").replace("?", "[?]"))
    if seen_from is None or kind == "same-region":
        return seen_from == region
    if kind == "same-continent":
        return region.continent == seen_from.continent != ""
    return (region.partition == seen_from.partition) == (kind == "same-provider")
