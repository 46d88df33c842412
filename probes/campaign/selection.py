"""Chooses the links to measure, so that decisions come out right for little money.

The order of a campaign: round-trip times, :func:`per_flow_tasks`, :func:`cap_tasks`, then
:func:`choose_links` again and again, each time with the network estimated from the samples so far.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from math import ceil, inf, isfinite
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.model.errors import DataError
from planner.model.estimate import Bound
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE
from probes.campaign.costing import UNLIMITED, Allowance, Price
from probes.campaign.regret import RateMatrices, expected_regret
from probes.campaign.tasks import ProbeTask

# Where one flow shows the receiver's window: far enough to be limited by it, near enough for
# many round trips in a short test.
NEAREST_MS, FARTHEST_MS = 60.0, 250.0
PROBES_OF_TYPE = 3
# A cap probe asks for so much more than the cap, with at least so many connections a peer, from
# peers that promise almost as much as the best.
OVERLOAD = 3.0
LEAST_CONNECTIONS = 16
ALMOST = 0.9
# Where every VM is probed, peers are as few as promise so many times the cap, and each use of a
# peer makes it so much farther away: the fewer and the more even, the fewer rounds.
ENOUGH = 1.3
FEWEST_PEERS, MOST_PEERS = 2, 4
CAPS_S = 6.0
USE_MS = 24.0
LEAST_PART = 1e-6  # links without a fee still take time
Pair: TypeAlias = tuple[str, str]


class Choice(NamedTuple):
    """The next links to measure."""

    tasks: list[ProbeTask]  # best first; empty when it is time to stop
    reason: str  # the reason to go on or to stop, as a clause


def first_hosts(region_of: Mapping[str, str]) -> dict[str, str]:
    """Return each region's first host."""
    return {region: host for host, region in reversed(list(region_of.items()))}


def _by_type(region_of: Mapping[str, str], network: Network) -> list[list[str]]:
    """Return the hosts of each VM type, without those of regions that have no measurement yet."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, region in region_of.items():
        if region in network.sites:
            hosts[network.sites[region].vm_type].append(host)
    return list(hosts.values())


def per_flow_tasks(
    region_of: Mapping[str, str], network: Network, *, duration_s: float = 10.0
) -> list[ProbeTask]:
    """Return a few single-connection probes for each type of receiver, at RTT 60 to 250 ms.

    Where no sender is at such a distance, the farthest there is. Receivers and senders of one
    type are taken in turn, so that one odd host does not decide alone. `region_of` is host to
    region; the network has the round-trip times found so far.
    """
    tasks = []
    uses: Counter[str] = Counter()
    for receivers in _by_type(region_of, network):
        for turn in range(PROBES_OF_TYPE):
            receiver = receivers[turn % len(receivers)]
            links = [
                (sender, link)
                for sender, region in region_of.items()
                if (link := network.links.get(region, {}).get(region_of[receiver]))
            ]
            if not links:
                continue
            fitting = [
                item for item in links if NEAREST_MS <= item[1].rtt_ms.expected <= FARTHEST_MS
            ] or [max(links, key=lambda item: item[1].rtt_ms.expected)]
            sender, link = min(fitting, key=lambda item: (uses[item[0]], item[0]))
            uses[sender] += 1
            task = ProbeTask("per-flow", ((sender, receiver),), 1, duration_s, link.rate_gbps(1))
            if task not in tasks:
                tasks.append(task)
    return tasks


def cap_tasks(
    region_of: Mapping[str, str], network: Network, *, every: bool = False, connections: int = 64
) -> list[ProbeTask]:
    """Return one-to-many and many-to-one probes, for one host of each VM type or for all.

    Peers are the nearest of those whose links promise most, so that together they can exceed the
    cap with few connections: :data:`OVERLOAD` times what fills it, were it for windows alone.
    With `every` host probed, by the measured rates of all links, they are the fewest that do, in
    turn. `connections` are the most to each peer.
    """
    tasks = []
    uses: Counter[str] = Counter()
    for hosts in _by_type(region_of, network):
        for host, outwards in product(hosts if every else hosts[:1], (True, False)):
            site = network.sites[region_of[host]]
            cap = site.egress_gbps if outwards else site.ingress_gbps
            bound: Bound = "low" if every else "expected"
            links = {}
            for peer in region_of:
                pair = (host, peer) if outwards else (peer, host)
                src, dst = region_of[pair[0]], region_of[pair[1]]
                if src != dst and (link := network.links.get(src, {}).get(dst)):
                    links[pair] = link
            gbps = {pair: link.rate_gbps(connections, bound) for pair, link in links.items()}
            rtt_ms = {
                pair: link.rtt_ms.expected + USE_MS * uses[pair[1 if outwards else 0]]
                for pair, link in links.items()
            }
            pairs = _chosen_pairs(gbps, rtt_ms, ENOUGH * cap.expected if every else inf)
            if len(pairs) < FEWEST_PEERS:
                continue  # one link alone does not distinguish a cap from a path
            uses.update(pair[1 if outwards else 0] for pair in pairs)
            flows_gbps = sum(links[pair].rate_gbps(1, "low") for pair in pairs)
            needed = ceil(OVERLOAD * cap.expected / flows_gbps) if flows_gbps else connections
            each = min(connections, max(LEAST_CONNECTIONS, needed))
            expected = min(sum(links[pair].rate_gbps(each) for pair in pairs), cap.expected)
            tasks.append(ProbeTask("caps", tuple(pairs), each, CAPS_S, expected))
    return tasks


def _chosen_pairs(
    gbps: Mapping[Pair, float], rtt_ms: Mapping[Pair, float], enough_gbps: float
) -> list[Pair]:
    """Return as few of the best pairs as promise a rate together, near ones first."""
    chosen: list[Pair] = []
    left = set(gbps)
    while left and len(chosen) < MOST_PEERS:
        if len(chosen) >= FEWEST_PEERS and sum(gbps[pair] for pair in chosen) >= enough_gbps:
            break
        least = min(enough_gbps / FEWEST_PEERS, ALMOST * max(gbps[pair] for pair in left))
        good = (pair for pair in left if gbps[pair] >= least)
        chosen.append(min(good, key=lambda pair: (rtt_ms[pair], pair)))
        left.remove(chosen[-1])
    return chosen


def choose_links(
    region_of: Mapping[str, str],
    network: Network,
    price: Price,
    *,
    allowance: Allowance = UNLIMITED,
    threshold: float = 0.01,
    batch: int = 20,
    batch_of_host: int = 2,
    connections: int = 64,
    duration_s: float = 5.0,
) -> Choice:
    """Return the links whose measurement is expected to save most regret for its cost.

    The cost is its part of the allowance, in dollars or in bytes, whichever is the larger; where
    bytes are not limited, dollars. All tasks together keep to the allowance. There are none once
    the expected regret is below the threshold; at most `batch`, because each batch changes what
    the next should be, and `batch_of_host` with one host, which runs them in turn, and with much
    the same results.
    """
    hosts_of = first_hosts(region_of)
    regions = [region for region in network.sites if region in hosts_of]
    rates = RateMatrices.of(network, regions, connections)
    regret, saving = expected_regret(rates)
    if regret < threshold:
        return Choice([], f"the expected regret of {regret:.1%} is low enough")
    offers = []
    for i, j in np.argwhere(saving).tolist():
        volume_gb = float(rates.expected[i, j] * duration_s / BITS_PER_BYTE)
        with suppress(DataError):  # its price may not be known
            usd = price(regions[i], regions[j], volume_gb)
            part = usd
            if isfinite(allowance.gb):
                part = max(
                    usd / max(allowance.usd, LEAST_PART), volume_gb / max(allowance.gb, LEAST_PART)
                )
            worth = float(saving[i, j]) / max(part, LEAST_PART)
            offers.append((-worth, regions[i], regions[j], usd, volume_gb))
    tasks: list[ProbeTask] = []
    left = allowance
    seats: Counter[str] = Counter()
    for _, src, dst, usd, volume_gb in sorted(offers):
        if len(tasks) == batch:
            break
        has_seat = max(seats[src], seats[dst]) < batch_of_host
        if has_seat and usd <= left.usd and volume_gb <= left.gb:
            pair = (hosts_of[src], hosts_of[dst])
            rate = network.link(src, dst).rate_gbps(connections)
            tasks.append(ProbeTask("aggregate", (pair,), connections, duration_s, rate))
            seats.update((src, dst))
            left = left.after(usd, volume_gb)
    if not tasks:
        why = "every link that matters is known"
        if offers:
            why = f"{allowance.name} allows no further link; the expected regret is {regret:.1%}"
        return Choice([], why)
    return Choice(tasks, f"an expected regret of {regret:.1%} is above {threshold:.1%}")
