"""Whole connections: how many each path of a plan opens, at least one, and the time they allow."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    ) -> tuple[Floats, Floats, Floats]:
        """Return the connections that each opens if so much faster, all out of each site, and in.

        `resources` rest on so many `connections` of a VM.
        """
        needs = connections * speed * resources.opened_s_per_gbit(*self[:3])
        counts = np.maximum(1.0, np.ceil(self.amount * needs * (1 - SAME_COUNT)))
        sites, relayed = resources.count, self.hop != self.dst
        by_relays = np.bincount(self.hop[relayed], counts[relayed], sites)
        ends = np.array([np.bincount(at, counts, sites) for at in (self.src, self.dst)], float)
        return counts, *(ends + by_relays)

    def too_many(
        self, resources: SiteResources, connections: int, vms: Floats, speed: Floats | float = 1.0
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where more connections leave sites, and enter, than VMs and sites may have."""
        _, out, into = self.opened(resources, connections, speed)
        may_leave, may_enter = np.rint(connections * resources.site_vms)
        return out > np.minimum(np.maximum(connections * vms, 1.0), may_leave), into > may_enter

    def whole_s(
        self, resources: SiteResources, connections: int, vms: Floats, least_s: float
    ) -> float:
        """Return a time in which no VM opens more connections than it may; infinite if none is."""

        def fits(speed: float) -> bool:
            return not np.any(self.too_many(resources, connections, vms, speed))

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
