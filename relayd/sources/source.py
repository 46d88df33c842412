"""What a :class:`~relayd.sources.wan.Wan` asks of whatever holds what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planner.exploring.outcome import Outcome
from planner.model.catalogue import Catalogue
from planner.model.link import Site
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, Snapshot


class Source(Protocol):
    """A state of knowledge: a store's, a network in memory, a copy of a service's."""

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that the network was made with."""

    @property
    def version(self) -> object:
        """An object that is another one once the network or the catalogue is."""

    @property
    def snapshot(self) -> Snapshot:
        """The name of what is known."""

    def sites(self) -> Mapping[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""

    def network(
        self, between: tuple[str, str] | None = None, further: Sequence[str] = ()
    ) -> Network:
        """Return the network with link states and verifications.

        Parameters
        ----------
        between : (src, dst), optional
            At least the links out of src and into dst: all that planning one transfer needs.
        further : sequence of str
            Regions of the catalogue to add where they are not in the network yet.
        """

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

    def outcomes(self, src: str, dst: str) -> Sequence[Outcome]:
        """Return what finished transfers between two regions had, by ids."""

    def link_states(self) -> Mapping[Pair, LinkState]:
        """Return the links that are down or degraded; the same object while they are the same."""

    def refresh_link_states(self) -> None:
        """Read again which links are down or degraded."""

    def refresh(self) -> None:
        """Look for something newer.

        Raises
        ------
        RelaydError
            If it can't be reached.
        """

    def close(self) -> None:
        """Close what is open; what was read stays."""
