"""What runs have shown goes into bounds and words; a plan's document promises what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.achieved import after_achieving
from planner.model.answer import Bounded
from planner.model.calibration import calibrated
from planner.model.estimate import Estimate, Origin
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.verification import MEASURING_ERROR, Verified, VerifiedPath
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.networks import stated_network

REGIONS = ("s", "r", "d")
NOW_S = 1.8e9
MEASURED = Origin("measured", "median-of-samples", 3, 1, NOW_S - 9e3)
_shares = st.floats(0.3, 2.0)
_errors = st.floats(0.01, 1.0)


def _network(first: float, second: float, error: float) -> Network:
    """Two links by way of r, and a slow direct one."""

    def around(value: float) -> Estimate:
        return Estimate(value / (1 + error), value, value * (1 + error), MEASURED)

    rates = {("s", "r"): first, ("r", "d"): second, ("s", "d"): 1.0}
    return stated_network(
        {pair: around(gbps) for pair, gbps in rates.items()},
        cap_gbps=20.0,
        links={pair: {"per_flow_mbps": around(gbps * 100)} for pair, gbps in rates.items()},
    )


def _verified(achieved: float, *, held: float = 1.0, at_s: float = NOW_S - 7200) -> Verified:
    path = VerifiedPath(("s", "r", "d"), 64, achieved, at_s)
    return Verified("s", "d", "relay", "x", 0.9, 1.0, 1.1, held, at_s, (path,))


@given(st.floats(2.0, 9.0), st.floats(2.0, 9.0), _errors, _shares)
def test_bounds_enclose_what_a_path_carried_and_no_more_is_expected(
    first: float, second: float, error: float, share: float
) -> None:
    network = _network(first, second, error)
    achieved = share * min(first, second)
    known = calibrated(network, _verified(achieved), NOW_S)
    low, high = (
        min(known.link(*pair).rate_gbps(64, bound) for pair in (("s", "r"), ("r", "d")))
        for bound in ("low", "high")
    )
    assert low <= achieved * 1.0001
    if first != second:
        assert high >= achieved * 0.9999
    for link in known:
        before = network.link(link.src, link.dst)
        for name in ("aggregate_gbps", "per_flow_mbps"):
            found, was = getattr(link, name), getattr(before, name)
            assert found.expected <= was.expected
            assert 0 <= found.low <= found.expected <= found.high
    expected = [
        min(graph.link(*pair).rate_gbps(64) for pair in (("s", "r"), ("r", "d")))
        for graph in (network, known)
    ]
    fell_short = achieved < min(
        network.link(*pair).rate_gbps(64, "low") for pair in (("s", "r"), ("r", "d"))
    )
    assert expected[1] == pytest.approx(achieved if fell_short else expected[0])
    assert known.link("s", "d") == network.link("s", "d")


@given(st.floats(2.0, 9.0), st.floats(0.2, 1.0))
def test_a_path_that_carried_what_was_expected_is_surer(gbps: float, error: float) -> None:
    network = _network(gbps, gbps * 1.5, error)
    known = calibrated(network, _verified(gbps), NOW_S)
    assert known.link("s", "r").rate_gbps(64, "low") >= gbps / (1 + 1.1 * MEASURING_ERROR)
    assert known.link("s", "r").rate_gbps(64, "high") <= gbps * (1 + 1.1 * MEASURING_ERROR)
    # That the other link carries no more was not shown.
    assert known.link("r", "d").rate_gbps(64, "high") == network.link("r", "d").rate_gbps(
        64, "high"
    )


def test_one_connection_says_nothing_of_the_most_that_many_carry() -> None:
    network = _network(5.0, 6.0, 0.5)
    one = VerifiedPath(("s", "r", "d"), 1, 0.5, NOW_S)
    known = calibrated(network, replace(_verified(5.0), paths=(one,)), NOW_S)
    link, before = known.link("s", "r"), network.link("s", "r")
    assert link.aggregate_gbps == before.aggregate_gbps
    assert link.per_flow_mbps.high < before.per_flow_mbps.high
    assert link.per_flow_mbps.low > before.per_flow_mbps.low


def test_what_was_measured_since_is_believed_instead() -> None:
    network = _network(5.0, 6.0, 0.02)
    earlier = calibrated(network, _verified(2.0, at_s=NOW_S - 1e5), NOW_S)
    assert [link.aggregate_gbps for link in earlier] == [link.aggregate_gbps for link in network]
    old = calibrated(network, _verified(5.0, at_s=NOW_S - 31 * 86400), NOW_S)
    assert [link.aggregate_gbps for link in old] == [link.aggregate_gbps for link in network]


def _plan(network: Network, **request: Any) -> Plan:
    prices = FlatPrices(REGIONS, 0.02, 1.0)
    return recommend(
        TransferRequest("s", "d", objective="time", vms=1, **request), network, prices, now_s=NOW_S
    )


def test_a_plan_says_when_it_was_verified_and_warns_if_that_failed() -> None:
    network = _network(5.0, 6.0, 0.02)
    fine = _plan(calibrated(network, _verified(5.0), NOW_S))
    assert fine.confidence.endswith("verified 2 h ago: 1.00 of 1.00 Gbit/s.")
    assert not fine.warnings
    failed = _plan(calibrated(network, _verified(3.0, held=0.5), NOW_S))
    assert any("verified 2 h ago: 0.5 of 1.00" in warning for warning in failed.warnings)
    assert failed.throughput_gbps_low < fine.throughput_gbps_low
    assert "verified" not in _plan(network).confidence


# ---- the rate to expect after what was achieved --------------------------------------------------


ESTIMATE = Bounded(10.0, 9.0, 11.0)


def test_a_rate_far_from_the_estimate_is_believed_and_a_near_one_weighed() -> None:
    slow = after_achieving(ESTIMATE, 2.0, 30.0)
    assert slow.expected == pytest.approx(2.0, rel=2e-3)
    assert 1.8 < slow.low < slow.expected < slow.high < 2.2
    near = after_achieving(ESTIMATE, 9.5, 30.0)
    assert 9.5 < near.expected < 9.75
    vague = after_achieving(Bounded(10.0, 3.0, 30.0), 9.5, 30.0)
    assert vague.expected == pytest.approx(9.5, rel=2e-3)
    assert after_achieving(ESTIMATE, 0.0, 30.0) is ESTIMATE
    assert after_achieving(ESTIMATE, 5.0, 0.0) is ESTIMATE


def test_a_second_says_less_than_half_a_minute() -> None:
    soon, later = (after_achieving(ESTIMATE, 9.5, over_s) for over_s in (0.2, 30.0))
    assert later.expected < soon.expected < 10.0
    assert soon.high / soon.low > later.high / later.low


@given(st.floats(0.01, 1e3), st.floats(0.01, 1e3), st.floats(1, 30), st.floats(0.1, 1e6))
def test_it_lies_between_both(rate: float, achieved: float, width: float, over_s: float) -> None:
    found = after_achieving(Bounded(rate, rate / width, rate * width), achieved, over_s)
    low, high = sorted((rate, achieved))
    assert low * (1 - 1e-9) <= found.expected <= high * (1 + 1e-9)
    assert found.low < found.expected < found.high
