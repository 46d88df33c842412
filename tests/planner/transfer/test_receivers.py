"""Receivers are held to what they receive: not to connections, nor to the caps of senders."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.link_array import held_ends
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.plan import Plan
from planner.transfer.problem import MOST_PATHS
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.grid import january_grid
from tests.planner.independent import near
from tests.planner.transfer.test_recommendation import assert_sound

REGIONS = ("aws:s", "gcp:d", "azure:far")


def network(rate_gbps: float, sends: float, receives: float) -> Network:
    """Return three regions, between the first two of which one VM pair reaches a rate."""
    rates = np.full((3, 3), 9.0)
    rates[0, 1] = rate_gbps
    egress, ingress = [sends, 16.0, 16.0], [16.0, receives, 16.0]
    flows = np.full((3, 3), 500.0)
    return Network.from_matrices(
        REGIONS, rates, per_flow_mbps=flows, egress_gbps=egress, ingress_gbps=ingress
    )


def planned(of: Network, vms: int = 8, **asked: object) -> Plan:
    request = TransferRequest("aws:s", "gcp:d", volume_gb=40_000, vms=vms, objective="time")
    return recommend(request.with_(**asked), of, FlatPrices(REGIONS, 0.05, 1.5))


@pytest.mark.parametrize(
    ("rate", "sends", "receives", "vms", "gbps"),
    [
        (5.0, 5.0, 16.0, {"aws:s": 8, "gcp:d": 3}, 40.0),  # the cap of those that send
        (0.064, 0.064, 16.0, {"aws:s": 8, "gcp:d": 1}, 0.512),  # as of t3.micro
        (5.0, 16.0, 5.0, {"aws:s": 3, "gcp:d": 8}, 40.0),  # the cap of those that receive
        (2.0, 5.0, 16.0, {"aws:s": 8, "gcp:d": 8}, 16.0),  # the path
    ],
)
def test_a_vm_is_held_by_its_own_cap_and_by_the_path(
    rate: float, sends: float, receives: float, vms: dict[str, int], gbps: float
) -> None:
    of = network(rate, sends, receives)
    plan = planned(of, relays="none")
    assert plan.vms == vms
    assert plan.throughput_gbps == near(gbps)
    shuffle = ShuffleRequest({("aws:s", "gcp:d"): 40_000}, relays="none", vms=8)
    shared = recommend_shuffle(shuffle, of, FlatPrices(REGIONS, 0.05, 1.5))
    assert shared.vms == vms
    assert shared.pairs[0].throughput_gbps == near(gbps)


def test_slow_senders_take_no_relays_to_save_receivers() -> None:
    plan = planned(network(0.064, 0.064, 16.0), objective="value")
    assert plan.verdict == "direct"
    assert plan.vms["gcp:d"] == 1


def test_a_relay_opens_as_many_connections_as_it_accepts() -> None:
    """At 250 Mbit/s each on the first link and 50 on the second, 64 carry 3.2 Gbit/s, not 16."""
    flows = np.full((3, 3), 250.0)
    flows[2, 1] = 50.0
    rates = np.full((3, 3), 9.0)
    rates[0, 1] = 1.0
    of = Network.from_matrices(REGIONS, rates, per_flow_mbps=flows)
    plan = planned(of, vms=1)
    relayed = [path for path in plan.paths if len(path.regions) == 3]
    assert sum(path.connections for path in plan.paths) <= 64
    assert all(path.throughput_gbps <= path.connections * 0.05 * (1 + 1e-9) for path in relayed)
    # 4 connections carry the direct 1 Gbit/s, the other 60 what the relay forwards.
    assert plan.throughput_gbps == near(1.0 + 60 * 0.05)


def test_plans_of_the_january_grid_open_no_more_than_vms_may_on_few_paths() -> None:
    """With connections as fast as a window of 3 MB allows, or as the measured rate proves."""
    grid = january_grid()
    pair, rtt = grid.matrix(grid.pair_gbps, 0.0), grid.matrix(grid.rtt_ms, 100.0)
    flows = np.maximum(8 * 3.0 / rtt * 1e3, pair * 1e3 / 64)
    of = Network.from_matrices(grid.regions, pair, rtt_ms=rtt, per_flow_mbps=flows)
    splits = many = 0
    for number, (src, dst) in enumerate(grid.random_pairs(30, seed=41)):
        connections, vms = [16, 64][number // 4 % 2], 1 + number % 4
        request = TransferRequest(
            src, dst, volume_gb=2000, vms=vms, objective="time", connections=connections
        )
        plan = recommend(request, of, grid.prices())
        assert_sound(plan, request, of)
        splits += len(plan.paths) > 1
        many += len(plan.paths) > MOST_PATHS
    assert splits > 5
    assert many <= 2


def test_which_vms_a_rate_holds() -> None:
    vm, window, path, unknown = range(4)
    limits = np.array([vm, vm, window, path, unknown])
    sends, receives = held_ends(
        limits, np.array([5.0, 16.0, 5, 5, 5]), np.array([16.0, 5, 5, 5, 5])
    )
    assert sends.tolist() == [True, False, True, True, True]
    assert receives.tolist() == [False, True, False, True, True]
