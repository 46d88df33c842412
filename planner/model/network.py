"""The WAN as a graph of estimates: sites, links, and how sure each number is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.errors import DataError
from planner.model.estimate import Bound, Estimate
from planner.model.units import MBPS_PER_GBPS

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np

    from planner.model.fee_rows import FeeRows
    from planner.model.link_states import LinkState
    from planner.model.verification import Verified

MOST_RATES_KEPT = 60


@dataclass(frozen=True, slots=True)
class Link:
    """One directed pair of regions.

    Attributes
    ----------
    rtt_ms, per_flow_mbps, aggregate_gbps : Estimate
        Round-trip time; steady throughput of one flow; saturated throughput of one VM pair.
    loss_pct : float | None
        Packet loss, where measured.
    """

    src: str
    dst: str
    rtt_ms: Estimate
    per_flow_mbps: Estimate
    aggregate_gbps: Estimate
    loss_pct: float | None = None

    def rate_gbps(self, connections: int, bound: Bound = "expected") -> float:
        """Return ``min(k f, A)``: what one VM pair reaches with k connections."""
        flow_mbps: float = getattr(self.per_flow_mbps, bound)
        saturated_gbps: float = getattr(self.aggregate_gbps, bound)
        if connections == 1:
            return min(flow_mbps / MBPS_PER_GBPS, saturated_gbps)
        return min(connections * flow_mbps / MBPS_PER_GBPS, saturated_gbps)


@dataclass(frozen=True, slots=True)
class Site:
    """A region with the VM type used there and that VM's caps.

    Attributes
    ----------
    egress_gbps, ingress_gbps : Estimate
        Caps of one VM over all destinations together.
    window_mb : Estimate
        Effective TCP receive window of the VM.
    """

    region: str
    vm_type: str
    egress_gbps: Estimate
    ingress_gbps: Estimate
    window_mb: Estimate


LINK_FIGURES = ("rtt_ms", "per_flow_mbps", "aggregate_gbps")
"""The estimates of a link, in the order of its fields."""
SITE_FIGURES = ("egress_gbps", "ingress_gbps", "window_mb")
"""The same of a site."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which state of knowledge a graph is; every plan names it."""

    id: str
    as_of: str
    source: str


UNSAVED = Snapshot("unsaved", "", "given")


@dataclass(frozen=True)
class Network:
    """An immutable WAN graph.

    Attributes
    ----------
    sites : dict
        Region id to :class:`Site`, in a fixed order that also breaks ties between equals.
    links : dict
        Source to destination to :class:`Link`. Pairs may be missing.
    snapshot : Snapshot
    states : mapping
        Source and destination to the state of a link that is not as usual now; its figures
        in ``links`` are those of now (:func:`planner.model.link_states.overlaid`).
    verified : mapping
        Source and destination to the last verification of a plan between them, which the
        bounds of its relays' links allow for (:func:`planner.model.verification.calibrated`).
    """

    sites: dict[str, Site]
    links: dict[str, dict[str, Link]]
    snapshot: Snapshot = UNSAVED
    states: Mapping[tuple[str, str], LinkState] = field(default_factory=dict)
    verified: Mapping[tuple[str, str], Verified] = field(default_factory=dict)
    _rates: dict[tuple[int, Bound], Rates] = field(default_factory=dict, compare=False, repr=False)
    _caps: dict[Bound, tuple[list[float], list[float]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __repr__(self) -> str:
        """Say how large the graph is and where it is from."""
        count = sum(len(row) for row in self.links.values())
        return f"<Network {self.snapshot.id}: {len(self.sites)} sites, {count} links>"

    def link(self, src: str, dst: str) -> Link:
        """Return one link.

        Raises
        ------
        DataError
            If nothing is known of it.
        """
        try:
            return self.links[src][dst]
        except KeyError:
            raise DataError(
                f"Nothing is known of {src} -> {dst}: neither a sample nor a baseline. Measure "
                "it, import a measurement, or give both regions coordinates in the catalogue."
            ) from None

    def __iter__(self) -> Iterator[Link]:
        """Iterate over all links, by source and destination."""
        for row in self.links.values():
            yield from row.values()

    @cached_property
    def fee_rows(self) -> dict[int, FeeRows]:
        """Prices laid out over these sites, by the catalogue's identity.

        Filled by :func:`planner.model.fee_rows.fee_rows`.
        """
        return {}

    @cached_property
    def forwarding_gbps(self) -> list[float]:
        """What one VM of every site passes on at most: the lower of its expected caps."""
        return [min(caps) for caps in zip(*self.caps(), strict=True)]

    @cached_property
    def index(self) -> dict[str, int]:
        """Region id to its position in the order of sites."""
        return {region: position for position, region in enumerate(self.sites)}

    def rates(self, connections: int, bound: Bound = "expected") -> Rates:
        """Return what one VM pair reaches on every link with this many connections."""
        key = (connections, bound)
        if key not in self._rates:
            if len(self._rates) >= MOST_RATES_KEPT:  # a service may be asked for any number
                self._rates.clear()
            self._rates[key] = Rates(self, connections, bound)
        return self._rates[key]

    def caps(self, bound: Bound = "expected") -> tuple[list[float], list[float]]:
        """Return every site's egress and ingress cap of one VM, in the network's order."""
        if bound not in self._caps:
            self._caps[bound] = (
                [getattr(site.egress_gbps, bound) for site in self.sites.values()],
                [getattr(site.ingress_gbps, bound) for site in self.sites.values()],
            )
        return self._caps[bound]

    def aged(self, now_s: float) -> Network:
        """Return the network with all bounds widened for age at a given time."""
        return Network(
            self.sites,
            {
                src: {
                    dst: Link(
                        src,
                        dst,
                        link.rtt_ms.aged(now_s),
                        link.per_flow_mbps.aged(now_s),
                        link.aggregate_gbps.aged(now_s),
                        link.loss_pct,
                    )
                    for dst, link in row.items()
                }
                for src, row in self.links.items()
            },
            self.snapshot,
            self.states,
            self.verified,
        )

    def restricted_to(self, regions: Collection[str]) -> Network:
        """Return the part of the network among some regions, in the same order."""
        return Network(
            {name: site for name, site in self.sites.items() if name in regions},
            {
                src: {dst: link for dst, link in row.items() if dst in regions}
                for src, row in self.links.items()
                if src in regions
            },
            self.snapshot,
            self.states,
            self.verified,
        )

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
        snapshot: Snapshot = UNSAVED,
    ) -> Network:
        """Build a network from one's own figures, taken as exact.

        Parameters
        ----------
        regions : sequence of str, length n
            Region ids or any other unique names.
        aggregate_gbps : array, shape (n, n)
            Saturated throughput of one VM pair, row to column. NaN or 0: no such link. The
            diagonal is ignored.
        rtt_ms : array of shape (n, n), or one value for all
        per_flow_mbps : array, shape (n, n), optional
            Throughput of one flow; without it, a single flow is taken to reach the aggregate.
        egress_gbps, ingress_gbps : sequences of length n, optional
            Caps of one VM; without them, the largest rate of the row or column.

        Raises
        ------
        InputError
            If shapes disagree, names repeat or a figure is negative or infinite.
        """
        from planner.model.graphs import network_from_matrices

        return network_from_matrices(
            regions, aggregate_gbps, rtt_ms, per_flow_mbps, egress_gbps, ingress_gbps, snapshot
        )

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> Network:
        """Build a network from a directed graph.

        Edges carry ``aggregate_gbps`` and optionally ``rtt_ms`` and ``per_flow_mbps``; nodes
        optionally ``egress_gbps`` and ``ingress_gbps``. Figures are taken as exact.

        Raises
        ------
        InputError
            If an edge has no rate, or a figure is negative or infinite.
        """
        from planner.model.graphs import network_from_networkx

        return network_from_networkx(graph)

    def to_networkx(self) -> nx.DiGraph:
        """Return a directed graph; each estimate becomes ``name``, ``name_low``, ``name_high``."""
        from planner.model.graphs import network_to_networkx

        return network_to_networkx(self)


class Rates:
    """Rates of one VM pair with a fixed number of connections, as rows and columns.

    A plan needs one row (out of its source) and one column (into its destination): both are
    made on first use and kept, so that many plans on one network share them.
    """

    def __init__(self, network: Network, connections: int, bound: Bound) -> None:
        self._network = network
        self._connections = connections
        self._bound: Bound = bound
        self._rows: dict[str, list[float]] = {}
        self._columns: dict[str, list[float]] = {}

    def out_of(self, src: str) -> list[float]:
        """Return Gbit/s towards every site in the network's order; 0 where there is no link."""
        if src not in self._rows:
            links = self._network.links.get(src, {})
            self._rows[src] = self._rates(links.get(dst) for dst in self._network.sites)
        return self._rows[src]

    def into(self, dst: str) -> list[float]:
        """Return Gbit/s from every site in the network's order; 0 where there is no link."""
        if dst not in self._columns:
            links = self._network.links
            self._columns[dst] = self._rates(
                links.get(src, _NO_LINKS).get(dst) for src in self._network.sites
            )
        return self._columns[dst]

    def _rates(self, links: Iterable[Link | None]) -> list[float]:
        connections, bound = self._connections, self._bound
        return [link.rate_gbps(connections, bound) if link else 0.0 for link in links]


_NO_LINKS: Mapping[str, Link] = {}
