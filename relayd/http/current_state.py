"""The current state: network, catalogue, and answers made from them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property

from planner.model.catalogue import Catalogue
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, Snapshot
from probes.importers.limits import PhysicalGate
from relayd.questions.caveats import DisputedFigure, disputed_figures
from relayd.sources.addresses import over_addresses
from relayd.sources.memory import MemorySource, Source
from relayd.sources.wan import Wan

# Memory of a kept answer in addition to its key and value: two objects, a node of the table.
_OVERHEAD_BYTES = 250


class AnswerCache:
    """Bytes by key, at most so many in all; those that were not asked for longest go first.

    One cache belongs to one state of knowledge and goes with it, so nothing in it can be stale.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> bytes | None:
        """Return the value under a key."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def keep(self, key: str, value: bytes) -> None:
        """Keep a value; under two keys it counts twice, which is on the safe side."""
        cost = len(key) + _OVERHEAD_BYTES + len(value)
        if cost > self.most_bytes or key in self._entries:
            return
        self._entries[key] = value
        self.used_bytes += cost
        while self.used_bytes > self.most_bytes:
            old, gone = self._entries.popitem(last=False)
            self.used_bytes -= len(old) + _OVERHEAD_BYTES + len(gone)


@dataclass(frozen=True)
class Current:
    """A network and catalogue, with everything that was made from them."""

    wan: Wan
    """In memory: it reads nothing, so any thread may use it. Its network is widened for age."""
    version: str
    """Of this very object; changes also when a snapshot is read again."""
    network: Network
    """As it was read, bounds not widened for age."""
    answers: AnswerCache
    read_at_s: float
    """Unix time."""

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue, prices included."""
        return self.wan.catalogue

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

    def answer(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return an answer that is made when first asked for."""
        if (body := self.answers.get(key)) is None:
            body = make()
            self.answers.keep(key, body)
        return body

    def with_states(self, states: Mapping[Pair, LinkState]) -> Current:
        """Return the same graph with other links that are down or degraded."""
        network = self.network.with_(link_states=states)
        other = _current(self.catalogue, network, self.answers.most_bytes)
        return replace(other, read_at_s=self.read_at_s)


def read_current(open_source: Callable[[], Source], cache_bytes: int) -> Current:
    """Read the newest snapshot; takes some 100 ms, so not on the event loop."""
    with closing(open_source()) as source:
        catalogue = source.catalogue
        network = over_addresses(source.network(), catalogue, "auto")
    return _current(catalogue, network, cache_bytes)


def _current(catalogue: Catalogue, network: Network, cache_bytes: int) -> Current:
    wan, now_s = Wan(MemorySource(catalogue, network)), time.time()
    _ = wan.network  # widened for age here, once
    return Current(
        wan, f"{network.snapshot.id}@{now_s:.6f}", network, AnswerCache(cache_bytes), now_s
    )
