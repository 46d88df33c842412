"""A copy of what a service knows, for callers that can't afford a round trip per question."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from math import inf

from planner.model.errors import RelaydError
from planner.model.link_states import LinkState, Pair
from planner.model.network import Snapshot
from relayd.client.blocking import RemoteWan
from relayd.questions.holds import Holds
from relayd.sources.wan import NetworkCache, Wan
from relayd.transfers.reporting import Tell

REFRESH_S = 30.0


class MirroredWan(Wan):
    """A service's newest snapshot, decided upon in this process.

    The snapshot and the catalogue are fetched once. While questions are asked, the service is
    asked every so often, in the background, whether there is a newer snapshot: answers never wait
    for it, and go on from the copy while the service can't be reached.

    Parameters
    ----------
    service : RemoteWan
    refresh_s : float
        How often to look for a newer snapshot; infinity for only when :meth:`refresh` is called.

    Attributes
    ----------
    problem : RelaydError | None
        Why the last look for a newer snapshot failed; None if it did not.
    """

    def __init__(self, service: RemoteWan, refresh_s: float = REFRESH_S) -> None:
        self.problem: RelaydError | None = None
        self._service, self._refresh_s = service, refresh_s
        self._looking = threading.Lock()
        self._tag: str | None = None
        try:
            self._take_newest()
        except BaseException:
            self.close()
            raise
        self._looked_s = self._confirmed_s = time.monotonic()

    def __repr__(self) -> str:
        """Say what it is a copy of."""
        return f"<MirroredWan of {self._service.url} on snapshot {self.snapshot.id}>"

    @property
    def copied_s_ago(self) -> float:
        """Seconds since the service last confirmed that this is its newest snapshot."""
        return time.monotonic() - self._confirmed_s

    def _teller(self) -> Tell:
        return self._service.tell

    def refresh_link_states(self) -> Mapping[Pair, LinkState]:
        """Ask the service for its newest data; return the links that are down or degraded."""
        self.refresh()
        return self.link_states()

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
        self._service.close()

    def _current_cache(self) -> NetworkCache:
        due = time.monotonic() - self._looked_s > self._refresh_s
        if due and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look_once, name="relayd-mirror", daemon=True).start()
        return super()._current_cache()

    def _look_once(self) -> None:
        """Look for a newer snapshot in a thread that was given the lock."""
        try:
            self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        try:
            self._take_newest()
        except RelaydError as error:
            self.problem = error  # the next look is due after the usual time
        else:
            self.problem = None
            self._confirmed_s = time.monotonic()
        finally:
            self._looked_s = time.monotonic()

    def _take_newest(self) -> None:
        """Copy the newest snapshot, unless it is the one that is held, and what transfers hold."""
        found, tag = self._service.network_if_changed(self._tag)
        if found is not None:
            # Widened for age here, so that no question waits for it.
            network = found.with_(aged_to_s=time.time())
            self.catalogue, self._network = self._service.catalogue, network
            self._tag = tag
        held = tuple(one for use in self._service.pools() for one in use.by)
        self._holds = Holds(held, (hash(held),))
