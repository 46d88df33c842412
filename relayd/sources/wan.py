"""The library's interface: one object that plans, and shows its network and catalogue."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain, product
from math import inf
from threading import Lock
from time import time as clock
from typing import TYPE_CHECKING, Any, Unpack

from planner.fields.shared import DEFAULT_CONNECTIONS, DEFAULT_VOLUME_GB
from planner.fields.specified import Specified
from planner.model.aliases import Resolution, locations, resolve, served
from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.baseline.modelled_links import with_regions
from planner.model.catalogue import Catalogue, Hosts, Region
from planner.model.errors import AmbiguousRegionError, InputError
from planner.model.estimate import WantedAddresses
from planner.model.link import Site
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Network, Snapshot
from planner.model.pricing import provider_of
from planner.model.quotas.sites import with_quotas
from relayd.questions.asking import Asking
from relayd.questions.holds import NONE_HELD, Holds
from relayd.questions.registry import question_of, snapshot_of
from relayd.sources.addresses import over_addresses, within_partitions
from relayd.sources.given import graph_of
from relayd.tables.figures import matrix_of, measured_regions
from relayd.tables.link_table import LinkTable
from relayd.tables.matrices import MATRIX_METRICS, Matrix, MatrixMetric

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike

    from planner.model.answer import Recommendation
    from planner.model.link_array import Records
    from relayd.client.blocking import WaitingTransfer
    from relayd.transfers.reporting import Tell, TransferOptions

LEAST_DERIVED_KEPT, MOST_DERIVED_KEPT = 16, 160
MOST_LINKS_KEPT = 1_000_000
"""Derived networks that are kept: as many as hold so many links, within the bounds above."""


class NetworkCache:
    """Networks derived from a source's, of which the whole has bounds widened for age."""

    def __init__(self, source: Network, whole: Network) -> None:
        self.source, self.whole = source, whole
        self._derived: OrderedDict[tuple[object, ...], tuple[Network, Network]] = OrderedDict()
        of_links = MOST_LINKS_KEPT // max(1, len(whole.sites)) ** 2
        self._most_derived = min(max(LEAST_DERIVED_KEPT, of_links), MOST_DERIVED_KEPT)
        self._lock = Lock()

    @cached_property
    def preferred(self) -> frozenset[str]:
        """Regions that throughput was measured from or to, and those of the fleet."""
        fleet = {name for name, site in self.whole.sites.items() if site.vms is not None}
        return frozenset(measured_regions(self.whole) | fleet)

    def derived(
        self, how: tuple[object, ...], derive: Callable[..., Network], network: Network, *more: Any
    ) -> Network:
        """Return the network that was derived in some way before, else derive it."""
        key = (id(network), *how)
        with self._lock:
            if kept := self._derived.get(key):
                self._derived.move_to_end(key)
                return kept[1]
        found = derive(network, *more)
        with self._lock:
            # Kept with what it was made of, so that the identity stays taken.
            self._derived[key] = (network, found)
            if len(self._derived) > self._most_derived:
                self._derived.popitem(last=False)
        return found


class Wan(Asking):
    """The wide-area network as far as it is known, and what to do on it.

    Make one with :func:`relayd.open`. This one knows one network, for ever; nothing is read, so any
    thread may use it. :class:`~relayd.sources.stored.StoredWan` reads its network when first asked,
    and keeps it until :meth:`refresh`; :class:`~relayd.sources.mirror.MirroredWan` copies a
    service's, and looks for newer ones by itself.

    Parameters
    ----------
    catalogue : Catalogue
        Regions, VM types and prices that answers rest on.
    network : Network
        A whole one. The state of each link is forgotten at the end of its validity: who said so
        may not be there any more to say that the link is back.
    """

    _cache: NetworkCache | None = None
    _believed: tuple[Network | None, Mapping[Pair, LinkState], float] = (None, {}, inf)
    """A network, its links that are down or degraded, and until when they are these."""
    _holds: Holds = NONE_HELD

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue, self._network = catalogue, network

    def __repr__(self) -> str:
        """Say what it rests on."""
        return f"<Wan on snapshot {self.snapshot.id}>"

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on."""
        return self.as_read().snapshot

    @property
    def network(self) -> Network:
        """The whole graph of estimates, bounds widened for age, and links as they are now."""
        cache = self._current_cache()
        return self._as_asked(cache.whole, {}, "auto", "as they come", cache)

    def as_read(self) -> Network:
        """Return the network with verifications: the same object until there is a newer one."""
        return self._network

    def link_states(self) -> Mapping[Pair, LinkState]:
        """Return the links that are down or degraded; the same object while they are the same."""
        now_s, network = clock(), self._network
        of, states, until_s = self._believed
        if of is not network or now_s > until_s:
            believed = still_believed(network.link_states, now_s)
            states = believed if len(believed) < len(network.link_states) else network.link_states
            ends = (state.valid_until_s for state in states.values())
            until_s = min((end_s for end_s in ends if end_s is not None), default=inf)
            self._believed = network, states, until_s
        return states

    def holds(self) -> Holds:
        """Return the capacity that transfers under way hold now."""
        return self._holds.live(clock())

    def holding(self, holds: Holds) -> Wan:
        """Return the same network with what transfers hold, known by who keeps their register."""
        if holds.version == self._holds.version:
            return self
        held = copy(self)
        held._holds = holds
        return held

    def refresh(self) -> Snapshot:
        """Forget cached data, so that the next answer rests on the newest snapshot.

        Raises
        ------
        RelaydError
            If a service that this is a copy of does not answer.
        """
        self.close()
        return self.snapshot

    def refresh_link_states(self) -> Mapping[Pair, LinkState]:
        """Look again which links are down or degraded, and return them."""
        return self.link_states()

    def close(self) -> None:
        """Close what is open: a store, which a later question opens again, or connections."""

    # ---- graphs that questions rest on -----------------------------------------------------

    def network_of(
        self,
        regions: Sequence[str],
        vm_types: Mapping[str, str] = {},
        addresses: WantedAddresses = "auto",
        hosts: Hosts = "as they come",
    ) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet.

        Parameters
        ----------
        regions : sequence of str
            Region ids.
        vm_types : mapping
            Region or provider to VM type, both as ids of the catalogue.
        addresses : {"auto", "public", "private"}
            See :func:`relayd.sources.addresses.over_addresses`.
        hosts : {"as they come", "tuned"}
            Whether the TCP windows of all hosts are raised.
        """
        cache = self._current_cache()
        network = cache.whole
        if further := tuple(region for region in regions if region not in network.sites):
            every = cache.derived(
                ("all",), with_regions, network, self.catalogue, self.catalogue.regions
            )
            whole = with_regions(every, self.catalogue, further)
            sites = {**network.sites, **{name: whole.sites[name] for name in further}}
            with_chosen = partial(Network.with_, sites=sites, links=whole.usual)
            network = cache.derived(further, with_chosen, network)
        network = self._as_asked(network, vm_types, addresses, hosts, cache)
        if self.catalogue.apart.intersection(network.sites):
            key, ends = ("partitions", *sorted(regions)), frozenset(regions)
            network = cache.derived(key, within_partitions, network, self.catalogue, ends)
        if self.catalogue.vcpu_quotas:  # what they leave at its sites
            network = cache.derived(("vCPU quotas",), with_quotas, network, self.catalogue)
        return network

    def _current_cache(self) -> NetworkCache:
        cache, network = self._cache, self.as_read()
        if cache is None or cache.source is not network:
            # As a service has it, whose network a mirror ages: the order decides last digits.
            usual = over_addresses(network, self.catalogue, "auto")
            whole = usual.with_(aged_to_s=clock())
            cache = self._cache = NetworkCache(network, whole)
        return cache

    def _as_asked(
        self,
        network: Network,
        vm_types: Mapping[str, str],
        addresses: WantedAddresses,
        hosts: Hosts,
        cache: NetworkCache,
    ) -> Network:
        """Return a network with other VM types and hosts, over a kind of address, as it is now."""
        # What was measured tells over which addresses VMs reach each other: models of other types
        # would hide it.
        network = cache.derived(
            ("addresses", addresses), over_addresses, network, self.catalogue, addresses
        )
        if vm_types:
            key = tuple(sorted(vm_types.items()))
            network = cache.derived(key, with_vm_types, network, self.catalogue, vm_types)
        if hosts == "tuned":
            network = cache.derived(("hosts", hosts), with_tuned_hosts, network, self.catalogue)
        states = self.link_states()
        if network.link_states is states:
            return network
        with_states = partial(Network.with_, link_states=states)
        return cache.derived((id(states),), with_states, network)

    # ---- names ---------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        """Return all regions that can be planned between: measured ones and the catalogue's."""
        names = dict.fromkeys([*self.known_regions(), *self.catalogue.regions])
        return [self.catalogue.region(name) for name in names]

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""
        return list(self.sites())

    def sites(self) -> Mapping[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return self.as_read().sites

    def resolve(
        self, name: str, field: str = "region", prefer_provider: str | None = None
    ) -> Resolution:
        """Return the region that a name or alias stands for, with a note if it was a choice."""
        return resolve(
            name,
            self.catalogue,
            field=field,
            known=self.known_regions(),
            prefer_provider=prefer_provider,
            preferred=lambda: self._current_cache().preferred,
        )

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[Resolution, ...]]:
        """Return both ends of a transfer as region ids, with what they were chosen from.

        An end that fits several providers goes with the other end's, where traffic is cheaper. A
        bucket in several regions is served by the one of least round-trip time to the other end.

        Raises
        ------
        AmbiguousRegionError
            If an end fits several regions and the other end does not settle which.
        UnknownRegionError
            If no region has a name.
        """
        try:
            source = self.resolve(src, "src")
        except AmbiguousRegionError as unclear:  # which the destination may settle
            try:
                provider = provider_of(self.resolve(dst, "dst").region_id)
            except InputError:
                raise unclear from None
            source = self.resolve(src, "src", provider)
        target = self.resolve(dst, "dst", provider_of(source.region_id))
        found = source, target
        several = [locations(end.name, self.catalogue) or (end.region_id,) for end in found]
        if max(map(len, several)) > 1:
            links = self.network_of([*chain(*several)]).usual

            def apart_ms(pair: Pair) -> float:
                link = links.link(*pair)
                return link.rtt_ms.expected if link else (0.0 if pair[0] == pair[1] else inf)

            nearest = min(product(several[0], several[1]), key=apart_ms)
            source, target = (
                served(end, region, "the nearest to the other end") if len(regions) > 1 else end
                for end, region, regions in zip(found, nearest, several, strict=True)
            )
        return source.region_id, target.region_id, (source, target)

    # ---- decisions -----------------------------------------------------------------------

    def ask(self, request: Specified) -> Any:
        """Answer a request; ``plan(...)`` and the others make one and ask it.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        earlier = snapshot_of(request)
        return question_of(request).solve(self.at(earlier) if earlier else self, request)

    def decide(
        self,
        src: str | Sequence[str],
        dst: str | Sequence[str],
        volume_gb: ArrayLike | str = DEFAULT_VOLUME_GB,
        *,
        splits: bool = False,
        **fields: Any,
    ) -> Records:
        """Decide many transfers at once; see :func:`relayd.questions.decisions.decide`."""
        from relayd.questions.decisions import decide  # loads what single plans do without

        return decide(self, src, dst, volume_gb, splits=splits, **fields)

    def at(self, snapshot: str) -> Wan:
        """Return the network as an earlier snapshot has it, at today's prices.

        Bounds are as wide as they were then; links that are down now, verifications and quotas'
        use since are not in it.

        Parameters
        ----------
        snapshot : str
            Its id; or a date, a time (ISO 8601, UTC unless said) or an age (``7d``): the newest
            that was made before.

        Raises
        ------
        InputError
            If there is none, or this is a copy of a service's newest.
        """
        problem = "can't be looked up: only the newest one is held here"
        remedy = "Ask a store, or a service whose answers are not made of a copy."
        raise InputError("snapshot", problem, value=snapshot, remedy=remedy)

    def transfer(
        self, plan: Recommendation | Mapping[str, Any], **options: Unpack[TransferOptions]
    ) -> WaitingTransfer:
        """Carry out a plan; see :class:`~relayd.transfers.reporting.ReportedTransfer`.

        Raises
        ------
        InputError
            If there is no store or service that would keep it; or see there.
        """
        from relayd.client.blocking import WaitingTransfer  # loads what only services need

        return WaitingTransfer(self._teller(), plan, **options)

    def _teller(self) -> Tell:
        """Return the function that reports transfers."""
        remedy = "Open a store or a service: relayd.open(PATH) or relayd.open(ADDRESS)."
        raise InputError("transfer", "is kept by stores and services, not here", remedy=remedy)

    # ---- what is known -------------------------------------------------------------------

    def links(self, src: str | None = None, dst: str | None = None) -> LinkTable:
        """Return links, all or those from or into one region."""
        source = self.resolve(src, "src").region_id if src else None
        target = self.resolve(dst, "dst").region_id if dst else None
        network = self.network
        sources: Iterable[str] = [source] if source else network.links
        return LinkTable(
            link
            for name in sources
            for link in network.links.get(name, {}).values()
            if target is None or link.dst == target
        )

    def graph(self) -> nx.DiGraph:
        """Return a graph for networkx, which :func:`relayd.open` takes back.

        Edges and nodes have figures with bounds (``aggregate_gbps``, ``aggregate_gbps_low``), what
        is known besides, and prices: ``usd_per_gb`` of first tiers, and ``vm_usd_per_h``.
        """
        return graph_of(self.network, self.catalogue)

    def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int = DEFAULT_CONNECTIONS,
        *,
        measured_only: bool = False,
        regions: Sequence[str] = (),
    ) -> Matrix:
        """Return one figure for every pair of regions.

        Parameters
        ----------
        metric : str
            ``per-flow`` (Mbit/s), ``aggregate`` (Gbit/s of one VM pair), ``rtt`` (ms), ``fee``
            (first-tier egress, USD/GB), ``relay-gain`` (best single relay over direct, one VM a
            region), ``loss`` (%) or ``age`` (s since the newest sample of the link).
        connections : int
            For ``relay-gain``: TCP connections that a VM opens.
        measured_only : bool
            Leave out regions none of whose throughput was measured, also as relays.
        regions : sequence of str
            Only these, by id, alias or city, in this order; all others still count as relays.

        Raises
        ------
        InputError
            If the metric is not one of these, or a region is unknown.
        """
        if metric not in MATRIX_METRICS:
            raise InputError("metric", f"must be one of {', '.join(MATRIX_METRICS)}", value=metric)
        named = [self.resolve(name, "regions").region_id for name in regions]
        network = self.network_of(named) if named else self.network
        if measured_only:
            network = network.with_(restricted_to=measured_regions(network))
        found = matrix_of(network, self.catalogue, metric, connections)
        return found.among(named) if named else found
