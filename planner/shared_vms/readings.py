"""Links that nobody ramped, in plans of many transfers: connections, and what to try first.

See :mod:`planner.transfer.readings`: where it is not known whether a slow link's path ends or each
of its connections is slow, plans take the path to end. As long as VMs have enough connections, each
such link gets as many as carry its rate under the other reading, so that the plan holds under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.model.answer import PathShare
from planner.model.baseline.graph import least_cap
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.vm_limits import SAME_COUNT, connections_by_region
from planner.transfer.plan import MeasureFirst
from planner.transfer.readings import (
    connection_gbps,
    may_have_slow_connections,
    measured_connections,
    ramp,
    warnings,
)

RAMPS_SHOWN = 3


class OpenedConnections:
    """How many connections a plan opens on links.

    Attributes
    ----------
    by_region : dict of str to int
        How many a VM of each region needs.
    each_gbps : array, shape (n, n)
        What each connection of a link is taken to carry; 0 where nothing is sent.

    Parameters
    ----------
    resources : SiteResources
    regions : sequence of str, length n
    links_gbps : array, shape (n, n)
        Rates on links.
    vms : array, length n
    connections : int
        Of a VM, at most.
    """

    def __init__(
        self,
        network: Network,
        resources: SiteResources,
        regions: Sequence[str],
        links_gbps: Floats,
        vms: Floats,
        connections: int,
    ) -> None:
        self._network, self._regions, self._links_gbps = network, regions, links_gbps
        self._connections, used = connections, links_gbps > 0
        self._used = list(zip(*(axis.tolist() for axis in np.nonzero(used)), strict=True))
        self.each_gbps = np.where(used, resources.connections_gbps / connections, 0.0)
        slow_gbps, self._slow = self.each_gbps.copy(), set[tuple[int, int]]()
        for link in self._used:
            known = network.link(regions[link[0]], regions[link[1]])
            if connections > 1 and may_have_slow_connections(known):
                slow_gbps[link] = min(slow_gbps[link], connection_gbps(known))
                self._slow.add(link)

        def needed(each_gbps: Floats) -> dict[str, int]:
            opened = replace(resources, connections_gbps=connections * each_gbps)
            return connections_by_region(opened, regions, links_gbps, vms, connections)

        self.by_region = needed(slow_gbps)
        if max(self.by_region.values(), default=0) <= connections:
            self.each_gbps = slow_gbps
            self._slow.clear()  # the plan holds if they are slow
        else:
            self.by_region = needed(self.each_gbps)

    def count(self, rate_gbps: float, *links: tuple[int, int]) -> int:
        """Return how many connections a rate takes on each of some links."""
        slowest = min(float(self.each_gbps[link]) for link in links)
        return max(1, int(np.ceil(rate_gbps / slowest * (1 - SAME_COUNT))))

    def warnings(self, vms: Mapping[str, int]) -> tuple[str, ...]:
        """Return what the plan takes for granted of links that nobody tried that way."""
        links = []
        for src, dst in self._used if self._connections > 1 else ():
            several = min(vms[self._regions[src]], vms[self._regions[dst]]) > 1
            if not several and (src, dst) not in self._slow:
                continue  # nothing is taken for granted
            rate = float(self._links_gbps[src, dst])
            names = self._regions[src], self._regions[dst]
            links.append(PathShare(names, rate, 1.0, self.count(rate, (src, dst))))
        return tuple(warnings(links, dict(vms), self._network))


def ramps(
    network: Network, prices: Prices, links: Iterable[tuple[str, str]], connections: int
) -> tuple[MeasureFirst, ...]:
    """Return the tests of more connections on links that others are used in place of.

    Parameters
    ----------
    links : iterable of (str, str)
        Source and destination, the most important first.
    connections : int
        Of one VM to another.
    """
    found: list[MeasureFirst] = []
    for src, dst in links:
        link = network.links.get(src, {}).get(dst)
        if link is None or not may_have_slow_connections(link):
            continue
        measured = measured_connections(link)
        if connections < measured or len(found) >= RAMPS_SHOWN:
            continue
        cap = least_cap(network.sites[src], network.sites[dst], link.address)
        found.append(ramp(link, cap.expected, measured, prices))
    return tuple(found)
