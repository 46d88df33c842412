"""Comparisons against broadcasts and shuffles of the same links, and against planted truths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import erf, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.comparison.plan import Ranking
from planner.comparison.recommendation import recommend_candidates
from planner.comparison.request import ComparisonObjective, ComparisonRequest
from planner.model.errors import DataError, InputError
from planner.model.estimate import Estimate
from planner.model.network import Network
from planner.model.pricing import FlatPrices, Prices
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.solvers.joint import BOUND_SCORE
from tests.planner.broadcast.broadcasts import instance
from tests.planner.networks import stated_network
from tests.planner.worlds import CONNECTIONS
from tests.properties import examples

ENDS = ("r1", "r2", "r3")


def compare(network: Network, prices: Prices, request: ComparisonRequest, *names: str) -> Ranking:
    return recommend_candidates(
        request, network.snapshot, [(name, network, prices) for name in names]
    )


@given(st.integers(0, 10_000))
@settings(max_examples=examples(40), deadline=None)
def test_a_candidate_sends_as_a_broadcast_without_forwarding_does(seed: int) -> None:
    given_ = instance(seed, 6, 3)
    network, prices = given_.network(), given_.prices()
    request = ComparisonRequest(
        ENDS, volume_gb=100.0, connections=CONNECTIONS, objective="cost", most=9
    )
    (one,) = compare(network, prices, request, "r0").candidates
    plan = recommend_broadcast(
        BroadcastRequest(
            "r0", ENDS, volume_gb=100.0, connections=CONNECTIONS, relays="none", objective="cost"
        ),
        network,
        prices,
    )
    assert one.vms == plan.vms
    assert one.duration_s == pytest.approx(plan.duration_s)
    assert one.cost_usd.egress == pytest.approx(plan.cost_usd.egress)
    assert one.cost_usd.total == pytest.approx(plan.cost_usd.total)
    assert one.duration_s_low <= one.duration_s <= one.duration_s_high


@given(st.integers(0, 10_000))
@settings(max_examples=examples(25), deadline=None)
def test_a_candidate_fetches_as_a_direct_shuffle_does(seed: int) -> None:
    given_ = instance(seed, 6, 3)
    known = [end for end in ENDS if given_.rate[int(end[1]), 0] > 0]
    assume(known)
    network, prices = given_.network(), given_.prices()
    demands = [(end, "r0", 100.0) for end in known]
    shuffle = recommend_shuffle(
        ShuffleRequest(demands, relays="none", connections=CONNECTIONS), network, prices
    )
    request = ComparisonRequest(known, direction="from", volume_gb=100.0, connections=CONNECTIONS)
    (one,) = compare(network, prices, request, "r0").candidates
    assert one.vms == shuffle.vms
    assert one.duration_s == pytest.approx(shuffle.duration_s)
    assert one.cost_usd.total == pytest.approx(shuffle.cost_usd.total)


def uncertain(spreads: Mapping[str, float], rates: Mapping[str, float]) -> Network:
    """Return candidates with one link each to ``end``, whose rates have these log-spreads."""
    links = {}
    for src, gbps in rates.items():
        width = exp(BOUND_SCORE * spreads[src])
        links[src, "end"] = Estimate(gbps / width, gbps, gbps * width)
    return stated_network(links, rtt_ms=0.001)


@pytest.mark.parametrize(("spread", "ratio"), [(0.1, 1.05), (0.3, 1.5), (0.2, 1.0)])
def test_probabilities_are_those_of_the_planted_errors(spread: float, ratio: float) -> None:
    network = uncertain({"a": spread, "b": spread}, {"a": 4.0 * ratio, "b": 4.0})
    request = ComparisonRequest(["end"], objective="time", connections=1000, vms=1)
    found = compare(network, FlatPrices(list(network.sites)), request, "b", "a").candidates
    by_name = {one.region: one.probability for one in found}
    expected = 0.5 * (1 + erf(log(ratio) / (spread * sqrt(2)) / sqrt(2)))
    assert by_name["a"] == pytest.approx(expected, abs=0.08)  # 64 draws
    assert sum(p for p in by_name.values() if p is not None) == pytest.approx(1.0)


def test_what_is_certain_is_ranked_with_certainty_and_what_is_not_is_not() -> None:
    spreads = {"best": 0.01, "middle": 0.4, "last": 0.01}
    network = uncertain(spreads, {"best": 9.0, "middle": 6.0, "last": 5.0})
    request = ComparisonRequest(["end"], objective="time", connections=1000, vms=1)
    prices = FlatPrices(list(network.sites))
    found = compare(network, prices, request, "last", "middle", "best")
    assert [one.region for one in found.candidates] == ["best", "middle", "last"]
    best, middle, last = found.candidates
    assert (best.rank_low, last.rank_high) == (1, 3)
    assert (middle.rank_low, middle.rank_high) == (1, 3)
    assert best.probability is not None
    assert best.probability > 0.7
    steady = compare(network, prices, replace(request, objective="stability"), *spreads)
    assert steady.candidates[-1].region == "middle"
    assert steady.candidates[0].probability is None
    # The names of candidates, not their order or company, decide on draws.
    two = compare(network, prices, request, "best", "last")
    assert two.candidates[1].duration_s == last.duration_s


def test_objectives_order_by_what_they_say() -> None:
    names = ["cheap", "fast", "near", "end"]
    gbps, rtt_ms, fees = np.zeros((4, 4)), np.full((4, 4), 100.0), np.zeros((4, 4))
    gbps[:3, 3] = 2.0, 8.0, 1.0
    rtt_ms[:3, 3] = 80.0, 90.0, 5.0
    fees[:3, 3] = 0.01, 0.1, 0.05
    network = Network.from_matrices(names, gbps, rtt_ms=rtt_ms)
    prices = FlatPrices(names, fees, 0.5)
    orders: dict[ComparisonObjective, str] = {"cost": "cheap", "time": "fast", "latency": "near"}
    for objective, first in orders.items():
        request = ComparisonRequest(["end"], volume_gb=100.0, objective=objective, vms=1)
        found = compare(network, prices, request, *names)
        assert found.candidates[0].region == first
        assert found.candidates[0].probability == 1.0
        assert found.compared == 3  # what is at the end need not be sent
    # An hour's worth decides between the cheap and the fast one: 300 s and 9 USD apart.
    for usd, first in ((100.0, "cheap"), (120.0, "fast")):
        request = ComparisonRequest(["end"], volume_gb=100.0, time_value_usd_per_h=usd, vms=1)
        assert compare(network, prices, request, *names).candidates[0].region == first


def test_candidates_without_a_link_are_counted_and_none_at_all_is_an_error() -> None:
    network = uncertain({"a": 0.1}, {"a": 4.0})
    prices = FlatPrices(["a", "end"])
    request = ComparisonRequest(["end"])
    (warning,) = compare(network, prices, request, "a", "lost").warnings
    assert warning == "Left out, because a link or its price is not known: lost."
    with pytest.raises(DataError, match="No candidate"):
        compare(network, prices, request, "lost")
    with pytest.raises(InputError, match="twice"):
        ComparisonRequest(["a", "a"])
