"""A site's caps and window: measured, or as measured on other VMs of its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.model.baseline import CAP_ERROR, flow_cap_gbps, within
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link import Site
from planner.model.throughput import window_from_flow_mb
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import window_error
from probes.estimation.aggregates import AggregateTests
from probes.estimation.agreement import is_own
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
    tests: Mapping[Pair, AggregateTests],
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
    most_out, most_in = most_carried(tests)
    capped = {}
    for name, site in sites.items():
        stated_out, stated_in = map(_stated, stated_gbps.get(name, (None, None)))
        out = measured_out.of.get(name) or stated_out or measured_out.of.get(site.vm_type)
        into = measured_in.of.get(name) or stated_in or measured_in.of.get(site.vm_type)
        capped[name] = replace(
            site,
            egress_gbps=_raised(
                out or site.egress_gbps, measured_out.at_least.get(name), most_out.get(name), tests
            ),
            ingress_gbps=_raised(
                into or site.ingress_gbps, measured_in.at_least.get(name), most_in.get(name), tests
            ),
        )
    return capped


@dataclass(slots=True)
class Carried:
    """What measured links carried out of a VM, or into it.

    Attributes
    ----------
    sure : Pair | None
        The link that carried most of those that its cap can't be below.
    most : Pair
        The link that carried most of all, which one short test may have found by mistake.
    """

    sure: Pair | None
    most: Pair


def most_carried(
    tests: Mapping[Pair, AggregateTests],
) -> tuple[dict[str, Carried], dict[str, Carried]]:
    """Return which measured links carried most out of each region, and into it.

    A link of which there is one short test alone is sure only if another carried as much. The most
    of many such tests would be the luckiest of them, and a cap is shared by all paths of a plan.
    """
    out: dict[str, Carried] = {}
    into: dict[str, Carried] = {}
    by_own = tuple(
        {pair[end] for pair, of_link in tests.items() if is_own(of_link.alone.origin)}
        for end in (0, 1)
    )
    for pair, of_link in sorted(tests.items(), key=lambda item: -item[1].alone.expected):
        own = is_own(of_link.alone.origin)
        for region, most, measured in zip(pair, (out, into), by_own, strict=True):
            if not own and region in measured:
                continue  # what others alone report of one link raises no cap of all
            carried = most.get(region)
            if carried is None:
                most[region] = Carried(None if of_link.is_lone else pair, pair)
            elif carried.sure is None:
                carried.sure = pair
    return out, into


def _carried_by(pair: Pair, tests: Mapping[Pair, AggregateTests]) -> Estimate:
    alone = tests[pair].alone
    figures = Figures(between=pair)
    return replace(alone, origin=alone.origin._replace(method="link-above-cap", figures=figures))


def _raised(
    cap: Estimate,
    at_least: Estimate | None,
    carried: Carried | None,
    tests: Mapping[Pair, AggregateTests],
) -> Estimate:
    """Return a cap, or the last of what was carried that exceeds it."""
    method = cap.origin.method
    sure = _carried_by(carried.sure, tests) if carried and carried.sure else None
    for least in (at_least, sure):
        if least and least.expected > cap.expected:
            figures = (least.origin.figures or Figures())._replace(raised_from=method)
            cap = replace(least, origin=least.origin._replace(figures=figures))
    if carried:
        cap = replace(cap, high=max(cap.high, tests[carried.most].alone.expected))
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
    by_region: dict[str, list[_WindowShown]] = defaultdict(list)
    by_type: dict[str, list[_WindowShown]] = defaultdict(list)
    for (src, dst), series in samples.of("per_flow_mbps").items():
        rtt = rtts_ms.get((src, dst))
        most_mbps = most_calibrating_mbps(sites[src], sites[dst], rtt, catalogue)
        if rtt is None or most_mbps is None:
            continue
        used = counted("per_flow_mbps", series, sites, rtt)
        for sample in used.samples:
            if sample.value > most_mbps:
                continue
            duration_s = None if sample.warmed_up else sample.duration_s
            window = window_from_flow_mb(sample.value, rtt.expected, duration_s)
            flow = _WindowShown((window, sample), rtt.expected, not used.reported_by)
            by_region[dst].append(flow)
            by_type[sites[dst].vm_type].append(flow)
    calibrated = {}
    for name, site in sites.items():
        if name in by_region:
            flows = _own_first(by_region[name])
            window_mb = _window([flow.value for flow in flows], [flow.rtt_ms for flow in flows])
            site = replace(site, window_mb=window_mb)
        elif site.vm_type and site.vm_type in by_type:
            estimate = from_values(
                [flow.value for flow in _own_first(by_type[site.vm_type])],
                WINDOW_SPREAD_OF_TYPE,
                "inferred",
                "flows-into-vm-type",
                figures=Figures(vm_type=site.vm_type),
            )
            site = replace(site, window_mb=no_surer_than(estimate, WINDOW_SPREAD_OF_TYPE))
        calibrated[name] = site
    return calibrated


class _WindowShown(NamedTuple):
    """The window that one flow shows, over its round-trip time; whether the own prober saw it."""

    value: Value
    rtt_ms: float
    is_own: bool


def _own_first(flows: list[_WindowShown]) -> list[_WindowShown]:
    return [flow for flow in flows if flow.is_own] or flows


def _window(values: list[Value], rtts_ms: list[float]) -> Estimate:
    """Return a receiver's window, about which tests lie by their own noise besides."""
    error = window_error(rtts_ms)
    origin = origin_of_samples([sample for _, sample in values], "measured", "flows-into-region")
    expected = median(window for window, _ in values)
    return Estimate(expected / (1 + error), expected, expected * (1 + error), origin)
