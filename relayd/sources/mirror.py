"""A copy of what a service knows, for callers that can't afford a round trip per question."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.model.errors import RelaydError
from planner.model.network import Snapshot
from relayd.client.asynchronous import AsyncWan, Graph
from relayd.client.blocking import Driver
from relayd.client.connection import TIMEOUT_S
from relayd.sources.memory import GivenKnowledge
from relayd.sources.wan import Wan

if TYPE_CHECKING:
    from planner.model.catalogue import Catalogue
    from planner.model.network import Network

REFRESH_S = 30.0


class MirroredWan(Wan):
    """A service's newest snapshot, decided upon in this process.

    The snapshot and the catalogue are fetched once. While questions are asked, the service is
    asked every so often, in the background, whether there is a newer snapshot: answers never wait
    for it, and go on from the copy while the service can't be reached.

    Parameters
    ----------
    url, token, timeout_s, attempts
        See :class:`relayd.client.asynchronous.AsyncWan`.
    refresh_s : float
        How often to look for a newer snapshot; infinity for only when :meth:`refresh` is called.

    Attributes
    ----------
    problem : RelaydError | None
        Why the last look failed.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        attempts: int = 4,
        refresh_s: float = REFRESH_S,
    ) -> None:
        self.problem: RelaydError | None = None
        self._driver = Driver(self, url, token, timeout_s, attempts)
        self._refresh_s = refresh_s
        self._looking = threading.Lock()
        try:
            catalogue, graph, self._tag = self._driver.run(_first(self._driver.wan))
        except BaseException:
            self.close()
            raise
        super().__init__(catalogue, None)
        self._take(catalogue, graph)

    def __repr__(self) -> str:
        """Say what it is a copy of."""
        return f"<MirroredWan of {self._driver.url} on snapshot {self.snapshot.id}>"

    @property
    def copied_s_ago(self) -> float:
        """How long ago the service last said that this is its newest snapshot."""
        return time.monotonic() - self._confirmed_s

    def refresh(self) -> Snapshot:
        """Take over the service's newest snapshot now.

        Raises
        ------
        RelaydError
            If the service does not answer.
        """
        with self._looking:
            self._look()
        if self.problem:
            raise self.problem
        return self.snapshot

    def close(self) -> None:
        """Close the connections; the copy stays."""
        self._refresh_s = float("inf")
        self._driver.close()

    @property
    def network(self) -> Network:
        """The whole graph of estimates, bounds widened for age."""
        self._look_if_due()
        return super().network

    def network_between(self, src: str, dst: str, vm_types: Mapping[str, str] = {}) -> Network:
        """Return the graph for one transfer; see :meth:`relayd.sources.wan.Wan.network_between`."""
        self._look_if_due()
        return super().network_between(src, dst, vm_types)

    def _look_if_due(self) -> None:
        due = time.monotonic() - self._looked_s > self._refresh_s
        if due and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look_aside, name="relayd-mirror", daemon=True).start()

    def _look_aside(self) -> None:
        try:
            self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        try:
            driver = self._driver
            found, tag = driver.run(driver.wan.graph_if_changed(self._tag))
            if found is not None:
                self._take(driver.run(driver.wan.catalogue()), found)
                self._tag = tag
        except RelaydError as error:
            self.problem = error  # the next look is due after the usual time
        else:
            self.problem = None
            self._confirmed_s = time.monotonic()
        self._looked_s = time.monotonic()

    def _take(self, catalogue: Catalogue, graph: Graph) -> None:
        # In this order: who reads meanwhile gets the old graph or the new one, whole.
        self.catalogue = catalogue
        self._knowledge = GivenKnowledge(catalogue, *graph)
        self._variants = {}
        self._parts = {}
        self._now = {}
        self._whole = graph.network.aged(time.time())
        self._looked_s = self._confirmed_s = time.monotonic()


async def _first(remote: AsyncWan) -> tuple[Catalogue, Graph, str | None]:
    catalogue = await remote.catalogue()
    graph, tag = await remote.graph_if_changed(None)
    assert graph is not None
    return catalogue, graph, tag
