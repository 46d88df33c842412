"""A copy of what a service knows, for callers that can't afford a round trip per question."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.exploring.outcome import Outcome
from planner.model.catalogue import Catalogue
from planner.model.errors import RelaydError
from planner.model.link import Site
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, Snapshot
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import Driver
from relayd.client.connection import TIMEOUT_S
from relayd.sources.memory import MemorySource
from relayd.sources.wan import Wan

REFRESH_S = 30.0


class MirrorSource:
    """A service's newest snapshot and catalogue, copied. See :class:`.Source`.

    Parameters
    ----------
    url, token, ca, timeout_s, attempts, refresh_s
        See :class:`MirroredWan`.

    Attributes
    ----------
    problem : RelaydError | None
        Why the last look failed.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        ca: str | Path | None,
        timeout_s: float,
        attempts: int,
        refresh_s: float,
    ) -> None:
        self.problem: RelaydError | None = None
        self._driver = Driver(self, url, token=token, ca=ca, timeout_s=timeout_s, attempts=attempts)
        self._refresh_s = refresh_s
        self._looking = threading.Lock()
        try:
            catalogue, network, self._tag = self._driver.run(_first(self._driver.wan))
        except BaseException:
            self.close()
            raise
        self._take(catalogue, network)

    def __repr__(self) -> str:
        """Say what it is a copy of."""
        return f"<MirrorSource of {self._driver.url}>"

    @property
    def url(self) -> str:
        """The service's address."""
        return self._driver.url

    @property
    def copied_s_ago(self) -> float:
        """How long ago the service last said that this is its newest snapshot."""
        return time.monotonic() - self._confirmed_s

    @property
    def catalogue(self) -> Catalogue:
        """The service's catalogue."""
        return self._copy.catalogue

    @property
    def version(self) -> object:
        """The copy; asks the service in the background whether there is a newer one, if due."""
        self._look_if_due()
        return self._copy

    @property
    def snapshot(self) -> Snapshot:
        """The name of what is known."""
        return self._copy.snapshot

    def sites(self) -> Mapping[str, Site]:
        """Return the sites of the network by region."""
        return self._copy.sites()

    def network(
        self, between: tuple[str, str] | None = None, further: Sequence[str] = ()
    ) -> Network:
        """Return the network; see :meth:`relayd.sources.source.Source.network`."""
        return self._copy.network(between, further)

    def earlier(self, snapshot: str) -> Network:
        """Raise an error: earlier snapshots are not copied."""
        return self._copy.earlier(snapshot)

    def outcomes(self, src: str, dst: str) -> Sequence[Outcome]:
        """Ask the service what finished transfers had: they are not copied."""
        return self._driver.run(self._driver.wan.outcomes(src, dst))

    def link_states(self) -> Mapping[Pair, LinkState]:
        """Return which links are down or degraded."""
        return self._copy.link_states()

    def refresh_link_states(self) -> None:
        """Ask the service for what it knows now."""
        self.refresh()

    def refresh(self) -> None:
        """Take over the service's newest snapshot now; raises if the service does not answer."""
        with self._looking:
            self._look()
        if self.problem:
            raise self.problem

    def close(self) -> None:
        """Close the connections; the copy stays."""
        self._refresh_s = float("inf")
        self._driver.close()

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
            found, tag = driver.run(driver.wan.network_if_changed(self._tag))
            if found is not None:
                self._take(driver.run(driver.wan.catalogue()), found)
                self._tag = tag
        except RelaydError as error:
            self.problem = error  # the next look is due after the usual time
        else:
            self.problem = None
            self._confirmed_s = time.monotonic()
        self._looked_s = time.monotonic()

    def _take(self, catalogue: Catalogue, network: Network) -> None:
        # Widened for age here, so that no question waits for it.
        self._copy = MemorySource(catalogue, network.with_(aged_to_s=time.time()))
        self._looked_s = self._confirmed_s = time.monotonic()


class MirroredWan(Wan):
    """A service's newest snapshot, decided upon in this process.

    The snapshot and the catalogue are fetched once. While questions are asked, the service is
    asked every so often, in the background, whether there is a newer snapshot: answers never wait
    for it, and go on from the copy while the service can't be reached.

    Parameters
    ----------
    url, token, ca, timeout_s, attempts
        See :class:`relayd.client.asynchronous.AsyncWan`.
    refresh_s : float
        How often to look for a newer snapshot; infinity for only when :meth:`refresh` is called.

    Attributes
    ----------
    source : MirrorSource
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        attempts: int = 4,
        refresh_s: float = REFRESH_S,
    ) -> None:
        self.source = MirrorSource(
            url, token=token, ca=ca, timeout_s=timeout_s, attempts=attempts, refresh_s=refresh_s
        )
        super().__init__(self.source)

    def __repr__(self) -> str:
        """Say what it is a copy of."""
        return f"<MirroredWan of {self.source.url} on snapshot {self.snapshot.id}>"

    @property
    def problem(self) -> RelaydError | None:
        """Why the last look for a newer snapshot failed; None if it did not."""
        return self.source.problem

    @property
    def copied_s_ago(self) -> float:
        """How long ago the service last said that this is its newest snapshot."""
        return self.source.copied_s_ago


async def _first(remote: AsyncWan) -> tuple[Catalogue, Network, str | None]:
    catalogue = await remote.catalogue()
    network, tag = await remote.network_if_changed(None)
    assert network is not None
    return catalogue, network, tag
