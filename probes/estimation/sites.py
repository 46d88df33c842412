"""A site's caps and window: measured, or as measured on other VMs of its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from planner.model.baseline import CAP_ERROR, flow_cap_gbps, within
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link import Site
from planner.model.throughput import window_from_flow_mb
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import window_error
from probes.estimation.bounds import Value, from_values, median, no_surer_than, origin_of_samples
from probes.estimation.caps import measured_caps
from probes.estimation.series import Pair, Samples, counted

WINDOW_SPREAD_OF_TYPE = 0.15
# A flow calibrates the window only where the window limits it: far enough, and below the cap.
CALIBRATION_RTT_MS = 20.0
CALIBRATION_SHARE_OF_CAP = 0.8


def with_caps(
    sites: Mapping[str, Site],
    samples: Samples,
    aggregates: Mapping[Pair, Estimate],
    stated_gbps: Mapping[str, tuple[float | None, float | None]],
    rtts_ms: Mapping[Pair, Estimate],
    catalogue: Catalogue,
) -> dict[str, Site]:
    """Take over measured caps, and raise those that a link has exceeded.

    A VM without a measured cap has the one that was stated for it, else that of others of its
    type.
    """
    calibrated = with_windows(sites, samples, rtts_ms, catalogue)
    measured_out, measured_in = measured_caps(calibrated, samples, rtts_ms)
    most_out, most_in = most_carried(aggregates)
    capped = {}
    for name, site in sites.items():
        stated_out, stated_in = map(_stated, stated_gbps.get(name, (None, None)))
        out = measured_out.of.get(name) or stated_out or measured_out.of.get(site.vm_type)
        into = measured_in.of.get(name) or stated_in or measured_in.of.get(site.vm_type)
        capped[name] = replace(
            site,
            egress_gbps=_raised(
                out or site.egress_gbps, measured_out.at_least.get(name), most_out.get(name)
            ),
            ingress_gbps=_raised(
                into or site.ingress_gbps, measured_in.at_least.get(name), most_in.get(name)
            ),
        )
    return capped


def most_carried(
    aggregates: Mapping[Pair, Estimate],
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the most that a measured link carried out of each region, and into it."""
    out: dict[str, Estimate] = {}
    into: dict[str, Estimate] = {}
    for pair, estimate in aggregates.items():
        for region, most in zip(pair, (out, into), strict=True):
            if region not in most or estimate.expected > most[region].expected:
                figures = Figures(between=pair)
                origin = estimate.origin._replace(method="link-above-cap", figures=figures)
                most[region] = replace(estimate, origin=origin)
    return out, into


def _raised(cap: Estimate, *least: Estimate | None) -> Estimate:
    """Return a cap, or the last of what was carried that exceeds it."""
    method = cap.origin.method
    for carried in least:
        if carried and carried.expected > cap.expected:
            figures = (carried.origin.figures or Figures())._replace(raised_from=method)
            cap = replace(carried, origin=carried.origin._replace(figures=figures))
    return cap


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
    sites: Mapping[str, Site],
    samples: Samples,
    rtts_ms: Mapping[Pair, Estimate],
    catalogue: Catalogue,
) -> dict[str, Site]:
    """Calibrate each receiver's window by the flows into it, else by others of its type."""
    by_region: dict[str, list[Value]] = defaultdict(list)
    by_type: dict[str, list[Value]] = defaultdict(list)
    distances: dict[str, list[float]] = defaultdict(list)
    for (src, dst), series in samples.of("per_flow_mbps").items():
        rtt = rtts_ms.get((src, dst))
        most_mbps = most_calibrating_mbps(sites[src], sites[dst], rtt, catalogue)
        if rtt is None or most_mbps is None:
            continue
        for sample in counted("per_flow_mbps", series, sites):
            if sample.value > most_mbps:
                continue
            duration_s = None if sample.warmed_up else sample.duration_s
            window = window_from_flow_mb(sample.value, rtt.expected, duration_s)
            by_region[dst].append((window, sample))
            distances[dst].append(rtt.expected)
            by_type[sites[dst].vm_type].append((window, sample))
    calibrated = {}
    for name, site in sites.items():
        if name in by_region:
            site = replace(site, window_mb=_window(by_region[name], distances[name]))
        elif site.vm_type and site.vm_type in by_type:
            estimate = from_values(
                by_type[site.vm_type],
                WINDOW_SPREAD_OF_TYPE,
                "inferred",
                "flows-into-vm-type",
                figures=Figures(vm_type=site.vm_type),
            )
            site = replace(site, window_mb=no_surer_than(estimate, WINDOW_SPREAD_OF_TYPE))
        calibrated[name] = site
    return calibrated


def _window(values: list[Value], rtts_ms: list[float]) -> Estimate:
    """Return a receiver's window, about which tests lie by their own noise besides."""
    error = window_error(rtts_ms)
    origin = origin_of_samples([sample for _, sample in values], "measured", "flows-into-region")
    expected = median(window for window, _ in values)
    return Estimate(expected / (1 + error), expected, expected * (1 + error), origin)
