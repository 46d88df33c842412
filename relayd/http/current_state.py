"""The current state: network, catalogue, and caches of answers made from them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from planner.model.catalogue import Catalogue
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, Snapshot
from probes.importers.physics import PhysicalGate
from relayd.catalogue.loading import load_catalogue
from relayd.questions.caveats import DisputedFigure, disputed_figures
from relayd.sources.addresses import over_addresses
from relayd.sources.memory import MemorySource, Source
from relayd.sources.stored import StoreSource
from relayd.sources.wan import Wan
from relayd.store import Location

# Ages count in whole days, so a graph that was read an hour ago differs once a day at most.
RENEW_AFTER_S = 3600.0

# Memory of a kept answer in addition to its key and value: two objects, a node of the table.
_OVERHEAD_BYTES = 250


class PlanCache:
    """Bytes by key; those that were not asked for longest go first.

    One cache belongs to one state of knowledge and goes with it, so nothing in it can be stale.

    Parameters
    ----------
    most_bytes : int
        Of keys, values and overhead together; 0 keeps nothing.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> bytes | None:
        """Return the value under a key."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def keep(self, key: str, value: bytes) -> None:
        """Keep a value; under two keys it counts twice, which is on the safe side."""
        cost = len(key) + _OVERHEAD_BYTES + len(value)
        if cost > self._most_bytes or key in self._entries:
            return
        self._entries[key] = value
        self.used_bytes += cost
        while self.used_bytes > self._most_bytes:
            old, gone = self._entries.popitem(last=False)
            self.used_bytes -= len(old) + _OVERHEAD_BYTES + len(gone)


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
    def disputes(self) -> list[DisputedFigure]:
        """The disputed figures of all links and caps."""
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
    with closing(open_source()) as source:
        catalogue = source.catalogue
        network = over_addresses(source.network(), catalogue, "auto")
    return _current(catalogue, network, cache_bytes, now_s())


def with_states(
    current: Current, states: Mapping[Pair, LinkState], cache_bytes: int, at_s: float
) -> Current:
    """Return the same graph with other links that are down or degraded."""
    network = current.network.with_(link_states=states)
    found = _current(current.catalogue, network, cache_bytes, at_s)
    return replace(found, read_at_s=current.read_at_s)


def _current(catalogue: Catalogue, network: Network, cache_bytes: int, at_s: float) -> Current:
    wan = Wan(MemorySource(catalogue, network))
    _ = wan.network  # widened for age here, once
    version = f"{network.snapshot.id}@{at_s:.6f}"
    return Current(wan, version, catalogue, network, PlanCache(cache_bytes), at_s)


def open_source(db: Location, catalogues: Sequence[Path], fleet: Path | None) -> Source:
    """Open a store afresh, with a fleet's VMs at their sites; see StoreSource."""
    return StoreSource(load_catalogue(catalogues), db, fleet)
