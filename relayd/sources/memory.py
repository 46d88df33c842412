"""The interface of sources for a :class:`~relayd.sources.wan.Wan`, and one in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from time import time as clock

from planner.exploring.outcome import Outcome
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Network


class Source(ABC):
    """A state of knowledge: a store's, or a network in memory.

    Attributes
    ----------
    catalogue : Catalogue
        That the network was made with.
    """

    catalogue: Catalogue

    @abstractmethod
    def network(self) -> Network:
        """Return the network with verifications: the same object until there is a newer one."""

    @abstractmethod
    def link_states(self) -> Mapping[Pair, LinkState]:
        """Return the links that are down or degraded; the same object while they are the same."""

    def earlier(self, snapshot: str) -> Network:
        """Return the network of an earlier snapshot, as it was believed when it was made.

        Parameters
        ----------
        snapshot : str
            Its id, or a time or an age as text: the newest that was made before.

        Raises
        ------
        InputError
            If there is none.
        """
        problem = "can't be looked up: only the newest one is held here"
        remedy = "Ask a store, or a service whose answers are not made of a copy."
        raise InputError("snapshot", problem, value=snapshot, remedy=remedy)

    def outcomes(self, src: str, dst: str) -> Sequence[Outcome]:  # noqa: ARG002
        """Return the outcomes of finished transfers between two regions, by ids."""
        return ()

    def refresh_link_states(self) -> None:  # noqa: B027 - nothing is newer
        """Read again which links are down or degraded."""

    def close(self) -> None:  # noqa: B027 - nothing is open
        """Close open connections, so that the next question reads the newest data."""


class MemorySource(Source):
    """Knows one network, for ever; nothing is read, so any thread may use it.

    Parameters
    ----------
    catalogue : Catalogue
    network : Network
        A whole one. The state of each link is forgotten at the end of its validity: who said so
        may not be there any more to say that the link is back.
    """

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue = catalogue
        self._network = network
        self._states = network.link_states
        self._next_end_s = _next_end_s(network.link_states)

    def network(self) -> Network:
        return self._network

    def link_states(self) -> Mapping[Pair, LinkState]:
        if (now_s := clock()) > self._next_end_s:
            self._states = still_believed(self._states, now_s)
            self._next_end_s = _next_end_s(self._states)
        return self._states


def _next_end_s(states: Mapping[Pair, LinkState]) -> float:
    ends = (state.valid_until_s for state in states.values())
    return min((end_s for end_s in ends if end_s is not None), default=inf)
