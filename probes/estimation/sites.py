"""A site's caps and window: measured, or as measured on other VMs of its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from planner.model.baseline.graph import CAP_ERROR, flow_cap_gbps, within
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Method, Origin
from planner.model.link import Site
from planner.model.link_array import EstimateArrays, Origins
from planner.model.throughput import MBIT_PER_MB
from planner.model.units import MBPS_PER_GBPS, MS_PER_S
from planner.single_flow.spreads import window_error
from probes.estimation.aggregates import AggregateTests
from probes.estimation.caps import measured_caps
from probes.estimation.groups import Floats, Groups, Ints, bounds_of
from probes.estimation.link_samples import LinkSamples, number_of, own_marks, steady_values
from probes.estimation.origins import are_own, no_surer_than, of_rows
from probes.estimation.site_arrays import egress, flow_caps_gbps, ingress
from probes.samples import Rows

WINDOW_SPREAD_OF_TYPE = 0.15
# A flow calibrates the window only where the window limits it: far enough, and below the cap.
CALIBRATION_RTT_MS = 20.0
CALIBRATION_SHARE_OF_CAP = 0.8


def with_caps(
    sites: Mapping[str, Site],
    samples: LinkSamples,
    tests: AggregateTests,
    stated_gbps: Mapping[str, tuple[float | None, float | None]],
    rtts_ms: EstimateArrays,
    catalogue: Catalogue,
    origins: Origins,
) -> dict[str, Site]:
    """Take over measured caps, and raise those that a link has exceeded.

    A VM without a measured cap has the one that was stated for it, else that of others of its
    type.
    """
    calibrated = with_windows(sites, samples, rtts_ms.expected, catalogue)
    measured_out, measured_in = measured_caps(calibrated, samples, rtts_ms.expected)
    carried = BusiestLinks(samples.names, tests, origins)
    capped = {}
    for number, (name, site) in enumerate(sites.items()):
        stated_out, stated_in = map(_stated, stated_gbps.get(name, (None, None)))
        out = measured_out.of.get(name) or stated_out or measured_out.of.get(site.vm_type)
        into = measured_in.of.get(name) or stated_in or measured_in.of.get(site.vm_type)
        capped[name] = replace(
            site,
            egress_gbps=carried.raised(
                out or site.egress_gbps, measured_out.at_least.get(name), "src", number
            ),
            ingress_gbps=carried.raised(
                into or site.ingress_gbps, measured_in.at_least.get(name), "dst", number
            ),
        )
    return capped


class BusiestLinks:
    """Which measured links carried most out of each region, and into it.

    A link of which there is one short test alone is sure only if another carried as much. The most
    of many such tests would be the luckiest of them, and a cap is shared by all paths of a plan.

    Parameters
    ----------
    names : sequence of str
        The regions.
    tests : AggregateTests
    origins : Origins
    """

    def __init__(self, names: Sequence[str], tests: AggregateTests, origins: Origins) -> None:
        self._names, self._tests, self._origins = names, tests, origins
        order = np.argsort(-tests.alone.expected, kind="stable")
        own = are_own(origins, tests.alone.origin)
        self._most: dict[str, Ints] = {}
        self._sure: dict[str, Ints] = {}
        for end, regions in (("src", tests.src), ("dst", tests.dst)):
            # What others alone report of one link raises no cap of all.
            measured = np.zeros(len(names), np.bool_)
            measured[regions[own]] = True
            ranked = order[(own | ~measured[regions])[order]]
            self._most[end] = most = _first_of_each(regions, ranked, len(names))
            # The first is sure unless it is a lone test; after one, any other is.
            lone = most[most >= 0]
            lone = lone[tests.is_lone[lone]]
            self._sure[end] = _first_of_each(
                regions, ranked[~np.isin(ranked, lone)] if len(lone) else ranked, len(names)
            )

    def raised(self, cap: Estimate, at_least: Estimate | None, end: str, region: int) -> Estimate:
        """Return a cap, or the last of what was carried that exceeds it.

        Parameters
        ----------
        cap : Estimate
        at_least : Estimate | None
            The most that a probe of it carried.
        end : str
            ``src`` for what the VM sends, ``dst`` for what it receives.
        region : int
            Place of its region.
        """
        carried, method = self._tests.alone.expected, cap.origin.method
        if at_least and at_least.expected > cap.expected:
            figures = (at_least.origin.figures or Figures())._replace(raised_from=method)
            cap = replace(at_least, origin=at_least.origin._replace(figures=figures))
        sure, most = int(self._sure[end][region]), int(self._most[end][region])
        if sure >= 0 and carried[sure] > cap.expected:
            cap = self._carried_by(sure, method)
        if most >= 0 and carried[most] > cap.high:
            cap = replace(cap, high=carried[most].item())
        return cap

    def _carried_by(self, link: int, raised_from: Method) -> Estimate:
        alone = self._tests.alone.at(link, self._origins)
        assert alone is not None
        between = self._names[self._tests.src[link]], self._names[self._tests.dst[link]]
        figures = Figures(between=between, raised_from=raised_from)
        origin = alone.origin._replace(method="link-above-cap", figures=figures)
        return Estimate(alone.low, alone.expected, alone.high, origin, alone.prior)


def _first_of_each(regions: Ints, ranked: Ints, count: int) -> Ints:
    """Return the first link of each region in an order; -1 where it has none."""
    found = np.full(count, -1)
    found[regions[ranked[::-1]]] = ranked[::-1]  # the last to be written stays
    return found


def _stated(cap_gbps: float | None) -> Estimate | None:
    if cap_gbps is None:
        return None
    return within(cap_gbps, CAP_ERROR, Origin("baseline", "fleet-file"))


def most_calibrating_mbps(
    source: Site, destination: Site, rtt_ms: Estimate | None, catalogue: Catalogue
) -> float | None:
    """Return the highest throughput of a flow that calibrates its receiver's window.

    None where none does: too near, or of a round-trip time that is not known.
    """
    if rtt_ms is None or rtt_ms.expected < CALIBRATION_RTT_MS:
        return None
    cap_gbps = min(
        flow_cap_gbps(source, catalogue),
        source.egress_gbps.expected,
        destination.ingress_gbps.expected,
    )
    return CALIBRATION_SHARE_OF_CAP * (MBPS_PER_GBPS * cap_gbps)


def with_windows(
    sites: Mapping[str, Site], samples: LinkSamples, rtts_ms: Floats, catalogue: Catalogue
) -> dict[str, Site]:
    """Calibrate each receiver's window by the flows into it, else by others of its type.

    Parameters
    ----------
    sites : mapping
        Of n regions.
    samples : LinkSamples
    rtts_ms : array, shape (n, n)
    catalogue : Catalogue
    """
    counted = samples.counted("per_flow_mbps", rtts_ms)
    listed, rows = list(sites.values()), counted.rows
    src, dst = number_of(rows["src"]), number_of(rows["dst"])
    distances = rtts_ms[src, dst]
    cap_gbps = np.minimum(flow_caps_gbps(listed, catalogue)[src], egress(listed).expected[src])
    cap_gbps = np.minimum(cap_gbps, ingress(listed).expected[dst])
    shows = distances >= CALIBRATION_RTT_MS
    shows &= rows["value"] <= CALIBRATION_SHARE_OF_CAP * (MBPS_PER_GBPS * cap_gbps)
    is_own = counted.groups.spread(own_marks(samples.marks)[counted.marks])[shows]
    steady = steady_values(rows, "per_flow_mbps", rtts_ms)[shows]
    rows, distances, dst = rows[shows], distances[shows], dst[shows]
    windows = steady * distances / MS_PER_S / MBIT_PER_MB
    types = {name: number for number, name in enumerate(dict.fromkeys(s.vm_type for s in listed))}
    of_type = np.array([types[site.vm_type] for site in listed])[dst]

    def own_first(flows: Ints) -> Ints:
        """Return the own prober's of some flows; where there are none, all."""
        own_ones = flows[is_own[flows]]
        return own_ones if len(own_ones) else flows

    into, of_types = _places_by(dst), _places_by(of_type)
    by_type: dict[str, Estimate] = {}
    calibrated = {}
    for number, (name, site) in enumerate(sites.items()):
        if number in into:
            used = own_first(into[number])
            window_mb = _window(windows[used], rows[used], distances[used])
            site = replace(site, window_mb=window_mb)
        elif site.vm_type and types[site.vm_type] in of_types:
            if site.vm_type not in by_type:
                used = own_first(of_types[types[site.vm_type]])
                by_type[site.vm_type] = _window_of_type(site.vm_type, windows[used], rows[used])
            site = replace(site, window_mb=by_type[site.vm_type])
        calibrated[name] = site
    return calibrated


def _places_by(keys: Ints) -> dict[int, Ints]:
    """Return where each key is."""
    order = np.argsort(keys, kind="stable")
    return {int(keys[order[one.start]]): order[one] for one in Groups.of(keys[order])}


def _window(windows_mb: Floats, rows: Rows, rtts_ms: Floats) -> Estimate:
    """Return a receiver's window, about which tests lie by their own noise besides."""
    error = window_error(rtts_ms.tolist())
    expected = median(windows_mb.tolist())
    origin = of_rows(rows, "measured", "flows-into-region")
    return Estimate(expected / (1 + error), expected, expected * (1 + error), origin)


def _window_of_type(vm_type: str, windows_mb: Floats, rows: Rows) -> Estimate:
    bounds = bounds_of(windows_mb.tolist(), WINDOW_SPREAD_OF_TYPE)
    origin = of_rows(rows, "inferred", "flows-into-vm-type", Figures(vm_type=vm_type))
    return no_surer_than(Estimate(*bounds, origin), WINDOW_SPREAD_OF_TYPE)
