"""What one flow of a link carries: measured, or from the receiver's window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.baseline import CAP_ERROR, flow_cap_gbps, flow_estimate
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, HeldTo, Kind, Origin
from planner.model.link import Site
from planner.model.throughput import flow_share_of_steady, window_from_flow_mb
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.spreads import FlowSpreads, spread_by
from probes.estimation.agreement import figures_with, own_first
from probes.estimation.bounds import of_flows
from probes.estimation.series import Pair, Samples, counted


def measured_flows(
    sites: Mapping[str, Site], samples: Samples, rtts_ms: Mapping[Pair, Estimate]
) -> dict[Pair, Estimate]:
    """Return the steady throughput of one flow in Mbit/s, where measured."""
    flows = {}
    for pair, series in samples.of("per_flow_mbps").items():
        rtt = rtts_ms.get(pair)
        values = []
        used = counted("per_flow_mbps", series, sites, rtt)
        for sample in used.samples:
            value = sample.value
            if rtt and not sample.warmed_up and sample.duration_s:
                window = window_from_flow_mb(value, rtt.expected, sample.duration_s)
                value /= flow_share_of_steady(window, rtt.expected, sample.duration_s)
            values.append((value, sample))
        if values:
            flows[pair] = of_flows(values, figures_with(None, used, mixed=samples.is_mixed))
    return flows


def aggregate_of_flow(flow_mbps: Estimate) -> Estimate:
    """Return what is known of many connections, in Gbit/s, where only one was ever measured.

    As much as one carries; at most as much as the usual number of them.
    """
    return Estimate(
        flow_mbps.low / MBPS_PER_GBPS,
        flow_mbps.expected / MBPS_PER_GBPS,
        flow_mbps.high * DEFAULT_CONNECTIONS / MBPS_PER_GBPS,
        flow_mbps.origin._replace(kind="inferred", method="one-connection", figures=None),
    )


def flow_spreads(
    flows: Mapping[Pair, Estimate],
    sites: Mapping[str, Site],
    rtts_ms: Mapping[Pair, Estimate],
    catalogue: Catalogue,
) -> FlowSpreads:
    """Return how measured flows lie about what the windows of their receivers' VM types promise."""
    ratios = []
    for (src, dst), flow in own_first(flows.items(), lambda item: item[1].origin):
        rtt_ms = rtts_ms.get((src, dst))
        if rtt_ms is not None and flow.expected > 0:
            promised = flow_of_window(sites[src], sites[dst], rtt_ms, catalogue, FlowSpreads())
            ratio = log(flow.expected / promised.expected)
            ratios.append((sites[dst].vm_type, rtt_ms.expected, ratio))
    return FlowSpreads(ratios)


def flow_of_window(
    source: Site, destination: Site, rtt_ms: Estimate, catalogue: Catalogue, spreads: FlowSpreads
) -> Estimate:
    """Return one flow's throughput in Mbit/s from the receiver's window and the VMs' caps.

    Parameters
    ----------
    source, destination : Site
        With their windows calibrated.
    rtt_ms : Estimate
        Of the link.
    catalogue : Catalogue
    spreads : FlowSpreads
        Of tests about what windows promise.
    """
    window = destination.window_mb
    modelled = window.source == "baseline" and rtt_ms.source != "measured"
    kind: Kind = "baseline" if modelled else "inferred"
    estimate = flow_estimate(window, rtt_ms, flow_cap_gbps(source, catalogue), kind)
    if window.source != "baseline":  # the bounds of a window that nobody saw hold all tests
        estimate = spread_by(estimate, spreads.of(destination.vm_type, rtt_ms.expected))
    cap_mbps = MBPS_PER_GBPS * min(source.egress_gbps.expected, destination.ingress_gbps.expected)
    if estimate.expected > cap_mbps:
        # The VMs' caps hold for one flow as for many.
        estimate = replace(
            estimate,
            low=min(estimate.low, cap_mbps * (1 - CAP_ERROR)),
            expected=cap_mbps,
            high=max(cap_mbps, min(estimate.high, cap_mbps * (1 + CAP_ERROR))),
            origin=_held_to("vm-caps", estimate.origin),
        )
    return estimate


def inferred_flow(estimate: Estimate, aggregate: Estimate, connections: int | None) -> Estimate:
    """Return one flow's throughput in Mbit/s from the window and from what many flows carried.

    Parameters
    ----------
    estimate : Estimate
        By the receiver's window: :func:`flow_of_window`.
    aggregate : Estimate
        Of the link.
    connections : int | None
        With which the aggregate was measured, if it was.
    """
    if aggregate.source != "measured":
        return estimate
    most_mbps = aggregate.expected * MBPS_PER_GBPS
    if estimate.expected > most_mbps:
        # One of the flows can't carry more than all of them together.
        estimate = replace(
            estimate,
            low=min(estimate.low, most_mbps),
            expected=most_mbps,
            high=max(most_mbps, aggregate.high * MBPS_PER_GBPS),
            origin=_held_to("aggregate", estimate.origin),
        )
    if not connections:
        return estimate
    # k connections together carried this much, so one alone carries at least a k-th.
    least_mbps = most_mbps / connections
    if least_mbps <= estimate.expected:
        return estimate
    return Estimate(
        max(estimate.low, aggregate.low * MBPS_PER_GBPS / connections),
        least_mbps,
        max(estimate.high, aggregate.high * MBPS_PER_GBPS / connections),
        aggregate.origin._replace(
            kind="inferred", method="share-of-aggregate", figures=Figures(connections=connections)
        ),
    )


def _held_to(limit: HeldTo, origin: Origin) -> Origin:
    return origin._replace(figures=(origin.figures or Figures())._replace(held_to=limit))
