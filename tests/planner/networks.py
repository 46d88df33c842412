"""Networks of stated links, for tests: what is a number is known exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.model.estimate import Estimate, exactly
from planner.model.link import Link, Site
from planner.model.network import Network

Figure = float | Estimate
Pair = tuple[str, str]


def figure(value: Figure) -> Estimate:
    return value if isinstance(value, Estimate) else exactly(value)


def stated_network(
    rates_gbps: Mapping[Pair, Figure],
    *,
    cap_gbps: Figure = 100.0,
    rtt_ms: Figure = 50.0,
    flow_mbps: Figure = 1e5,
    links: Mapping[Pair, Mapping[str, Any]] | None = None,
    sites: Mapping[str, Mapping[str, Any]] | None = None,
) -> Network:
    """Return a network whose links carry these rates, its sites in the order in which they come.

    `links` and `sites` name fields in which some of them are unlike the others.
    """
    names = dict.fromkeys(end for pair in rates_gbps for end in pair)
    cap, rtt, flow = figure(cap_gbps), figure(rtt_ms), figure(flow_mbps)
    found: dict[str, dict[str, Link]] = {name: {} for name in names}
    for pair, rate in rates_gbps.items():
        link = Link(*pair, rtt, flow, figure(rate))
        found[pair[0]][pair[1]] = replace(link, **(links or {}).get(pair, {}))
    of_all = {name: Site(name, "", cap, cap, exactly(3.0)) for name in names}
    unlike = {name: replace(of_all[name], **fields) for name, fields in (sites or {}).items()}
    return Network({**of_all, **unlike}, found)


def with_link(network: Network, src: str, dst: str, **figures: Any) -> Network:
    """Return a network of which one link has other figures."""
    links = {a: dict(row) for a, row in network.usual.items()}
    links[src][dst] = replace(links[src][dst], **figures)
    return network.with_(links=links)
