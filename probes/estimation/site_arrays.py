"""Caps and windows of all sites as arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import flow_cap_gbps
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Estimate
from planner.model.link import Site
from probes.estimation.groups import Bools, Floats


class Bounds(NamedTuple):
    """Bounds of one quantity, as arrays."""

    low: Floats
    expected: Floats
    high: Floats

    @classmethod
    def of(cls, sites: Collection[Site], quantity: Callable[[Site], Estimate]) -> Bounds:
        """Return the bounds of a quantity of sites."""
        found = [quantity(site) for site in sites]
        return cls._make(
            np.array([getattr(one, name) for one in found], np.float64) for name in cls._fields
        )

    def where(self, chosen: Bools, other: Bounds) -> Bounds:
        """Return these bounds where they are chosen, and others elsewhere."""
        return Bounds._make(np.where(chosen, a, b) for a, b in zip(self, other, strict=True))

    @property
    def column(self) -> Bounds:
        """The bounds by row of a matrix."""
        return Bounds._make(one[:, None] for one in self)


def egress(sites: Collection[Site], address: AddressKind | None = None) -> Bounds:
    """Return the caps of what VMs send, :meth:`.Site.egress`; without a kind, their usual caps."""
    return Bounds.of(sites, lambda site: site.egress(address) if address else site.egress_gbps)


def ingress(sites: Collection[Site], address: AddressKind | None = None) -> Bounds:
    """Return the caps of what VMs receive."""
    return Bounds.of(sites, lambda site: site.ingress(address) if address else site.ingress_gbps)


def least_caps(sites: Collection[Site], address: AddressKind | None = None) -> Bounds:
    """Return :func:`.baseline.graph.least_cap` of all pairs of n sites, shapes (n, n)."""
    sends, receives = egress(sites, address).column, ingress(sites, address)
    return sends.where(sends.expected <= receives.expected, receives)


def windows_mb(sites: Collection[Site]) -> Bounds:
    """Return the windows of receivers."""
    return Bounds.of(sites, lambda site: site.window_mb)


def flow_caps_gbps(sites: Collection[Site], catalogue: Catalogue) -> Floats:
    """Return the caps of a single flow out of sites."""
    return np.array([flow_cap_gbps(site, catalogue) for site in sites], np.float64)
