"""The WAN as a graph of estimates: sites and links, each number with its bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from planner.model.errors import DataError, InputError
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, STATED, AddressKind, Bound, exactly
from planner.model.link import LIMITED_BY, LINK_FIGURES, PRIVATE_CAPS, SITE_FIGURES, Link, Site
from planner.model.link_array import (
    FIGURE,
    LINK,
    Floats,
    LinkArray,
    held_ends,
    limits_of,
    most_gbps,
    rates_gbps,
)
from planner.model.link_states import LinkState, Pair
from planner.model.notebook import html_table
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS
from planner.model.verification import AchievedShare, Verified

if TYPE_CHECKING:
    import networkx as nx

WhyNewer: TypeAlias = Literal["none", "begun", "failed"]


MOST_HELD_KEPT = 2000
MOST_ALONE_KEPT = 500
"""Networks of one link; with what plans derive from them, some 30 kB each."""

HeldRates: TypeAlias = tuple[Floats, Floats, Floats]
"""Gbit/s of one VM pair on links, in the network's order: what its connections carry, 0 where there
is no link; and what one VM is held to that sends, and one that receives, infinite where none is."""
Links: TypeAlias = Mapping[str, Mapping[str, Link]]
"""Source to destination to link."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of knowledge behind a graph; every plan names it."""

    id: str
    as_of: str
    source: str


UNSAVED = Snapshot("unsaved", "", "given")


@dataclass(frozen=True, slots=True)
class NewerSamples:
    """Samples that are stored, the first at `since_s`, and that a snapshot does not know.

    The reason: no snapshot of them was made; one was begun and has not ended; or it failed at
    `tried_at_s`. Times are seconds since 1970 (UTC).
    """

    samples: int
    since_s: float
    reason: WhyNewer
    tried_at_s: float | None = None


@dataclass(frozen=True, repr=False)
class Network:
    """An immutable WAN graph; :meth:`with_` derives another from it."""

    sites: Mapping[str, Site]
    """Region id to :class:`Site`, in a fixed order that also breaks ties between equals."""
    usual: LinkArray
    """Source and destination to :class:`Link` in usual times; :attr:`links` has them as they are
    now. Any mapping becomes a :class:`.LinkArray` of the sites, in their order; pairs may be
    missing."""
    snapshot: Snapshot = UNSAVED
    link_states: Mapping[Pair, LinkState] = field(default_factory=dict)
    """Source and destination to the state of a link, as far as known; :attr:`states` has those of
    links of this network that are down or degraded."""
    verified: Mapping[Pair, Verified] = field(default_factory=dict)
    """Source and destination to the last verification of a plan between them, which
    :func:`planner.model.calibration.calibrated` makes bounds allow for."""
    aged_to_s: float | None = field(default=None, compare=False)
    """Time that bounds are widened for, seconds since 1970 (UTC); None for those as measured."""
    others: LinkArray = field(default_factory=LinkArray)
    """Like `usual`: links over the kind of address that is not in use, where both are known
    (:mod:`relayd.sources.addresses`)."""
    newer_samples: NewerSamples | None = None  # what has waited for a snapshot for too long
    achieved: tuple[AchievedShare, ...] = ()
    """Of transfers that finished; they move no estimate here."""

    if TYPE_CHECKING:

        def __init__(
            self,
            sites: Mapping[str, Site],
            usual: Links,
            snapshot: Snapshot = UNSAVED,
            link_states: Mapping[Pair, LinkState] = ...,
            verified: Mapping[Pair, Verified] = ...,
            aged_to_s: float | None = None,
            others: Links = ...,
            newer_samples: NewerSamples | None = None,
            achieved: tuple[AchievedShare, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        """Lay the links out in the order of the sites."""
        object.__setattr__(self, "usual", _of_sites(self.usual, self.sites))
        others = _of_sites(self.others, self.sites)
        object.__setattr__(self, "others", others or LinkArray())

    def __repr__(self) -> str:
        """Say how large the graph is and where it is from."""
        sites, links = len(self.sites), self.usual.count
        return f"<Network {self.snapshot.id}: {sites} sites, {links} links>"

    def _repr_html_(self) -> str:
        """Return a table of the sites and how many links leave each, for notebooks."""
        header, rows = ("Site", "VM type", "Egress, Gbit/s", "Ingress, Gbit/s", "Links out"), []
        for region, site in self.sites.items():
            caps = (f"{cap.expected:.3g}" for cap in (site.egress_gbps, site.ingress_gbps))
            rows.append((region, site.vm_type, *caps, str(len(self.usual[region]))))
        return html_table(repr(self)[1:-1], header, rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check_region(self, region: str, field: str, *, names: str = "") -> None:
        """Refuse a region that the network lacks; an error says which field has it.

        If the field is no region, `names` are words before the problem: ``names a region that``.
        """
        if region not in self.sites:
            problem = f"{names} is not part of the network".strip()
            remedy = "Measure it, import measurements, or add it to a catalogue file."
            raise InputError(field, problem, value=region, remedy=remedy)

    def with_(
        self,
        *,
        sites: Mapping[str, Site] | None = None,
        links: Links | None = None,
        others: Links | None = None,
        snapshot: Snapshot | None = None,
        link_states: Mapping[Pair, LinkState] | None = None,
        verified: Mapping[Pair, Verified] | None = None,
        restricted_to: Collection[str] | None = None,
        aged_to_s: float | None = None,
        newer_samples: NewerSamples | None = None,
        achieved: tuple[AchievedShare, ...] | None = None,
    ) -> Network:
        """Return the network with some of it replaced; all else is carried over.

        ``links`` are those of usual times: states of links are laid over them. Regions that it is
        `restricted_to` keep their order, and the links among them; at `aged_to_s`, seconds since
        1970 (UTC), all bounds are widened for age.
        """
        sites = self.sites if sites is None else sites
        usual = self.usual if links is None else links
        others = self.others if others is None else others
        if restricted_to is not None:
            kept = frozenset(restricted_to)
            sites = {name: site for name, site in sites.items() if name in kept}
        if aged_to_s is not None:
            usual = _of_sites(usual, sites).aged(aged_to_s, self.aged_to_s)
            others = _of_sites(others, sites).aged(aged_to_s, self.aged_to_s) if others else others
        return Network(
            sites,
            usual,
            self.snapshot if snapshot is None else snapshot,
            self.link_states if link_states is None else link_states,
            self.verified if verified is None else verified,
            self.aged_to_s if aged_to_s is None else aged_to_s,
            others,
            self.newer_samples if newer_samples is None else newer_samples,
            self.achieved if achieved is None else achieved,
        )

    @cached_property
    def states(self) -> Mapping[Pair, LinkState]:
        """Source and destination to the state of each link that is down or degraded."""
        return {
            (src, dst): state
            for (src, dst), state in self.link_states.items()
            if state.condition != "up" and self.usual.link(src, dst) is not None
        }

    @cached_property
    def links(self) -> LinkArray:
        """Source to destination to link, as they are now: a link that is down carries nothing."""
        if not self.states:
            return self.usual
        return self.usual.with_links(
            state.applied_to(self.usual[src][dst]) for (src, dst), state in self.states.items()
        )

    @cached_property
    def alone(self) -> Callable[[str, str], Network]:
        """From the ends of a link to a network of them and that link at usual times.

        The newest :data:`MOST_ALONE_KEPT` are kept, with what was derived from them.
        """

        def alone(src: str, dst: str) -> Network:
            link = LinkArray.of([self.usual[src][dst]], (src, dst))
            ends = {name: site for name, site in self.sites.items() if name in {src, dst}}
            return self.with_(sites=ends, links=link)

        return lru_cache(MOST_ALONE_KEPT)(alone)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Results that were derived from this network, and are kept with it.

        By keys of those that derived them, in which all stands that they depend on besides.
        """
        return {}

    def link(self, src: str, dst: str) -> Link:
        """Return one link; a DataError if nothing is known of it."""
        try:
            return self.links[src][dst]
        except KeyError:
            raise DataError(
                f"Nothing is known of {src} -> {dst}. Measure it, import a measurement, or but for "
                "links across China's border give both regions coordinates in the catalogue."
            ) from None

    def addresses(self, regions: Sequence[str]) -> tuple[AddressKind, ...]:
        """Return the kind of address of each link of a path."""
        return tuple(self.link(src, dst).address for src, dst in pairwise(regions))

    def __iter__(self) -> Iterator[Link]:
        """Iterate over all links, by source and destination, without keeping them."""
        return self.links.all_links()

    @cached_property
    def index(self) -> dict[str, int]:
        """Region id to its position in the order of sites."""
        return {region: position for position, region in enumerate(self.sites)}

    @cached_property
    def held_out_of(self) -> Callable[..., HeldRates]:
        """From a region, and a number of connections, to what VMs are held to on links out of it.

        Those of the region, and those of every site.
        See :func:`~planner.model.link_array.held_ends`.
        """
        return lru_cache(MOST_HELD_KEPT)(partial(self._held, own=0))

    @cached_property
    def held_into(self) -> Callable[..., HeldRates]:
        """The same of links into a region."""
        return lru_cache(MOST_HELD_KEPT)(partial(self._held, own=1))

    def _held(self, region: str, connections: int = LAW_CONNECTIONS, *, own: int) -> HeldRates:
        at, caps = self.index[region], list[Any]()
        cells = self.links.column(at) if own else self.links.row(at)
        is_private = cells["address"] == ADDRESS_KINDS.index("private") + 1
        for end in (0, 1):
            of_end = at if end == own else slice(None)
            caps.append(self.caps(address="public")[end][of_end])
            if self.has_private_links:
                private = self.caps(address="private")[end][of_end]
                caps[-1] = np.where(is_private, private, caps[-1])
        rates = most_gbps(cells, connections)
        sends, receives = (
            np.where(held | (cells["address"] == 0), rates, inf)
            for held in held_ends(cells["limited_by"], *caps)
        )
        return connections * rates_gbps(cells, 1), sends, receives

    def held_pairs(self, src: str, dst: str, src_vms: int, dst_vms: int) -> int:
        """Return the number of VM pairs, among so many VMs, that a link gives its rate to."""
        if src_vms == dst_vms:
            return src_vms
        link, sites = self.link(src, dst), self.sites
        caps = sites[src].egress(link.address).expected, sites[dst].ingress(link.address).expected
        held = held_ends(np.array(LIMITED_BY.index(link.limited_by)), *caps)
        return min(vms for vms, holds in zip((src_vms, dst_vms), held, strict=True) if holds)

    @cached_property
    def reporters(self) -> frozenset[tuple[str, ...] | None]:
        """The sets of sources that figures of links and sites rest on."""
        sites = [one.origin for site in self.sites.values() for one in site.estimates.values()]
        figures = (origin.figures for origin in (*self.usual.origins, *sites))
        return frozenset(one and one.reported_by for one in figures)

    @property
    def has_private_links(self) -> bool:
        """Return whether links over private addresses are in use."""
        return self.usual.has_private

    def caps(
        self, bound: Bound = "expected", address: AddressKind | None = None
    ) -> tuple[Floats, Floats]:
        """Return every site's egress and ingress cap of one VM, in the network's order.

        Without a kind of address, the caps of all traffic together: those of private addresses
        where they are in use and higher.
        """
        if address is None and not self.has_private_links:
            address = "public"
        if (bound, address) not in self._caps:
            kinds, sites = (address,) if address else ADDRESS_KINDS, self.sites.values()
            egress, ingress = (
                np.array([max(cap(site, kind).at(bound) for kind in kinds) for site in sites])
                for cap in (Site.egress, Site.ingress)
            )
            self._caps[bound, address] = egress.astype(float), ingress.astype(float)
        return self._caps[bound, address]

    @cached_property
    def _caps(self) -> dict[tuple[Bound, AddressKind | None], tuple[Floats, Floats]]:
        return {}

    @cached_property
    def limited(self) -> tuple[int, ...]:
        """Positions of the sites whose VMs a fleet or a quota limits."""
        sites = enumerate(self.sites.values())
        return tuple(at for at, site in sites if site.vms or site.quotas)

    @classmethod
    def from_matrices(
        cls,
        regions: Sequence[str],
        aggregate_gbps: np.ndarray,
        *,
        rtt_ms: np.ndarray | float = 100.0,
        per_flow_mbps: np.ndarray | None = None,
        egress_gbps: Sequence[float] | None = None,
        ingress_gbps: Sequence[float] | None = None,
    ) -> Network:
        """Build a network of n regions of any unique names from figures that are taken as exact.

        Matrices are (n, n), row to column, the diagonal ignored. `aggregate_gbps` is the saturated
        throughput of one VM pair, NaN or 0 where there is no link; without `per_flow_mbps`, a
        single flow is taken to reach it. Caps are of one VM, length n; without them, the largest
        rate of the row or column. Shapes that disagree, names that repeat, and negative or infinite
        figures are InputErrors.
        """
        count = len(regions)
        if len(set(regions)) != count:
            raise InputError("regions", "has the same name twice", value=list(regions))
        aggregate = _checked_matrix("aggregate_gbps", aggregate_gbps, count)
        rtt = _checked_matrix("rtt_ms", np.broadcast_to(rtt_ms, (count, count)), count)
        if per_flow_mbps is None:
            flow = aggregate * MBPS_PER_GBPS
        else:
            flow = _checked_matrix("per_flow_mbps", per_flow_mbps, count)
        egress = _stated_caps("egress_gbps", egress_gbps, aggregate.max(axis=1, initial=0.0))
        ingress = _stated_caps("ingress_gbps", ingress_gbps, aggregate.max(axis=0, initial=0.0))
        sites = {
            region: Site(region, "", exactly(sends), exactly(receives), exactly(inf))
            for region, sends, receives in zip(regions, egress, ingress, strict=True)
        }
        present = aggregate > 0
        cells, caps = np.zeros(present.shape, LINK), np.zeros(present.shape, FIGURE)
        for bound in BOUNDS:
            caps[bound] = np.minimum(np.array(egress)[:, None], ingress)
            for name, values in zip(LINK_FIGURES, (rtt, flow, aggregate), strict=True):
                cells[name][bound] = np.where(present, values, 0.0)
        cells["limited_by"] = limits_of(cells["aggregate_gbps"], caps)
        cells["address"] = present * (ADDRESS_KINDS.index("public") + 1)
        cells["loss_pct"] = np.where(present, np.nan, 0.0)
        return cls(sites, LinkArray.of_origins(regions, cells, [STATED]))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> Network:
        """Build a network from a directed graph.

        Edges carry ``aggregate_gbps`` (one without is an InputError) and optionally ``rtt_ms`` and
        ``per_flow_mbps``; nodes optionally ``egress_gbps`` and ``ingress_gbps``. Figures are taken
        as exact, unless bounds and a source come with them as :meth:`to_networkx` names them;
        negative or infinite ones are InputErrors.
        """
        position = {node: i for i, node in enumerate(graph.nodes)}
        aggregate, flow = np.zeros((2, len(position), len(position)))
        rtt = np.full_like(flow, 100.0)
        bare = [(u, v) for u, v, data in graph.edges(data=True) if "aggregate_gbps" not in data]
        if bare:
            of_all = f" ({len(bare):,} of {len(graph.edges):,} edges lack it)"
            problem = f"has no attribute aggregate_gbps{of_all if len(bare) > 1 else ''}"
            raise InputError(f"edge {bare[0][0]} -> {bare[0][1]}", problem, remedy="Add it.")
        for u, v, data in graph.edges(data=True):
            at = position[u], position[v]
            aggregate[at] = data["aggregate_gbps"]
            rtt[at] = data.get("rtt_ms", 100.0)
            flow[at] = data.get("per_flow_mbps", data["aggregate_gbps"] * MBPS_PER_GBPS)
        caps: dict[str, Any] = {
            name: [data.get(name) for _, data in graph.nodes(data=True)]
            for name in ("egress_gbps", "ingress_gbps")
        }
        names = list(map(str, graph.nodes))
        exact = cls.from_matrices(names, aggregate, rtt_ms=rtt, per_flow_mbps=flow, **caps)
        if not any("limited_by" in data for _, _, data in graph.edges(data=True)):
            return exact
        sites = {str(node): _said(exact.sites[str(node)], d) for node, d in graph.nodes(data=True)}
        links = (
            _said(link, data)
            for u, v, data in graph.edges(data=True)
            if (link := exact.usual.link(str(u), str(v)))
        )
        return exact.with_(sites=sites, links=LinkArray.of(links, sites))

    def to_networkx(self) -> nx.DiGraph:
        """Return a directed graph; each estimate becomes ``name``, ``name_low``, ``name_high``."""
        import networkx as nx  # takes longer to load than most plans take

        graph = nx.DiGraph(snapshot=self.snapshot.id, as_of=self.snapshot.as_of)
        for site in self.sites.values():
            graph.add_node(site.region, **_attributes(site))
        for link in self:
            graph.add_edge(link.src, link.dst, **_attributes(link))
        return graph


_FIGURES = (*SITE_FIGURES, *PRIVATE_CAPS, *LINK_FIGURES)
_OF_SITES, _OF_LINKS = ("vm_type", "vms", "private_network"), ("loss_pct", "limited_by", "address")
_FACTS = (*_OF_SITES, *_OF_LINKS, "slow_connections")
T = TypeVar("T", Site, Link)


def _attributes(of: Site | Link) -> dict[str, Any]:
    """Return the figures and facts of a site or link that are known, as attributes of a graph."""
    found = {n: v for n in _FACTS if (v := getattr(of, n, None)) is not None}
    for name in _FIGURES:
        if one := getattr(of, name, None):
            found |= {name: one.expected, f"{name}_source": one.source}
            found |= {f"{name}_low": one.low, f"{name}_high": one.high}
    return found


def _said(of: T, attributes: Mapping[str, Any]) -> T:
    """Return a site or link of exact figures with what attributes of a graph say besides."""
    found = {n: attributes[n] for n in _FACTS if n in attributes and hasattr(of, n)}
    for name in _FIGURES:
        if f"{name}_low" in attributes and hasattr(of, name):
            value, kind = attributes[name], attributes.get(f"{name}_source", "measured")
            low, high = attributes[f"{name}_low"], attributes.get(f"{name}_high", value)
            stated = exactly(value, STATED._replace(kind=kind))
            found[name] = replace(stated, low=min(low, value), high=max(high, value))
    return replace(of, **found)


def _of_sites(links: Links, sites: Mapping[str, Site]) -> LinkArray:
    """Return links as an array in the order of sites."""
    if not isinstance(links, LinkArray):
        links = LinkArray.of((link for row in links.values() for link in row.values()), sites)
    return links.among(sites)


def _stated_caps(
    name: str, given: Sequence[float | None] | None, largest: np.ndarray
) -> list[float]:
    """Return caps as stated, else the largest rate seen; above 0 wherever there is a link."""
    stated = [None] * len(largest) if given is None else given
    if len(stated) != len(largest):
        raise InputError(name, f"must have {len(largest)} figures, one a region", value=len(stated))
    caps = [float(a if b is None else b) for a, b in zip(largest, stated, strict=True)]
    for i, cap in enumerate(caps):
        if not cap > 0 and (largest[i] > 0 or cap != 0):
            raise InputError(f"{name}[{i}]", "must be above 0", value=cap)
    return caps


def _checked_matrix(name: str, values: np.ndarray, count: int) -> np.ndarray:
    matrix = np.array(values, dtype=float)
    if matrix.shape != (count, count):
        problem = f"must have shape ({count}, {count}), one row and column a region"
        raise InputError(name, problem, value=matrix.shape)
    np.fill_diagonal(matrix, 0.0)
    matrix[np.isnan(matrix)] = 0.0
    for i, j in np.argwhere((matrix < 0) | np.isinf(matrix)).tolist():
        problem = "must be finite and not negative"
        raise InputError(f"{name}[{i}, {j}]", problem, value=float(matrix[i, j]))
    return matrix
