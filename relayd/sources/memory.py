"""A network in memory as a source: nothing is read, so any thread may use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from time import time as clock

from planner.exploring.outcome import Outcome
from planner.model.baseline.modelled_links import with_regions
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.link import Site
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Network, Snapshot


class MemorySource:
    """Knows one network, for ever. See :class:`relayd.sources.source.Source`.

    Parameters
    ----------
    catalogue : Catalogue
    network : Network
        A whole one. The state of each link is forgotten at the end of its validity: nobody may be
        there any more to say that the link is back.
    """

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue = catalogue
        self._network = network
        self._states = network.link_states
        self._next_end_s = _next_end_s(network.link_states)

    @property
    def version(self) -> object:
        """The source itself: it stays as it is."""
        return self

    @property
    def snapshot(self) -> Snapshot:
        """The name of what is known."""
        return self._network.snapshot

    def sites(self) -> Mapping[str, Site]:
        """Return the sites of the network by region."""
        return self._network.sites

    def network(
        self, between: tuple[str, str] | None = None, further: Sequence[str] = ()
    ) -> Network:
        """Return the network; see :meth:`relayd.sources.source.Source.network`."""
        network = with_regions(self._network, self.catalogue, (*(between or ()), *further))
        return network.with_(link_states=self.link_states())

    def earlier(self, snapshot: str) -> Network:
        """Raise an error: one network is all that is known."""
        raise InputError(
            "snapshot",
            "can't be looked up: only the newest one is held here",
            value=snapshot,
            remedy="Ask a store, or a service whose answers are not made of a copy.",
        )

    def outcomes(self, src: str, dst: str) -> Sequence[Outcome]:  # noqa: ARG002
        """Return nothing: no transfer was reported here."""
        return ()

    def link_states(self) -> Mapping[Pair, LinkState]:
        """Return which links are down or degraded."""
        if (now_s := clock()) > self._next_end_s:
            self._states = still_believed(self._states, now_s)
            self._next_end_s = _next_end_s(self._states)
        return self._states

    def refresh_link_states(self) -> None:
        """Do nothing: there is nothing newer."""

    def refresh(self) -> None:
        """Do nothing: there is nothing newer."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _next_end_s(states: Mapping[Pair, LinkState]) -> float:
    ends = (state.valid_until_s for state in states.values())
    return min((end_s for end_s in ends if end_s is not None), default=inf)
