"""What one flow of a link carries: measured, or from the receiver's window."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import CAP_ERROR, origin_of_flow
from planner.model.catalogue import Catalogue
from planner.model.estimate import Figures, HeldTo, Kind, Origin
from planner.model.link import Site
from planner.model.link_array import EstimateArrays, Origins
from planner.model.throughput import MBIT_PER_MB
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import CLASSES_MS, DEVIATION_TO_90, FlowSpreads, later_test_error
from probes.estimation.groups import Floats, Ints
from probes.estimation.link_samples import LinkSamples, steady_values
from probes.estimation.origins import changed, measured, own_first
from probes.estimation.site_arrays import egress, flow_caps_gbps, ingress, windows_mb

Pairs = tuple[Ints, Ints]


class MeasuredFlows(NamedTuple):
    """Links of which single flows were measured.

    Attributes
    ----------
    src, dst : array of int
    mbps : EstimateArrays
        Steady throughput of one flow.
    """

    src: Ints
    dst: Ints
    mbps: EstimateArrays


def measured_flows(samples: LinkSamples, rtts_ms: Floats, origins: Origins) -> MeasuredFlows:
    """Return the links of which single flows were measured.

    Parameters
    ----------
    samples : LinkSamples
        Of n regions.
    rtts_ms : array, shape (n, n)
    origins : Origins
    """
    counted = samples.counted("per_flow_mbps", rtts_ms)
    groups = counted.groups
    values = steady_values(counted.rows, "per_flow_mbps", rtts_ms)
    middles = groups.medians(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = DEVIATION_TO_90 * groups.deviations(values, middles)
        relative = np.where(middles > 0, deviations / middles, 0.0)
    errors = 1 + later_test_error(groups.counts, relative)
    bounds = (middles / errors, middles, middles * errors)
    return MeasuredFlows(
        counted.src, counted.dst, measured(counted, samples.marks, bounds, origins)
    )


class FlowModel:
    """Single flows by the windows of their receivers and the caps of VMs.

    Parameters
    ----------
    sites : collection of Site, length n
        With their windows calibrated.
    rtts_ms : EstimateArrays, shape (n, n)
    catalogue : Catalogue
    origins : Origins
    """

    def __init__(
        self,
        sites: Collection[Site],
        rtts_ms: EstimateArrays,
        catalogue: Catalogue,
        origins: Origins,
    ) -> None:
        self._sites, self._origins = list(sites), origins
        self._rtts_ms = rtts_ms
        self._windows = windows_mb(sites)
        self._caps_mbps = flow_caps_gbps(sites, catalogue)[:, None] * MBPS_PER_GBPS
        caps = np.minimum(egress(sites).column.expected, ingress(sites).expected)
        self._vm_caps_mbps = MBPS_PER_GBPS * caps

    def expected_mbps(self) -> Floats:
        """Return what is expected of one flow on all links, shape (n, n)."""
        flows = np.minimum(self._unlimited_mbps(), self._caps_mbps)
        return np.minimum(flows, self._vm_caps_mbps)

    def _unlimited_mbps(self) -> Floats:
        return MBIT_PER_MB * self._windows.expected * 1000.0 / self._rtts_ms.expected

    def spreads(self, flows: MeasuredFlows) -> FlowSpreads:
        """Return how measured flows lie about what the windows of their receivers promise."""
        src, dst, mbps = flows
        rtts_ms = self._rtts_ms.expected[src, dst]
        chosen = own_first(self._origins, mbps.origin) if len(src) else np.zeros(0, np.bool_)
        chosen &= ~np.isnan(rtts_ms) & (mbps.expected > 0)
        ratios = np.log(mbps.expected[chosen] / self.expected_mbps()[src, dst][chosen])
        types = [self._sites[number].vm_type for number in dst[chosen].tolist()]
        return FlowSpreads(zip(types, rtts_ms[chosen].tolist(), ratios.tolist(), strict=True))

    def of_windows(self, spreads: FlowSpreads) -> EstimateArrays:
        """Return one flow's throughput in Mbit/s on all links, shape (n, n)."""
        rtt, window = self._rtts_ms, self._windows
        unlimited, expected = self._unlimited_mbps(), self.expected_mbps()
        flows = np.minimum(unlimited, self._caps_mbps)
        # Independent errors add in squares.
        below = np.hypot(window.expected / window.low - 1, rtt.high / rtt.expected - 1)
        above = np.hypot(window.high / window.expected - 1, rtt.expected / rtt.low - 1)
        low = np.minimum(unlimited / (1 + below), self._caps_mbps * (1 - CAP_ERROR))
        high = np.minimum(unlimited * (1 + above), self._caps_mbps)
        for number, site in enumerate(self._sites):
            # The bounds of a window that nobody saw hold all tests.
            if site.window_mb.source != "baseline":
                self._spread(site, number, spreads, (low, flows, high))
        capped = flows > self._vm_caps_mbps
        # The VMs' caps hold for one flow as for many.
        cap = self._vm_caps_mbps[capped]
        low[capped] = np.minimum(low[capped], cap * (1 - CAP_ERROR))
        high[capped] = np.maximum(cap, np.minimum(high[capped], cap * (1 + CAP_ERROR)))
        origin = self._origins_of_flows()
        origin[capped] = held_to("vm-caps", self._origins, origin[capped])
        return EstimateArrays.none(*low.shape).with_bounds(low, expected, high, origin)

    def _spread(
        self, site: Site, number: int, spreads: FlowSpreads, bounds: tuple[Floats, Floats, Floats]
    ) -> None:
        """Widen the bounds of flows into a site by how tests lie about windows."""
        low, expected, high = (one[:, number] for one in bounds)
        distances = self._rtts_ms.expected[:, number]
        classes = np.searchsorted(CLASSES_MS, distances, side="right")
        for place in range(len(CLASSES_MS) + 1):
            at = np.flatnonzero((classes == place) & ~np.isnan(distances))
            if not len(at):
                continue
            spread = spreads.of(site.vm_type, float(distances[at[0]]))
            below = np.hypot(np.log(expected[at] / low[at]), spread.below)
            above = np.hypot(np.log(high[at] / expected[at]), spread.above)
            low[at], high[at] = expected[at] * np.exp(-below), expected[at] * np.exp(above)

    def _origins_of_flows(self) -> np.ndarray:
        """Return the origin of each flow by what its window and its round-trip time are."""
        kinds: tuple[Kind, ...] = ("measured", "inferred", "baseline")
        places = {kind: place for place, kind in enumerate(kinds)}
        of_origin = np.array([places[one.kind] for one in self._origins.all])
        of_window = np.array([places[site.window_mb.source] for site in self._sites])
        made = np.empty((len(kinds), len(kinds)), np.int32)
        for i, window in enumerate(kinds):
            for j, rtt in enumerate(kinds):
                modelled = window == "baseline" and rtt != "measured"
                kind: Kind = "baseline" if modelled else "inferred"
                made[i, j] = self._origins.number_of(origin_of_flow(kind, window, rtt))
        found: np.ndarray = made[of_window[None, :], of_origin[self._rtts_ms.origin]]
        return found


def held_to(limit: HeldTo, origins: Origins, numbers: np.ndarray) -> np.ndarray:
    """Return the origins of flows that something holds below what windows allow."""

    def held(origin: Origin) -> Origin:
        return origin._replace(figures=(origin.figures or Figures())._replace(held_to=limit))

    return changed(origins, numbers, held)
