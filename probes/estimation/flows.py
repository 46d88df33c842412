"""Throughput of one flow of a link: measured, or from the receiver's window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.modelled_links import (
    CAP_ERROR,
    flow_cap_gbps,
    origin_of_flow,
    set_flows,
)
from planner.model.catalogue import Catalogue
from planner.model.estimate import Figures, HeldTo, Origin
from planner.model.link import Site
from planner.model.link_array import KINDS, Origins, Records, bounds_of
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import CLASSES_MS, DEVIATION_TO_90, FlowSpreads, later_test_error
from probes.estimation.estimates import EstimateArray, changed, measured, no_estimates, own_first
from probes.estimation.groups import Bools, Floats, Ints
from probes.estimation.link_samples import LinkSamples, steady_values

Pairs: TypeAlias = tuple[Ints, Ints]


class MeasuredFlows(NamedTuple):
    """Links whose single flows were measured.

    Attributes
    ----------
    pairs : (array, array)
        Their ends.
    mbps : EstimateArray
        Steady throughput of one flow.
    """

    pairs: Pairs
    mbps: EstimateArray


def measured_flows(samples: LinkSamples, rtts_ms: Floats, origins: Origins) -> MeasuredFlows:
    """Return the links whose single flows were measured.

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
    return MeasuredFlows(counted.ends, measured(counted, samples.marks, bounds, origins))


def flow_caps_gbps(sites: Mapping[str, Site], catalogue: Catalogue) -> Floats:
    """Return the caps of a single flow out of sites."""
    return np.array([flow_cap_gbps(site, catalogue) for site in sites.values()], np.float64)


def flows_of_windows(
    sites: Mapping[str, Site],
    rtts_ms: EstimateArray,
    flows: MeasuredFlows,
    teaches: Bools,
    catalogue: Catalogue,
    origins: Origins,
) -> EstimateArray:
    """Return one flow's throughput on all links by windows and caps, in Mbit/s, shape (n, n).

    Parameters
    ----------
    sites : mapping
        Of n regions, with their windows calibrated.
    rtts_ms : EstimateArray, shape (n, n)
    flows : MeasuredFlows
        They show the spread of tests about the rates that windows promise.
    teaches : array of bool, shape (n, n)
        Links whose tests count for that.
    catalogue : Catalogue
    origins : Origins
    """
    listed = list(sites.values())
    windows = bounds_of(site.window_mb for site in listed)
    egress = bounds_of(site.egress_gbps for site in listed)["expected"]
    ingress = bounds_of(site.ingress_gbps for site in listed)["expected"]
    vm_caps_mbps = MBPS_PER_GBPS * np.minimum(egress[:, None], ingress)
    caps_mbps = MBPS_PER_GBPS * flow_caps_gbps(sites, catalogue)[:, None]
    rtt, found = rtts_ms["expected"], no_estimates(*rtts_ms.shape)
    set_flows(found, windows, rtts_ms, caps_mbps)
    capped = found["expected"] > vm_caps_mbps
    promised = np.where(teaches, np.minimum(found["expected"], vm_caps_mbps), np.nan)
    spreads = _spreads(listed, rtt, promised, flows, origins)
    for number, site in enumerate(listed):
        # The bounds of a window that was not seen hold all tests.
        if site.window_mb.source != "baseline":
            _widen(found[:, number], spreads, site.vm_type, rtt[:, number])
    # The VMs' caps hold for one flow as for many.
    cap, of_capped = vm_caps_mbps[capped], found[capped]
    of_capped["low"] = np.minimum(of_capped["low"], cap * (1 - CAP_ERROR))
    of_capped["high"] = np.maximum(cap, np.minimum(of_capped["high"], cap * (1 + CAP_ERROR)))
    of_capped["expected"] = cap
    found[capped] = of_capped
    found["origin"] = _origins_of_flows(listed, rtts_ms, origins)
    found["origin"][capped] = held_to("vm-caps", origins, found["origin"][capped])
    return found


def _spreads(
    sites: list[Site], rtts_ms: Floats, promised: Floats, flows: MeasuredFlows, origins: Origins
) -> FlowSpreads:
    """Return the spreads of measured flows about the rates that windows promise."""
    pairs, mbps = flows
    chosen = own_first(origins, mbps["origin"]) if len(mbps) else np.zeros(0, np.bool_)
    chosen &= ~np.isnan(promised[pairs]) & (mbps["expected"] > 0)
    ratios = np.log(mbps["expected"][chosen] / promised[pairs][chosen])
    types = [sites[number].vm_type for number in pairs[1][chosen].tolist()]
    return FlowSpreads(zip(types, rtts_ms[pairs][chosen].tolist(), ratios.tolist(), strict=True))


def _widen(flows: Records, spreads: FlowSpreads, vm_type: str, rtts_ms: Floats) -> None:
    """Widen the bounds of flows into a site by the spread of tests about windows."""
    classes = np.searchsorted(CLASSES_MS, rtts_ms, side="right")
    for place in range(len(CLASSES_MS) + 1):
        at = np.flatnonzero((classes == place) & ~np.isnan(rtts_ms))
        if not len(at):
            continue
        spread, expected = spreads.of(vm_type, float(rtts_ms[at[0]])), flows["expected"][at]
        below = np.hypot(np.log(expected / flows["low"][at]), spread.below)
        above = np.hypot(np.log(flows["high"][at] / expected), spread.above)
        flows["low"][at], flows["high"][at] = expected * np.exp(-below), expected * np.exp(above)


def _origins_of_flows(sites: list[Site], rtts_ms: EstimateArray, origins: Origins) -> Ints:
    """Return the origin of each flow by the sources of its window and its round-trip time."""
    of_origin = np.array([KINDS.index(one.kind) for one in origins.all])
    of_window = np.array([KINDS.index(site.window_mb.source) for site in sites])
    made = np.empty((len(KINDS), len(KINDS)), np.int64)
    for i, window in enumerate(KINDS):
        for j, rtt in enumerate(KINDS):
            modelled = window == "baseline" and rtt != "measured"
            origin = origin_of_flow("baseline" if modelled else "inferred", window, rtt)
            made[i, j] = origins.number_of(origin)
    found: Ints = made[of_window, of_origin[rtts_ms["origin"]]]
    return found


def held_to(limit: HeldTo, origins: Origins, numbers: Ints) -> NDArray[np.int32]:
    """Return the origins of flows that a limit holds below the rates of their windows."""

    def held(origin: Origin) -> Origin:
        return origin._replace(figures=(origin.figures or Figures())._replace(held_to=limit))

    return changed(origins, numbers, held)
