"""What one flow of a link carries: measured, or from the receiver's window."""

from __future__ import annotations

from collections.abc import Collection
from itertools import repeat
from math import exp, hypot, log, log2
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import CAP_ERROR, origin_of_flow
from planner.model.catalogue import Catalogue
from planner.model.columns.links import Origins
from planner.model.columns.table import EstimateArrays
from planner.model.estimate import Figures, HeldTo, Kind, Origin
from planner.model.link import Site
from planner.model.throughput import INITIAL_WINDOW_MB, LEAST_SHARE, MBIT_PER_MB
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import CLASSES_MS, DEVIATION_TO_90, FlowSpreads, later_test_error
from probes.estimation.arrays.groups import Bools, Floats, Ints, each, powers
from probes.estimation.arrays.origins import changed, measured, own_first
from probes.estimation.arrays.sample_table import Rows
from probes.estimation.arrays.sites import egress, flow_caps_gbps, ingress, windows_mb
from probes.estimation.series import LinkSamples

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


def windows_from_flows_mb(rows: Rows, rtts_ms: Floats, cold: Bools) -> Floats:
    """Return the windows that explain what single flows reached.

    As :func:`planner.model.throughput.window_from_flow_mb`, to the last digit.

    Parameters
    ----------
    rows : Rows
    rtts_ms : array
        Of the link of each.
    cold : array of bool
        Whether slow start was part of it.
    """
    found: Floats = rows["value"] * rtts_ms / 1000.0 / MBIT_PER_MB
    seen, rtt_ms, duration_s = found[cold], rtts_ms[cold], rows["duration_s"][cold]
    steady = seen
    for _ in range(8):
        steady = seen / _share_of_steady(steady, rtt_ms, duration_s)
    found[cold] = steady
    return found


def _share_of_steady(window_mb: Floats, rtt_ms: Floats, duration_s: Floats) -> Floats:
    """Return :func:`planner.model.throughput.flow_share_of_steady` of many flows."""
    doublings = each(log2, np.maximum(window_mb, INITIAL_WINDOW_MB) / INITIAL_WINDOW_MB)
    ramp_up_s = np.maximum(0.0, doublings - 1.0) * rtt_ms / 1000.0
    return np.maximum(LEAST_SHARE, 1.0 - ramp_up_s / duration_s)


def from_cold(rows: Rows, rtts_ms: Floats) -> Bools:
    """Return which tests had slow start as a part whose share is known."""
    cold: Bools = ~np.isnan(rtts_ms) & ~rows["warmed_up"] & (rows["duration_s"] != 0)
    return cold


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
    rows, groups, _ = counted
    of_rows = rtts_ms[rows["src"], rows["dst"]]
    cold = from_cold(rows, of_rows)
    values = rows["value"].copy()
    windows = windows_from_flows_mb(rows[cold], of_rows[cold], np.ones(cold.sum(), np.bool_))
    values[cold] /= _share_of_steady(windows, of_rows[cold], rows["duration_s"][cold])
    middles = groups.medians(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = DEVIATION_TO_90 * groups.deviations(values, middles)
        relative = np.where(middles > 0, deviations / middles, 0.0)
    errors = 1 + each(later_test_error, groups.counts.astype(np.float64), relative)
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
        ratios = each(log, mbps.expected[chosen] / self.expected_mbps()[src, dst][chosen])
        types = [self._sites[number].vm_type for number in dst[chosen].tolist()]
        return FlowSpreads(zip(types, rtts_ms[chosen].tolist(), ratios.tolist(), strict=True))

    def of_windows(self, spreads: FlowSpreads) -> EstimateArrays:
        """Return one flow's throughput in Mbit/s on all links, shape (n, n)."""
        rtt, window = self._rtts_ms, self._windows
        unlimited, expected = self._unlimited_mbps(), self.expected_mbps()
        flows = np.minimum(unlimited, self._caps_mbps)
        # Independent errors add in squares.
        below = np.sqrt(
            powers(window.expected / window.low - 1) + powers(rtt.high / rtt.expected - 1)
        )
        above = np.sqrt(
            powers(window.high / window.expected - 1) + powers(rtt.expected / rtt.low - 1)
        )
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
            below = _wider(expected[at] / low[at], spread.below)
            above = _wider(high[at] / expected[at], spread.above)
            low[at] = expected[at] * each(exp, -below)
            high[at] = expected[at] * each(exp, above)

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


def _wider(ratios: Floats, spread: float) -> Floats:
    logs = each(log, ratios)
    return np.fromiter(map(hypot, logs.tolist(), repeat(spread)), np.float64, len(logs))


def held_to(limit: HeldTo, origins: Origins, numbers: np.ndarray) -> np.ndarray:
    """Return the origins of flows that something holds below what windows allow."""

    def held(origin: Origin) -> Origin:
        return origin._replace(figures=(origin.figures or Figures())._replace(held_to=limit))

    return changed(origins, numbers, held)
