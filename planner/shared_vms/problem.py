"""The figures that questions of many transfers share: sites, their VMs, links and fees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from planner.fields.shared import RelayingRequest, VmRequest
from planner.model.answer import Cost, FeeLine
from planner.model.errors import DataError
from planner.model.estimate import BOUNDS, Bound, Method
from planner.model.link import FURTHER_VM, LIMITED_BY, Site
from planner.model.link_array import held_ends
from planner.model.network import Network
from planner.model.pricing import Prices, hours_usd, links_gbps, site_connections
from planner.model.shared_resources import NO_SITE_LIMITS, UNLIMITED, Floats, SiteResources
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS, S_PER_H
from planner.model.vm_limits import PAIR_CONNECTIONS, caps_by_kind, row_place
from planner.shared_vms.drawn_times import DrawnTimes, link_cells, with_further_vms
from planner.shared_vms.fees import LinkFees
from planner.solvers.joint import spread
from planner.transfer.allocation import whole_vms

SURE_TOGETHER, FEW_TOGETHER, UNTESTED_CAPS = 3, 5, 1.6
"""Links at once that a VM of unknown caps surely serves; how much longer a few more may take.

One flow to each of 3 other regions was as fast as alone; with 5 and 6, flows had 0.70 and 0.64 of
their rates (WANify data set, t2.medium, medians of 600 runs): about 3.7 of them filled a VM, and
yet more take longer in proportion."""
QUEUE_MS: Mapping[Bound, float] = {"low": 39.0, "expected": 20.0, "high": 10.0}
"""What queues there add to the round-trip times of single flows: of ten flows beyond 250 ms, which
end last, five at a VM, the 90th percentile, the median and the 10th (the same data)."""
UNTESTED: frozenset[Method] = frozenset(
    ("vm-type", "vm-type-unknown", "cap-probe-lower-bound", "link-above-cap")
)
"""Methods by which a cap is known that no test of many links at once has shown."""
RESOURCES = "resources", "low", "high"


@dataclass(frozen=True)
class SharedFigures:
    """The figures of n sites."""

    regions: tuple[str, ...]  # length n
    resources: SiteResources  # with the greatest numbers of VMs
    low: SiteResources  # these two are the same at the bounds of the estimates
    high: SiteResources
    fees: LinkFees
    rtt_ms: Floats  # shape (n, n)
    vm_usd_per_h: Floats  # length n
    # length n: time that a VM takes to start, and is paid for; 0 where a fleet's VMs run
    vm_start_s: Floats
    # shape (2, n): whether the egress and the ingress cap of a VM of each site were never measured,
    # over several links at once, here or on others of its type
    untested: np.ndarray

    def untested_at(self, links_gbit: Floats) -> tuple[str, ...]:
        """Return the regions where more links meet at once than are sure not to hold each other."""
        doubtful = (self._meeting(links_gbit) > SURE_TOGETHER).any(axis=0)
        return tuple(self.regions[at] for at in np.flatnonzero(doubtful).tolist())

    def untested_factor(self, links_gbit: Floats) -> float:
        """Return how many times as long it may take for caps that are untested; 1 without any."""
        most = int(self._meeting(links_gbit).max(initial=0))
        return UNTESTED_CAPS * max(1.0, most / FEW_TOGETHER) if most > SURE_TOGETHER else 1.0

    def _meeting(self, links_gbit: Floats) -> np.ndarray:
        """Count the links out of and into each region whose cap is untested, shape (2, n)."""
        meet = np.array([np.count_nonzero(links_gbit, axis=axis) for axis in (1, 0)])
        return np.asarray(meet * self.untested)

    def start_s(self, vms: np.ndarray) -> float:
        """Return the time until all of some VMs have started."""
        return float(self.vm_start_s[vms > 0].max(initial=0.0))

    def with_vms(self, vms: Mapping[str, float]) -> Self:
        """Return the same with other greatest numbers of VMs by region."""
        counts = np.array([vms[region] for region in self.regions])
        at = {name: replace(getattr(self, name), vms=counts) for name in RESOURCES}
        return replace(self, **at)

    def as_opened(self, paths_gbit: Floats) -> Self:
        """Return the same with the connections that paths take, by source, first hop and end."""
        return replace(self, **{at: getattr(self, at).as_opened(paths_gbit) for at in RESOURCES})

    def rounding(self, links_gbit: Floats, vms: Floats, transfer_s: float) -> float:
        """Factor by which volumes take longer than rates in fractions of connections need."""
        exact_s = self.resources.time_with_s(links_gbit, np.maximum(vms, 1.0))
        return max(1.0, transfer_s / exact_s) if exact_s else 1.0

    def fewest_vms(self, links_gbit: Floats, time_s: float) -> Floats:
        """Return the whole VMs of each site that move volumes on links in a time."""
        needed = self.resources.vms_for(links_gbit, time_s)
        return np.array([whole_vms(count) if count > 0 else 0.0 for count in needed.tolist()])

    def vm_usd(self, vms: Floats, duration_s: Floats | float) -> Floats:
        """Return the cost of VMs that start, and then run for durations."""
        usd_per_h = vms * self.vm_usd_per_h
        fees_usd_per_h = hours_usd(self.fees.lines(np.zeros((0, 0)), (vms > 0).astype(float)))
        started = float(usd_per_h @ self.vm_start_s) + fees_usd_per_h * self.start_s(vms)
        running = (float(usd_per_h.sum()) + fees_usd_per_h) * np.asarray(duration_s)
        return np.asarray((started + running) / S_PER_H)

    def fee_lines(self, links_gbit: Floats, vms: Floats, duration_s: float) -> tuple[FeeLine, ...]:
        """List the fees besides egress, for a duration with the start."""
        return self.fees.lines(links_gbit, np.where(vms > 0, duration_s / S_PER_H, 0.0))

    def cost(self, links_gbit: Floats, vms: Floats, duration_s: float) -> Cost:
        """Return the cost of volumes on links, and of VMs that run so long once started."""
        return Cost.of(self.fees.usd(links_gbit), float(self.vm_usd(vms, duration_s)))

    def levels_s(self, links_gbit: Floats, vms: Floats) -> Floats:
        """Return the time that each row needs for volumes on links with other numbers of VMs."""
        used = np.maximum(vms[self.resources.row_sites], 1.0)
        return np.asarray(self.resources.loads(links_gbit) / used)

    def fullest_row(self, links_gbit: Floats, vms: Floats) -> tuple[str, str]:
        """Return the kind and the place of the row that needs longest."""
        row = self.resources.row(int(self.levels_s(links_gbit, vms).argmax()))
        return row.kind, row_place(row, self.regions)

    def range_s(
        self, links_gbit: Floats, vms: Floats, duration_s: float, lead_s: float
    ) -> tuple[float, float]:
        """Return a duration if links are as fast, and as slow, as their bounds.

        Where many links meet at VMs whose caps no one measured, these may hold them.
        """
        low = with_further_vms(self.low, links_gbit, vms)
        fast_s, slow_s = self.resources.bounds_s(links_gbit, vms, low, self.high)
        slow_s *= self.rounding(links_gbit, vms, duration_s - lead_s)
        if (factor := self.untested_factor(links_gbit)) > 1:
            slow_s = max(slow_s, factor * (duration_s - lead_s))
        return min(fast_s + lead_s, duration_s), max(slow_s + lead_s, duration_s)

    def drawn_times(self, network: Network, connections: int) -> DrawnTimes:
        """Return the times of plans in each draw of the unknowns."""
        return DrawnTimes(network, self.regions, self.resources, self.low, self.high, connections)


def shared_figures(
    request: VmRequest,
    network: Network,
    prices: Prices,
    regions: tuple[str, ...],
    *,
    may_relay: np.ndarray,
    needed: Collection[tuple[int, int]] = (),
    usable: np.ndarray | bool = True,
    no_link_ms: float = 0.0,
    links_out: np.ndarray | None = None,
) -> SharedFigures:
    """Return the figures of sites.

    Raises DataError if the price of a link that is needed is not known.

    Parameters
    ----------
    regions : tuple of str, length n
    may_relay : array of bool, length n
    needed : collection of (int, int)
        Links whose price must be known; others without a price are left out.
    usable : array of bool, shape (n, n), optional
        Links that may be used.
    no_link_ms : float
        The round trip where there is no link.
    links_out : array, length n, optional
        Links over which a VM of each site sends at once, at least. Each takes a connection, which
        no other link has then.
    """
    n, cells, fees = len(regions), link_cells(network, regions), LinkFees(prices, regions)
    used = (cells["address"] > 0) & ~np.eye(n, dtype=bool) & usable
    for link in map(tuple, np.argwhere(used).tolist()):
        try:
            fees.add(*link)
        except DataError:
            if link in needed:
                raise
            used[link] = False  # its price is not known, so nothing is sent over it
    rtt = np.where(used, cells["rtt_ms"]["expected"], no_link_ms)
    sites = [network.sites[region] for region in regions]
    vms = np.array([float(request.vm_limits.most(site)) for site in sites])
    others = np.maximum(0, (np.zeros(n) if links_out is None else links_out) - 1)
    each = np.clip(request.connections - others, 1, PAIR_CONNECTIONS)
    caps = [site.egress_gbps for site in sites], [site.ingress_gbps for site in sites]
    untested = np.array([[cap.origin.method in UNTESTED for cap in of_ends] for of_ends in caps])
    queues = untested[0] & (others >= SURE_TOGETHER) & (each == 1)
    at = resources_at_bounds(
        network, regions, used, vms, may_relay, request.connections, each, prices, queues
    )
    vm_usd_per_h = np.array([prices.vm_usd_per_h(region) for region in regions])
    vm_start_s = np.array([request.starts_s(site) for site in sites])
    of_vms = fees, rtt, vm_usd_per_h, vm_start_s, untested
    return SharedFigures(regions, at["expected"], at["low"], at["high"], *of_vms)


def participants(
    request: RelayingRequest, network: Network, ends: Collection[str]
) -> tuple[str, ...]:
    """Return the regions that may take part: the ends, and others if any with VMs may relay."""

    def may_relay(region: str, site: Site) -> bool:
        permitted = request.any_may_relay and region not in request.forbidden
        return permitted and request.vm_limits.most(site) > 0

    sites = network.sites.items()
    return tuple(region for region, site in sites if region in ends or may_relay(region, site))


def resources_at_bounds(
    network: Network,
    regions: Sequence[str],
    used: np.ndarray,
    vms: Floats,
    may_relay: np.ndarray,
    connections: int,
    pair_connections: int | np.ndarray = PAIR_CONNECTIONS,
    prices: Prices | None = None,
    queues: np.ndarray | bool = False,
) -> dict[Bound, SiteResources]:
    """Return the resources that n sites share, at each bound.

    Parameters
    ----------
    regions : sequence of str, length n
    used : array of bool, shape (n, n)
        Links that may be used, by source and destination.
    vms : array, length n
    may_relay : array of bool, length n
    connections : int
        Of a VM, in all.
    pair_connections : int, or array of length n
        Of a VM to one other, at most: of all, or by its site.
    prices : Prices, optional
        These say what interconnects carry, and how many connections sites allow.
    queues : array of bool, length n, optional
        Whether single flows out of a VM of each site wait for each other, see :data:`QUEUE_MS`.
    """
    n, links, cells = len(regions), network.links, link_cells(network, regions)[used]
    src, _ = np.nonzero(used)

    def laid(values: Any, elsewhere: float = 0.0) -> Floats:
        """Return figures of the links that may be used, shape (n, n)."""
        found = np.full((n, n), elsewhere)
        found[used] = values
        return found

    figures = [origin.figures for origin in links.origins]
    of_tests = np.array(
        [((f and f.connections) or LAW_CONNECTIONS, (f and f.vms) or 1) for f in figures]
    ).reshape(-1, 2)
    measured, tried = of_tests[links.evidence["origin"][cells["aggregate_gbps"]["evidence"]]].T
    probability, doubtful = cells["slow_connections"].astype(float).round(6), dict[str, Any]()
    if connections > 1 and probability.any():
        slow_gbps = connections * (cells["aggregate_gbps"]["expected"] / measured)
        slow_gbps = np.where(probability > 0, slow_gbps, np.inf)
        doubtful = {"slow_gbps": laid(slow_gbps, np.inf), "slow_probability": laid(probability)}
    counts = np.minimum(connections, np.zeros(n) + pair_connections)[src]
    by_windows = cells["limited_by"] == LIMITED_BY.index("window")
    wider = np.where(by_windows, np.maximum(1.0, counts / LAW_CONNECTIONS), 1.0)
    rtts_ms, wait = cells["rtt_ms"]["expected"], np.broadcast_to(queues, n)[src]
    egress, ingress, *weights = caps_by_kind(network, regions)
    caps = egress[:, None] / weights[0], ingress / weights[1]
    held = held_ends(cells["limited_by"], *(np.broadcast_to(cap, (n, n))[used] for cap in caps))
    link_gbps, site_vms = UNLIMITED, NO_SITE_LIMITS
    if prices:
        link_gbps = links_gbps(prices, regions)
        site_vms = site_connections(prices, regions) / connections
    found: dict[Bound, SiteResources] = {}
    for bound in BOUNDS:
        flow_mbps = cells["per_flow_mbps"][bound]
        flow_mbps = flow_mbps * np.where(wait, rtts_ms / (rtts_ms + QUEUE_MS[bound]), 1.0)
        most = cells["aggregate_gbps"][bound] * wider
        sends, receives = (np.where(is_held, most, np.inf) for is_held in held)
        egress, ingress, out_weights, in_weights = caps_by_kind(network, regions, bound)
        found[bound] = SiteResources(
            laid(np.minimum(counts * flow_mbps / MBPS_PER_GBPS, sends)),
            laid(connections * np.minimum(flow_mbps / MBPS_PER_GBPS, most)),
            egress,
            ingress,
            vms,
            may_relay,
            egress_weights=out_weights,
            ingress_weights=in_weights,
            received_gbps=laid(receives),
            link_gbps=link_gbps,
            site_vms=site_vms,
            **doubtful,
        )
    pairs = (np.minimum(found[b].rate_gbps, found[b].receivers_gbps) for b in ("expected", "low"))
    share = np.array([FURTHER_VM[limit] for limit in LIMITED_BY])[cells["limited_by"]]
    further = np.array([laid(tried), laid(share), spread(*pairs)])
    found["low"] = replace(found["low"], further=further)
    return found
