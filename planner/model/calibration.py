"""Links as what runs of plans have shown lets them stand.

Samples of links correct estimates. That a relayed path carries what its links promise is more: it
narrows the bounds of its links for plans between the same ends. A path that fell short is expected
to carry again what it did, and may carry what its links promise. With fewer connections than its
links were measured with, it also tells the two readings of a slow link apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from planner.model.answer import Bounded
from planner.model.baseline.modelled_links import least_cap
from planner.model.estimate import BOUNDS, SECONDS_PER_DAY, Estimate, Origin, Prior
from planner.model.link import Link
from planner.model.link_states import Pair
from planner.model.network import Network
from planner.model.throughput import log_odds_slow, with_odds
from planner.model.units import MBPS_PER_GBPS
from planner.model.verification import MEASURING_ERROR, Verified, VerifiedPath

COUNTS_FOR_S = 30 * SECONDS_PER_DAY
"""An older verification says no more than estimates do, which forget older samples too."""


def calibrated(network: Network, verified: Verified, now_s: float) -> Network:
    """Return the network for plans between two regions that a verification has been made of.

    Links into and out of relays that were run get the bounds that this allows. The network is good
    for plans between these two ends alone: what a path showed is not shared out over its links.
    """
    links, changed = network.usual, dict[Pair, Link]()
    for path in verified.paths:
        if now_s - path.at_s > COUNTS_FOR_S or len(path.regions) != 3:
            continue
        pairs = list(pairwise(path.regions))
        found = [changed.get(pair) or links.link(*pair) for pair in pairs]
        kept = [link for link in found if link is not None and link.rate_gbps(path.connections) > 0]
        if len(kept) == len(pairs):
            changed |= {(link.src, link.dst): link for link in _of_path(kept, path, now_s)}
    pair = (verified.src, verified.dst)
    links = links.with_links(changed.values()) if changed else links
    return network.with_(links=links, verified={**network.verified, pair: verified})


def with_links_at(share: Bounded, network: Network, pairs: Iterable[Pair]) -> Network:
    """Return the network with some links at a share of the rate that one VM pair has on them.

    The share is what transfers over them are to expect over what they should by estimates.
    """
    changed = []
    for src, dst in pairs:
        link = network.usual.link(src, dst)
        if link is None:
            continue
        cap = least_cap(network.sites[src], network.sites[dst], link.address)
        aggregate, flow = link.aggregate_gbps, link.per_flow_mbps
        rate_gbps = min(aggregate.expected, cap.expected)
        aggregate = replace(aggregate, **{b: rate_gbps * getattr(share, b) for b in BOUNDS})
        flow = replace(flow, **{b: flow.expected * getattr(share, b) for b in BOUNDS})
        changed.append(replace(link, aggregate_gbps=aggregate, per_flow_mbps=flow))
    return network.with_(links=network.usual.with_links(changed))


def _of_path(links: list[Link], path: VerifiedPath, now_s: float) -> list[Link]:
    """Return the links of a path with the bounds that its verification allows."""
    count, achieved = path.connections, path.achieved_gbps
    binding = min(links, key=lambda link: link.rate_gbps(count))
    error = _error_now(binding.aggregate_gbps.prior, path.at_s, now_s)
    low, high = binding.rate_gbps(count, "low"), binding.rate_gbps(count, "high")
    newest_s = max((link.aggregate_gbps.measured_at_s or 0.0) for link in links)
    if not low / (1 + error) <= achieved <= high * (1 + error) and newest_s > path.at_s:
        return links  # its links have been measured since, and are no longer what they were
    changed = []
    for link in _of_readings(links, path):
        low, expected, high = (link.rate_gbps(count, bound) for bound in BOUNDS)
        shown_low = min(expected, achieved / (1 + error))
        new_low, new_high = max(low, shown_low), max(high, achieved)
        if link is binding:
            if achieved < low:
                new_low = shown_low
            shown_high = max(expected, achieved) * (1 + error)
            new_high = shown_high if achieved > high else min(high, shown_high)
        link = _bounded(link, count, new_low, new_high)
        if new_low < low:  # it is expected to carry less
            aggregate, flow = link.aggregate_gbps, link.per_flow_mbps
            if count * flow.expected < aggregate.expected * MBPS_PER_GBPS:
                flow = replace(flow, expected=achieved * MBPS_PER_GBPS / count)
            else:
                aggregate = replace(aggregate, expected=achieved)
            link = replace(link, aggregate_gbps=aggregate, per_flow_mbps=flow)
        changed.append(link)
    return changed


def _of_readings(links: list[Link], path: VerifiedPath) -> list[Link]:
    """Return links with the probability that their connections are slow, after a run."""
    count, found = path.connections, []
    if_ended = min(link.rate_gbps(count) for link in links)
    for link in links:
        if link.slow_connections and path.achieved_gbps > 0:
            if_slow = min(if_ended, count * link.slow_gbps)
            told = log_odds_slow(path.achieved_gbps, if_slow, if_ended)
            posterior = with_odds(link.slow_connections, told).item()
            link = replace(link, slow_connections=posterior)
        found.append(link)
    return found


def _error_now(prior: Prior | None, at_s: float, now_s: float) -> float:
    """Return the relative error of what one run showed, as it ages with the link that it is of."""
    about_one = prior and Prior(
        prior.low / prior.expected, 1.0, prior.high / prior.expected, prior.memory_years
    )
    origin = Origin("measured", newest_s=at_s)
    run = Estimate(1 / (1 + MEASURING_ERROR), 1.0, 1 + MEASURING_ERROR, origin, about_one)
    run = run.aged(now_s)
    return max(1 / run.low, run.high) - 1


def _bounded(link: Link, connections: int, low_gbps: float, high_gbps: float) -> Link:
    """Return a link that carries so much at its bounds with so many connections."""
    aggregate, flow = link.aggregate_gbps, link.per_flow_mbps
    low_mbps, high_mbps = (gbps * MBPS_PER_GBPS / connections for gbps in (low_gbps, high_gbps))
    was_low, was_high = link.rate_gbps(connections, "low"), link.rate_gbps(connections, "high")
    # What fell short, or had no more to give, is the limit: the windows, or all else.
    windows = connections * flow.expected < aggregate.expected * MBPS_PER_GBPS
    if low_gbps < was_low:
        if windows:
            flow = _low(flow, low_mbps)
        else:
            aggregate, flow = _low(aggregate, low_gbps), _low(flow, max(low_mbps, flow.low))
    elif low_gbps > was_low:
        aggregate = _low(aggregate, max(low_gbps, aggregate.low))
        flow = _low(flow, max(low_mbps, flow.low))
    if high_gbps > was_high:
        aggregate = _high(aggregate, max(high_gbps, aggregate.high))
        flow = _high(flow, max(high_mbps, flow.high))
    elif high_gbps < was_high:
        if windows:
            flow = _high(flow, high_mbps)
        else:
            aggregate = _high(aggregate, high_gbps)
    return replace(link, aggregate_gbps=aggregate, per_flow_mbps=flow)


def _low(estimate: Estimate, value: float) -> Estimate:
    return replace(estimate, low=min(value, estimate.expected))


def _high(estimate: Estimate, value: float) -> Estimate:
    return replace(estimate, high=max(value, estimate.expected))
