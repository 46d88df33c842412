"""The library's face: one object that plans, and shows what it knows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.fields.specified import Specified
from planner.model.aliases import Resolution, resolve
from planner.model.answer import Answer
from planner.model.baseline import with_vm_types
from planner.model.catalogue import Catalogue, Region
from planner.model.errors import InputError
from planner.model.network import Link, Network, Site, Snapshot
from relayd.questions.methods import Asking
from relayd.questions.registry import question_of
from relayd.sources.link_table import LinkTable
from relayd.sources.matrices import MATRIX_METRICS, Matrix, MatrixMetric, matrix_of
from relayd.sources.stored import Knowledge
from relayd.store.location import Place

if TYPE_CHECKING:
    from planner.model.link_states import LinkState

MOST_NETWORKS_KEPT = 64
MOST_VARIANTS_KEPT = 8


class Wan(Asking):
    """The wide-area network as far as it is known, and what to do on it.

    Make one with :func:`relayd.open`. It reads the newest snapshot when first asked and keeps
    it; :meth:`refresh` looks for a newer one.
    """

    def __init__(self, catalogue: Catalogue, db: Place | None) -> None:
        self.catalogue = catalogue
        self._knowledge = Knowledge(catalogue, db)
        self._whole: Network | None = None
        self._parts: dict[tuple[str, str], Network] = {}
        self._variants: dict[tuple[object, ...], Network] = {}
        self._now: dict[int, tuple[Network, Mapping[tuple[str, str], LinkState], Network]] = {}

    def __repr__(self) -> str:
        """Say what it rests on."""
        return f"<Wan on snapshot {self._knowledge.snapshot.id}>"

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on."""
        return self._knowledge.snapshot

    @property
    def network(self) -> Network:
        """The whole graph of estimates, bounds widened for age, and links as they are now."""
        return self._as_now(self._long_run)

    @property
    def _long_run(self) -> Network:
        if self._whole is None:
            self._whole = self._knowledge.network().aged(time.time())
        return self._whole

    def refresh(self) -> Snapshot:
        """Forget what was read, so that the next answer rests on the newest snapshot."""
        self._knowledge.forget()
        self._whole = None
        self._parts.clear()
        self._variants.clear()
        self._now.clear()
        return self.snapshot

    def refresh_link_states(self) -> Mapping[tuple[str, str], LinkState]:
        """Read again which links are down or degraded; the snapshot stays. Returns them."""
        self._now.clear()
        return self._knowledge.link_states(anew=True)

    # ---- graphs that questions rest on -----------------------------------------------------

    def network_between(self, src: str, dst: str, vm_types: Mapping[str, str] = {}) -> Network:
        """Return at least the links that a plan between two regions needs.

        Parameters
        ----------
        src, dst : str
            Region ids.
        vm_types : mapping
            Region or provider to VM type, both as ids of the catalogue.
        """
        network = self._whole
        if network is None:
            if (src, dst) not in self._parts and len(self._parts) >= 2:
                network = self._long_run  # many pairs: reading all once is cheaper
            elif (src, dst) not in self._parts:
                part = self._knowledge.network(between=(src, dst))
                self._parts[src, dst] = part.aged(time.time())
        return self._with_vm_types(network or self._parts[src, dst], vm_types)

    def network_of(self, regions: Sequence[str], vm_types: Mapping[str, str] = {}) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""
        network = self._long_run
        if further := [region for region in regions if region not in network.sites]:
            network = self._knowledge.network(further=further).aged(time.time())
        return self._with_vm_types(network, vm_types)

    def _with_vm_types(self, network: Network, vm_types: Mapping[str, str]) -> Network:
        if not vm_types:
            return self._as_now(network)
        key = (id(network), tuple(sorted(vm_types.items())))
        if key not in self._variants:
            if len(self._variants) >= MOST_VARIANTS_KEPT:
                self._variants.clear()
            self._variants[key] = with_vm_types(network, self.catalogue, dict(vm_types))
        return self._as_now(self._variants[key])

    def _as_now(self, network: Network) -> Network:
        """Lay links that are down or degraded over a network."""
        states = self._knowledge.link_states()
        if not states:
            return network
        kept = self._now.get(id(network))
        if kept is None or kept[1] is not states:
            from planner.model.link_states import overlaid

            if len(self._now) > MOST_NETWORKS_KEPT:
                self._now.clear()
            # Kept with what it was made of, so that the identity stays taken.
            kept = self._now[id(network)] = (network, states, overlaid(network, states))
        return kept[2]

    # ---- names ---------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        """Return the catalogue's baseline regions and all measured ones."""
        return [self.catalogue.region(name) for name in self._knowledge.regions()]

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""
        return self._knowledge.regions()

    def sites(self) -> dict[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return self._knowledge.sites()

    def resolve(
        self, name: str, field: str = "region", prefer_provider: str | None = None
    ) -> Resolution:
        """Return the region that a name or alias stands for, with a note if it was a choice."""
        return resolve(
            name,
            self.catalogue,
            field=field,
            known=self._knowledge.regions(),
            prefer_provider=prefer_provider,
        )

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[str, ...]]:
        """Return both ends of a transfer as region ids, with notes on what was chosen.

        An end that fits several providers goes with the other end's, where traffic is cheaper.
        """
        try:
            source = self.resolve(src, "src")
        except InputError:
            # A city of several providers, which the destination may settle.
            try:
                destination = self.resolve(dst, "dst")
            except InputError:
                destination = None
            if destination is None:
                raise
            source = self.resolve(src, "src", destination.region_id.partition(":")[0])
        target = self.resolve(dst, "dst", source.region_id.partition(":")[0])
        notes = tuple(r.note for r in (source, target) if r.note)
        return source.region_id, target.region_id, notes

    # ---- decisions -----------------------------------------------------------------------

    def ask(self, request: Specified) -> Answer:
        """Answer a request; ``plan(...)`` and the others make one and ask it.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        return question_of(request).solve(self, request)

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

    def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int = DEFAULT_CONNECTIONS,
        *,
        measured_only: bool = False,
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
        """
        if metric not in MATRIX_METRICS:
            raise InputError("metric", f"must be one of {', '.join(MATRIX_METRICS)}", value=metric)
        network = self.network
        if measured_only:
            network = network.restricted_to(
                {end for link in network if _is_measured(link) for end in (link.src, link.dst)}
            )
        return matrix_of(network, self.catalogue, metric, connections)


def _is_measured(link: Link) -> bool:
    return "measured" in {link.aggregate_gbps.source, link.per_flow_mbps.source}
