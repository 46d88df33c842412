"""What questions rest on: a network, and what names mean in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planner.model.aliases import Resolution
from planner.model.catalogue import Catalogue
from planner.model.estimate import WantedAddresses
from planner.model.network import Network


class NetworkView(Protocol):
    """The part of :class:`relayd.Wan` that answers are made with."""

    @property
    def catalogue(self) -> Catalogue:
        """Regions, VM types and prices."""

    def network_between(
        self,
        src: str,
        dst: str,
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
    ) -> Network:
        """Return at least the links that a plan between two regions needs."""

    def network_of(
        self,
        regions: Sequence[str],
        vm_types: Mapping[str, str] = ...,
        addresses: WantedAddresses = ...,
    ) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""

    def resolve(self, name: str, field: str = ..., prefer_provider: str | None = ...) -> Resolution:
        """Return the region that a name or alias stands for."""

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[str, ...]]:
        """Return both ends of a transfer as region ids, with notes on what was chosen."""
