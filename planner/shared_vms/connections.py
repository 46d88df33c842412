"""Whole connections: how many each path of a plan opens, at least one, and the time they allow."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from planner.model.shared_resources import Floats, Integers, SiteResources
from planner.model.vm_limits import SAME_COUNT, vms_by_region

HALVINGS = 30


class Streams(NamedTuple):
    """Volumes, or rates, on paths; the first hops of direct ones are their destinations."""

    src: Integers
    hop: Integers
    dst: Integers
    amount: Floats

    @classmethod
    def of(cls, paths_gbit: Floats) -> Streams:
        """Return those of an array by source, first hop and destination, or by link."""
        paths = np.nonzero(paths_gbit)
        return cls(paths[0], paths[1], paths[-1], paths_gbit[paths])

    def opened(
        self, resources: SiteResources, connections: int, speed: Floats | float = 1.0
    ) -> tuple[Floats, Floats]:
        """Return the connections that each opens if so much faster, and all at each site.

        `resources` rest on so many `connections` of a VM.
        """
        needs = connections * speed * resources.opened_s_per_gbit(*self[:3])
        counts = np.maximum(1.0, np.ceil(self.amount * needs * (1 - SAME_COUNT)))
        sites, relayed = resources.count, self.hop != self.dst
        by_relays = np.bincount(self.hop[relayed], counts[relayed], sites)
        return counts, np.asarray(np.bincount(self.src, counts, sites) + by_relays, dtype=float)

    def whole_s(
        self, resources: SiteResources, connections: int, vms: Floats, least_s: float
    ) -> float:
        """Return a time in which no VM opens more connections than it may; infinite if none is."""
        allowed = np.maximum(connections * vms, 1.0)

        def fits(speed: float) -> bool:
            return bool((self.opened(resources, connections, speed)[1] <= allowed).all())

        if fits(1 / least_s):
            return least_s
        if not fits(0.0):
            return inf
        low, high = 0.0, 1 / least_s
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return 1 / low if low else inf

    def time_s(
        self, resources: SiteResources, connections: int, vms: Floats, least_s: float
    ) -> float:
        """Return :meth:`whole_s`, or the least time where connections then take turns."""
        found = self.whole_s(resources, connections, vms, least_s)
        return found if found < inf else least_s


def connections_by_region(
    resources: SiteResources, regions: Sequence[str], links_gbps: Floats, vms: Floats, most: int
) -> dict[str, int]:
    """Return the connections that a VM of each region opens for rates, (n, n), of `most`."""
    opened = Streams.of(links_gbps).opened(resources, most)[1]
    return vms_by_region(regions, np.ceil(opened / np.maximum(vms, 1.0)))
