"""A copy of what a service knows, for callers that can't afford a round trip per question."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping
from math import inf
from pathlib import Path

from planner.exploring.outcome import Outcome
from planner.model.errors import RelaydError
from planner.model.link_states import LinkState, Pair
from planner.model.network import Snapshot
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import close, wait_for
from relayd.client.connection import TIMEOUT_S
from relayd.sources.memory import MemorySource
from relayd.sources.wan import NetworkCache, Wan

REFRESH_S = 30.0


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
    problem : RelaydError | None
        Why the last look for a newer snapshot failed; None if it did not.
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
        self.problem: RelaydError | None = None
        self._remote = AsyncWan(url, token=token, ca=ca, timeout_s=timeout_s, attempts=attempts)
        weakref.finalize(self, close, self._remote)
        self._refresh_s = refresh_s
        self._looking = threading.Lock()
        self._tag: str | None = None
        try:
            source = self._newer()
        except BaseException:
            self.close()
            raise
        assert source is not None
        super().__init__(source)
        self._looked_s = self._confirmed_s = time.monotonic()

    def __repr__(self) -> str:
        """Say what it is a copy of."""
        return f"<MirroredWan of {self._remote.url} on snapshot {self.snapshot.id}>"

    @property
    def copied_s_ago(self) -> float:
        """Seconds since the service last confirmed that this is its newest snapshot."""
        return time.monotonic() - self._confirmed_s

    def outcomes(self, src: str, dst: str) -> tuple[Outcome, ...]:
        """Ask the service for outcomes of finished transfers: they are not copied."""
        source, target, _ = self.resolve_pair(src, dst)
        return tuple(wait_for(self._remote.outcomes(source, target)))

    def refresh_link_states(self) -> Mapping[Pair, LinkState]:
        """Ask the service for its newest data; return the links that are down or degraded."""
        self.refresh()
        return self._source.link_states()

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
        self._refresh_s = inf
        close(self._remote)

    def _current_cache(self) -> NetworkCache:
        due = time.monotonic() - self._looked_s > self._refresh_s
        if due and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look_aside, name="relayd-mirror", daemon=True).start()
        return super()._current_cache()

    def _look_aside(self) -> None:
        try:
            self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        try:
            self._source = self._newer() or self._source
        except RelaydError as error:
            self.problem = error  # the next look is due after the usual time
        else:
            self.problem = None
            self._confirmed_s = time.monotonic()
        self._looked_s = time.monotonic()

    def _newer(self) -> MemorySource | None:
        """Fetch the newest snapshot; None if it is the one that is copied."""
        found, tag = wait_for(self._remote.network_if_changed(self._tag))
        if found is None:
            return None
        # Widened for age here, so that no question waits for it.
        network, catalogue = found.with_(aged_to_s=time.time()), wait_for(self._remote.catalogue())
        self._tag = tag
        return MemorySource(catalogue, network)
