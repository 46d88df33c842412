"""Durations of plans of many transfers if links and VMs are slower or faster than expected.

Two plans of one question share the caps of VMs, the windows of receivers and most links, so that
their errors cancel. Each of these is a factor with draws of its own, see
:mod:`planner.solvers.joint`; a plan's volumes stay on their links, and its time in a draw is that
of the fullest row of :mod:`planner.model.shared_resources`. Draws depend on the names of regions,
so that a further region in the network changes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import Estimate
from planner.model.link_array import KINDS, Records, bounds_of, most_gbps
from planner.model.network import Network
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import MBPS_PER_GBPS
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.solvers.joint import (
    DRAWS,
    factors,
    least_slow_probabilities,
    of_further_vms,
    quantiles,
    spread,
)

# Numbers that tell the factors of a site apart.
EGRESS, INGRESS, WINDOW, FIGURE = 1, 2, 3, 4
# SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
_STEP, _MIX = 0x9E3779B97F4A7C15, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True)
class DrawnTimes:
    """Times of plans of one question, in each draw of the unknowns."""

    network: Network
    regions: Sequence[str]  # length n: of the sites
    resources: SiteResources  # as expected
    low: SiteResources  # these two at the bounds of the estimates
    high: SiteResources
    connections: int  # of a VM, on which the figures rest

    @cached_property
    def _names(self) -> NDArray[np.uint64]:
        return np.array([crc32(name.encode()) for name in self.regions], dtype=np.uint64)

    def times_s(self, links_gbit: Floats, vms: Floats) -> Floats:
        """Return the time that volumes on links need in each draw, without getting up to speed.

        Parameters
        ----------
        links_gbit : array, shape (n, n)
        vms : array, length n
            Those in use; one where there is none.
        """
        used, at = np.maximum(vms, 1.0), self.resources
        low = with_further_vms(self.low, links_gbit, used)
        src, dst = np.nonzero(links_gbit)
        gbit = links_gbit[src, dst]
        rates = self._link_factors("rate_gbps", low, src, dst)
        flows = self._link_factors("connections_gbps", low, src, dst)
        _, sent_s, received_s = at.site_loads(links_gbit, used) / used
        alone = [
            (gbit * at.paths_s(used)[src, dst], rates),
            (sent_s, self._caps("egress_gbps", EGRESS)),
            (received_s, self._caps("ingress_gbps", INGRESS)),
        ]
        times = [(time / factors).max(axis=1, initial=0.0) for time, factors in alone]
        together = gbit * at.connections_s_per_gbit[src, dst] / flows
        if at.slow_gbps is not None and at.slow_probability is not None:
            slow = least_slow_probabilities()[:, None] < at.slow_probability[src, dst]
            if_slow = np.maximum(together, gbit / at.slow_gbps[src, dst] / rates)
            together = np.where(slow, if_slow, together)
        sites = (src[:, None] == np.arange(at.count)) / used
        times.append((together @ sites).max(axis=1))
        return np.asarray(np.maximum.reduce(times))

    # ---- factors -----------------------------------------------------------------------------

    def _caps(self, name: str, kind: int) -> Floats:
        """Return the factors of caps in each draw, shape (draws, sites)."""
        figures = (getattr(at, name) for at in (self.resources, self.low, self.high))
        return _factors(_keys(self._names, kind), *_spreads(*figures))

    def _link_factors(
        self, name: str, low: SiteResources, src: np.ndarray, dst: np.ndarray
    ) -> Floats:
        """Return the factors of links in each draw, those of receivers' windows included."""
        bounds = self.resources, low, self.high
        below, above = _spreads(*(getattr(at, name)[src, dst] for at in bounds))
        keys = _keys(_keys(self._names[src], 0) + self._names[dst], 0)
        windows, odd = self._windows(name, src, dst)
        if not windows.any():
            return _factors(keys, below, above, odd)
        of_windows = _spreads_of([self.network.sites[region].window_mb for region in self.regions])
        of_links = list(zip((below, above), of_windows, strict=True))
        shared = [np.minimum(one, window[dst] * windows) for one, window in of_links]
        below, above = np.sqrt(below**2 - shared[0] ** 2), np.sqrt(above**2 - shared[1] ** 2)
        windows_drawn = _factors(_keys(self._names[dst], WINDOW), *shared)
        return _factors(keys, below, above, odd) * windows_drawn

    def _windows(
        self, name: str, src: np.ndarray, dst: np.ndarray
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return masks of links whose rates rest on an inferred window, and of those not measured.

        A window is that of all senders; a class is of what many connections carry.
        """
        count, links = min(self.connections, PAIR_CONNECTIONS), self.network.links
        cells = link_cells(self.network, self.regions)[src, dst]
        methods = [origin.method for origin in links.origins]
        origins = links.evidence["origin"][cells["per_flow_mbps"]["evidence"]]
        inferred = np.array(methods, dtype=object)[origins] == "window-over-rtt"
        if name == "connections_gbps":
            return inferred, np.zeros(len(src), dtype=bool)
        flows_gbps = count * cells["per_flow_mbps"]["expected"] / MBPS_PER_GBPS
        reaches = flows_gbps <= most_gbps(cells, count) * (1 + EQUAL)
        measured = links.kinds(cells, "aggregate_gbps") == KINDS.index("measured")
        return inferred & reaches, ~measured & (self.connections > 1)


def link_cells(network: Network, regions: Sequence[str]) -> Records:
    """Return the records of the links among some regions, shape (n, n)."""
    at = [network.index[region] for region in regions]
    found: Records = network.links.whole[np.ix_(at, at)]
    return found


def with_further_vms(low: SiteResources, links_gbit: Floats, vms: Floats) -> SiteResources:
    """Return low bounds where links in use carry what VM pairs that no one tried may bring."""
    if low.further is None:
        return low
    used, ones = np.nonzero(links_gbit), np.ones(len(vms))
    one, several = (low.paths_s(n)[used] for n in (ones, np.maximum(vms, 1.0)))
    pairs = np.divide(one, several, out=np.ones_like(one), where=several > 0)
    narrows = np.ones_like(low.rate_gbps)
    narrows[used] = _OF_FURTHER_VMS(pairs, *low.further[:, used[0], used[1]])[0]
    figures = low.rate_gbps * narrows, low.receivers_gbps * narrows
    return replace(low, rate_gbps=figures[0], received_gbps=figures[1])


EQUAL = 1e-9
_OF_FURTHER_VMS = np.vectorize(of_further_vms, otypes=[float, float])


def drawn_links(pairs: Sequence[tuple[str, str]], figures: Sequence[Estimate]) -> Floats:
    """Return the factors of a figure of links in each draw, shape (draws, links).

    Each link has its own errors, derived from its name.
    """
    names = np.array([[crc32(name.encode()) for name in pair] for pair in pairs], dtype=np.uint64)
    keys = _keys(_keys(names[:, 0], 0) + names[:, 1], FIGURE)
    return _factors(keys, *_spreads_of(figures))


def _spreads(expected: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the spreads of factors below and above the expected value."""
    return spread(expected, low), spread(expected, high)


def _spreads_of(figures: Sequence[Estimate]) -> tuple[Floats, Floats]:
    bounds = bounds_of(figures)
    return _spreads(bounds["expected"], bounds["low"], bounds["high"])


def _keys(names: NDArray[np.uint64], kind: int) -> NDArray[np.uint64]:
    """Return pseudo-random keys that differ by name and kind."""
    mixed = names + np.uint64(_STEP * (kind + 1) % 2**64)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _factors(
    keys: NDArray[np.uint64], below: Floats, above: Floats, odd: NDArray[np.bool_] | bool = False
) -> Floats:
    """Return factors in each draw, shape (draws, factors), see :mod:`planner.solvers.joint`."""
    order = np.array([_keys(keys, 4 + draw) for draw in range(DRAWS)]).argsort(axis=0)
    scores = np.empty(order.shape)
    np.put_along_axis(scores, order, np.array(quantiles())[:, None], axis=0)
    return factors(scores.T, below, above, odd).T
