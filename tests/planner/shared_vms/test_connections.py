"""VMs of shuffles and broadcasts open whole connections, never more than they may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from tests.planner.worlds import world

Flow = tuple[Sequence[str], float, int]


def check(
    network: Network, vms: Mapping[str, int], connections: int, flows: Iterable[Flow]
) -> None:
    """Assert that VMs open what they may, and that it carries the rates."""
    opened: Counter[str] = Counter()
    for regions, gbps, count in flows:
        assert count >= 1
        links = [network.link(*pair) for pair in pairwise(regions)]
        assert gbps <= count * min(link.rate_gbps(1) for link in links) * (1 + 1e-5)
        opened.update(dict.fromkeys(regions[:-1], count))
    for region, count in opened.items():
        assert count <= connections * vms[region], region


@pytest.mark.parametrize("connections", [7, 64])
@pytest.mark.parametrize("seed", range(1, 16, 3))
def test_shuffles_open_whole_connections_within_the_limit(seed: int, connections: int) -> None:
    of, random = world(seed, 5), np.random.default_rng(seed)
    network = of.network(20.0)
    volumes = {pair: float(random.pareto(1.2) * 50 + 5) for pair in permutations(of.names, 2)}
    vms_in = of.vms_in if seed % 2 else {}
    request = ShuffleRequest(volumes, connections=connections, margin=0.0, vms_in=vms_in)
    plan = recommend_shuffle(request, network, of.prices())
    paths = [path for pair in plan.pairs for path in pair.paths]
    check(
        network,
        plan.vms,
        connections,
        ((path.regions, path.throughput_gbps, path.connections) for path in paths),
    )
    assert all(count <= connections for count in plan.connections.values())
    for pair in plan.pairs:
        assert 8 * pair.volume_gb / pair.throughput_gbps <= plan.duration_s


@pytest.mark.slow
@pytest.mark.parametrize("connections", [7, 64])
@pytest.mark.parametrize("seed", range(1, 16, 3))
def test_broadcasts_open_whole_connections_within_the_limit(seed: int, connections: int) -> None:
    of = world(seed, 6)
    network, (src, *dst) = of.network(20.0), of.names
    request = BroadcastRequest(
        src,
        tuple(dst),
        volume_gb=100.0,
        connections=connections,
        margin=0.0,
        vms_in=of.vms_in if seed % 2 else {},
    )
    plan = recommend_broadcast(request, network, of.prices())
    links = [link for tree in plan.trees for link in tree.legs]
    flows = (((link.src, link.dst), link.throughput_gbps, link.connections) for link in links)
    check(network, plan.vms, connections, flows)


def test_a_relay_opens_as_many_connections_as_it_accepts() -> None:
    """A near relay needs 5 connections to be reached, and 20 to go on: the source opens 20, too."""
    names, flow_mbps = ["a", "b", "c"], np.full((3, 3), 50.0)
    flow_mbps[0, 2] = 200.0
    gbps = np.full((3, 3), 10.0)
    gbps[0, 1] = 0.0
    network = Network.from_matrices(names, gbps, rtt_ms=0.0, per_flow_mbps=flow_mbps)
    request = ShuffleRequest({("a", "b"): 100.0}, connections=20, vms=1, vms_running=True)
    plan = recommend_shuffle(request, network, FlatPrices(names, 0.02, 1.0))
    assert plan.duration_s == pytest.approx(800.0)
    assert plan.connections == {"a": 20, "c": 20}
    (path,) = plan.pairs[0].paths
    assert path.connections == 20
    assert plan.bound_s == pytest.approx(800.0)


def test_rounding_lowers_rates_rather_than_open_more_connections() -> None:
    """Two of 10 connections for each of five destinations, not 2.2; three of the one of more."""
    names = ["a", "b", "c", "d", "e"]
    network = Network.from_matrices(
        names, np.full((5, 5), 100.0), rtt_ms=0.0, per_flow_mbps=np.full((5, 5), 1000.0)
    )
    demands = {("a", to): 100.0 for to in "bcde"}
    request = ShuffleRequest(
        demands, connections=10, vms=1, vms_running=True, relays="none", margin=0.0
    )
    plan = recommend_shuffle(request, network, FlatPrices(names, 0.02, 1.0))
    assert [path.connections for pair in plan.pairs for path in pair.paths] == [2, 2, 2, 2]
    assert plan.duration_s == pytest.approx(800.0 / 2)
    assert plan.connections == {"a": 8}
