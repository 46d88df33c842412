"""The current state: network, catalogue, and caches of answers made from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from aiohttp import hdrs

from planner.model.catalogue import Catalogue
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, Snapshot
from probes.importers.physics import PhysicalGate
from relayd.catalogue.loading import load_catalogue
from relayd.http.middleware.headers import SECURITY_HEADERS
from relayd.http.responses.json_responses import JSON, SNAPSHOT_AS_OF, SNAPSHOT_ID
from relayd.http.responses.prepared_response import shared_head
from relayd.http.server.plan_cache import PlanCache
from relayd.questions.disputes import DisputedFigure, disputed_figures
from relayd.sources.addresses import over_addresses
from relayd.sources.memory import MemorySource
from relayd.sources.shared_columns import SharedColumns
from relayd.sources.source import Source
from relayd.sources.stored import StoreSource
from relayd.sources.wan import Wan
from relayd.store import Location

# Ages count in whole days, so a graph that was read an hour ago differs once a day at most.
RENEW_AFTER_S = 3600.0


@dataclass(frozen=True)
class Current:
    """A network and catalogue, with everything that was made from them.

    Attributes
    ----------
    wan : Wan
        In memory: it reads nothing, so any thread may use it.
    version : str
        Of this very object; changes also when a snapshot is read again.
    network : Network
        As it was read, bounds not widened for age.
    plans : PlanCache
    pages : dict
        Larger answers as they were sent, by path and query.
    read_at_s : float
        Unix time.
    """

    wan: Wan
    version: str
    catalogue: Catalogue
    network: Network
    plans: PlanCache
    read_at_s: float
    pages: dict[str, bytes] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of the network."""
        return self.network.snapshot

    @cached_property
    def head(self) -> bytes:
        """Headers of a plan: written once, because plans are asked for most."""
        return shared_head(
            {
                **SECURITY_HEADERS,
                SNAPSHOT_ID: self.snapshot.id,
                SNAPSHOT_AS_OF: self.snapshot.as_of,
                hdrs.CONTENT_TYPE: JSON,
            }
        )

    @cached_property
    def disputes(self) -> list[DisputedFigure]:
        """What is in dispute of all links and caps."""
        network = self.network
        return disputed_figures(network, [(link.src, link.dst) for link in network])

    @cached_property
    def gate(self) -> PhysicalGate:
        """Tells which samples can't be measurements."""
        return PhysicalGate(self.catalogue)

    def page(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return a larger answer, made when first asked for."""
        if key not in self.pages:
            self.pages[key] = make()
        return self.pages[key]


def read_current(
    open_source: Callable[[], Source], cache_bytes: int, now_s: Callable[[], float] = time.time
) -> Current:
    """Read the newest snapshot; takes some 100 ms, so not on the event loop."""
    source = open_source()
    try:
        catalogue = source.catalogue
        network = over_addresses(source.network(), catalogue, "auto")
    finally:
        source.close()
    at_s = now_s()
    return Current(
        _in_memory(catalogue, network),
        f"{network.snapshot.id}@{at_s:.6f}",
        catalogue,
        network,
        PlanCache(cache_bytes),
        at_s,
    )


def with_states(
    current: Current, states: Mapping[Pair, LinkState], cache_bytes: int, at_s: float
) -> Current:
    """Return the same graph with other links that are down or degraded."""
    network = current.network.with_(link_states=states)
    return replace(
        current,
        wan=_in_memory(current.catalogue, network),
        network=network,
        version=f"{current.snapshot.id}@{at_s:.6f}",
        plans=PlanCache(cache_bytes),
        pages={},
    )


def _in_memory(catalogue: Catalogue, network: Network) -> Wan:
    wan = Wan(MemorySource(catalogue, network))
    _ = wan.network  # widened for age here, once
    return wan


def opener(
    db: Location,
    catalogues: Sequence[Path],
    fleet: Path | None = None,
    shared: SharedColumns | None = None,
) -> Callable[[], Source]:
    """Return what opens a store afresh, with a fleet's VMs at their sites; see StoreSource."""
    return partial(_open_source, db, catalogues, fleet, shared)  # which workers can be given


def _open_source(
    db: Location, catalogues: Sequence[Path], fleet: Path | None, shared: SharedColumns | None
) -> Source:
    return StoreSource(load_catalogue(catalogues), db, fleet, shared)
