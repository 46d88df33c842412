"""Links over one kind of address, and those of both kinds together.

A sample over private addresses does not count for public ones, with paths and caps of their own.
To estimate links over private addresses, the caps of these stand in for a site's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from math import log

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, AddressKind, Origin
from planner.model.link import LIMITED_BY, Site
from planner.model.link_array import (
    KINDS,
    LinkArray,
    Origins,
    limits_of,
    slow_connections_of,
    taken,
)
from planner.model.network import Network
from planner.model.throughput import LAW_CONNECTIONS, MOST_TOLD, log_odds_slow, with_odds
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.agreement import figures_with
from probes.estimation.estimates import (
    EstimateArray,
    are_known,
    are_of,
    inferred_by,
    least_caps,
    no_estimates,
    with_bounds,
)
from probes.estimation.groups import Bools, Floats, Ints
from probes.estimation.laws import MeasuredLaw
from probes.estimation.link_samples import CountedSamples, LinkSamples, ends_of
from probes.estimation.measurements import (
    AggregateTests,
    MeasuredFlows,
    Pairs,
    flows_of_windows,
    losses_pct,
    ramped_links,
)
from probes.metrics import Metric

# Of a measured link between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = 5.0, 100.0, 400.0
LOCATION_UNKNOWN = Origin("baseline", "location-unknown")
NOT_OPENED = -1
"""Connections of a link whose aggregate was not measured."""


def links_of(
    sites: Mapping[str, Site],
    typed: Mapping[str, Site],
    samples: LinkSamples,
    rtts_ms: EstimateArray,
    measured: MeasuredFlows,
    tests: AggregateTests,
) -> LinkArray:
    """Return all links that have an estimate.

    Parameters
    ----------
    sites, typed : mapping
        N sites, with caps measured where they were, and with those of their VM types.
    samples : LinkSamples
        All of them, of which losses are told, and what waits for a second source.
    rtts_ms : EstimateArray, shape (n, n)
        NaN between no known places.
    measured, tests
        Single flows and aggregates of links that were measured.
    """
    origins, shape, was_known = samples.origins, rtts_ms.shape, are_known(rtts_ms)
    has_flow, is_tested, is_saturated, is_growing = np.zeros((4, *shape), np.bool_)
    saturated, growing = ramped_links(samples)
    has_flow[measured.pairs] = is_tested[tests.pairs] = True
    is_saturated[saturated] = is_growing[growing] = True
    no_place = with_bounds(no_estimates(1), *RTT_OF_NO_PLACE, origins.number_of(LOCATION_UNKNOWN))
    rtts_ms = np.where((is_tested | has_flow) & ~was_known, no_place, rtts_ms)
    # One flow by the window of its receiver, in Mbit/s; many connections in Gbit/s.
    flows = flows_of_windows(sites, samples, rtts_ms, measured, was_known)
    flows[measured.pairs] = measured.mbps
    opened, priors = np.full(shape, NOT_OPENED), np.full((4, *shape), np.nan)
    opened[tests.pairs] = tests.connections
    # Windows limit only connections of a known number: the tests', or as many as laws are of.
    windows, counts = taken(flows), np.where(opened > 0, opened, np.nan)
    counts[opened == NOT_OPENED] = LAW_CONNECTIONS
    for bound in BOUNDS:
        windows[bound] *= counts / MBPS_PER_GBPS
    law = MeasuredLaw(sites, typed, windows, rtts_ms, samples, tests)
    aggregates = law.unmeasured(are_known(rtts_ms) & ~is_tested)
    aggregates[tests.pairs], priors[:, *tests.pairs] = law.measured()
    # Without a VM type there is no law, and no estimate.
    known, in_flows = are_known(aggregates), has_flow.any(axis=0) | has_flow.any(axis=1)
    present = are_known(rtts_ms) & (known | in_flows[:, None] | in_flows)
    present &= is_tested | has_flow | ~law.at_border
    np.fill_diagonal(present, val=False)
    src, dst = np.nonzero(present)
    ends, caps = (src, dst), least_caps(sites.values())
    told = _told_by_transfers(samples.transfers(), aggregates, flows, opened, caps["expected"])
    flows = _within_aggregates(flows, aggregates, opened, present & ~has_flow, is_growing, origins)
    alone = present & ~known
    aggregates[alone] = _of_one_flow(flows[alone], origins)
    windows["expected"][~known] = np.nan
    limits = limits_of(aggregates, caps, windows)
    limits[is_saturated & (limits != LIMITED_BY.index("vm"))] = LIMITED_BY.index("path")
    slow = _slow_connections(list(sites), ends, limits[ends], is_growing[ends], told[ends])
    slow[has_flow[ends]] = 0.0  # a connection is known to be as fast as it is
    figures: dict[Metric, EstimateArray] = {
        "rtt_ms": rtts_ms,
        "per_flow_mbps": flows,
        "aggregate_mbps": aggregates,
    }
    of_links = [
        taken(_marked(one, samples.counted(metric), present, origins), ends)
        for metric, one in figures.items()
    ]
    others = [one[ends] for one in (losses_pct(samples), *priors)]
    of_address = np.full(len(slow), ADDRESS_KINDS.index(samples.address))
    others += [slow, limits[ends], of_address]
    return LinkArray.of_figures(list(sites), origins, ends, of_links, others)


def _told_by_transfers(
    transfers: CountedSamples,
    rates: EstimateArray,
    flows: EstimateArray,
    opened: Ints,
    caps: Floats,
) -> Floats:
    """Return by how much transfers make slow connections likelier, (n, n): logarithms of odds.

    A transfer with other connections than the link's tests carries what these did if the path ends
    there, and a share by connection if each is slow.
    """
    rows, told = transfers.rows, np.zeros(opened.shape)
    pairs = ends_of(rows)
    count, level = rows["connections"].astype(np.float64), rates["expected"][pairs]
    most = np.minimum(count * flows["expected"][pairs] / MBPS_PER_GBPS, caps[pairs])
    if_slow = np.minimum(most, level * count / np.maximum(opened[pairs], 1))
    logs = log_odds_slow(rows["value"] / MBPS_PER_GBPS, if_slow, np.minimum(most, level))
    logs = transfers.groups.reduced(np.add, np.where(opened[pairs] > 0, logs, 0.0))
    told[transfers.ends] = np.clip(logs, -log(MOST_TOLD), log(MOST_TOLD))
    return told


def _slow_connections(
    names: list[str], ends: Pairs, limits: np.ndarray, growing: Bools, told: Floats
) -> Floats:
    """Return the probabilities that links' connections are slow, as far as was shown.

    What ramps, and transfers, of a class showed is the sample of a beta distribution about ours.
    What transfers over a link told counts for the class as the part of a ramp that it is sure.
    """
    is_path, is_unknown = (limits == LIMITED_BY.index(name) for name in ("path", "unknown"))
    growing = growing & is_unknown
    share = np.where(is_unknown & ~growing, told, 0.0) / log(MOST_TOLD)
    slow, ended = growing + np.maximum(share, 0.0), is_path + np.maximum(-share, 0.0)
    shown: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for at in np.flatnonzero(slow + ended).tolist():
        pair = tuple(names[end[at]].partition(":")[0] for end in ends)
        shown[pair] = shown[pair][0] + slow[at], shown[pair][1] + ended[at]
    found = with_odds(slow_connections_of(names, ends, limits, shown), told)
    return np.where(growing, 1.0, found)


def _marked(
    estimates: EstimateArray, counted: CountedSamples, present: Bools, origins: Origins
) -> EstimateArray:
    """Return estimates that say which samples of their link wait, and how transfers were read."""
    found = estimates.copy()
    for (i, j), mark in counted.waiting().items():
        if present[i, j]:
            origin = origins.all[found["origin"][i, j]]
            waiting = origin._replace(figures=figures_with(origin.figures, mark))
            found["origin"][i, j] = origins.number_of(waiting)
    return found


def _within_aggregates(
    flow: EstimateArray,
    aggregate: EstimateArray,
    opened: Ints,
    inferred: Bools,
    growing: Bools,
    origins: Origins,
) -> EstimateArray:
    """Return single flows, corrected by the measured aggregate of the same link.

    Flows are in Mbit/s by the receiver's window, aggregates in Gbit/s with so many connections
    opened. Inferred flows were not measured; of growing ones the ramp has shown that each is slow.
    """
    is_measured = are_known(aggregate) & are_of("measured", origins, aggregate["origin"])
    at = np.nonzero(inferred & is_measured)
    found, many = flow[at], aggregate[at]
    least, most, highest = (many[bound] * MBPS_PER_GBPS for bound in ("low", "expected", "high"))
    # One of the flows can't carry more than all of them together.
    over = found["expected"] > most
    found["low"][over] = np.minimum(found["low"], most)[over]
    found["high"][over] = np.maximum(most, highest)[over]
    found["expected"][over] = most[over]
    found["origin"][over] = origins.held_to("aggregate", found["origin"][over])
    # k connections carried this much together, so one alone carries at least a k-th.
    count = np.maximum(opened[at], 1)
    more = (opened[at] > 0) & ((most / count > found["expected"]) | growing[at])
    shared = with_bounds(
        many,
        np.where(growing[at], least / count, np.maximum(found["low"], least / count)),
        most / count,
        np.where(growing[at], highest / count, np.maximum(found["high"], highest / count)),
        many["origin"],
    )
    shared["origin"][more] = inferred_by(
        "share-of-aggregate", origins, many["origin"][more], count[more]
    )
    found[more] = shared[more]
    corrected = flow.copy()
    corrected[at] = found
    return corrected


def _of_one_flow(flow: EstimateArray, origins: Origins) -> EstimateArray:
    """Return estimates of many connections where only one was ever measured, in Gbit/s.

    As much as one carries; at most as much as the usual number of them.
    """
    return with_bounds(
        flow,
        flow["low"] / MBPS_PER_GBPS,
        flow["expected"] / MBPS_PER_GBPS,
        flow["high"] * DEFAULT_CONNECTIONS / MBPS_PER_GBPS,
        inferred_by("one-connection", origins, flow["origin"]),
    )


# ---- both kinds of address -----------------------------------------------------------------------


def with_caps_of(sites: Mapping[str, Site], address: AddressKind) -> dict[str, Site]:
    """Return sites whose caps are those of a kind of address."""
    return {
        name: replace(site, egress_gbps=site.egress(address), ingress_gbps=site.ingress(address))
        for name, site in sites.items()
    }


def part_of(network: Network, address: AddressKind) -> Network:
    """Return a network of the links over one kind of address, with the caps of that kind."""
    if address == "public" and not network.others and not network.has_private_links:
        return network
    kind = ADDRESS_KINDS.index(address) + 1
    links, others = (
        found.among(network.sites).where(found.among(network.sites).whole["address"] == kind)
        for found in (network.usual, network.others)
    )
    sites = with_caps_of(network.sites, address)
    return network.with_(sites=sites, links=links.over(others), others=LinkArray())


def joined(public: LinkArray, private: LinkArray) -> tuple[LinkArray, LinkArray]:
    """Return the links in use, and the others of pairs with estimates of both kinds.

    Private ones are in use where their throughput or that of others of their kind was measured:
    then both ends are known to reach each other by them.
    """
    private = private.among(public.regions)
    modelled = private.kinds(private.whole, "aggregate_gbps") == KINDS.index("baseline")
    unused = modelled & public.present
    used = private.present & ~unused
    others = private.where(unused).over(public.where(used))
    return private.where(used).over(public), others


def caps_joined(public: Mapping[str, Site], private: Mapping[str, Site]) -> dict[str, Site]:
    """Return sites with the caps over private addresses that were measured over them."""
    sites = dict(public)
    for name, found in private.items():
        caps = found.egress_gbps, found.ingress_gbps
        if caps != (sites[name].egress_gbps, sites[name].ingress_gbps):
            sites[name] = replace(
                sites[name], private_egress_gbps=caps[0], private_ingress_gbps=caps[1]
            )
    return sites
