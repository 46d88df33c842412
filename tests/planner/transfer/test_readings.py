"""Slow links that were never ramped: what plans take for granted, and what to try first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link import LimitedBy, Link, Site
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

PRICES = FlatPrices(["s", "d", "r"], 0.01, 0.1)
MEASURED = Origin("measured", "median-of-samples", 3, figures=Figures(connections=64))
INFERRED = Origin("inferred", "window-over-rtt")


def about(value: float, origin: Origin = INFERRED) -> Estimate:
    return Estimate(value * 0.98, value, value * 1.02, origin)


def slow_direct(limited_by: LimitedBy = "unknown", flow: Origin = INFERRED) -> Network:
    """A direct link of 2 Gbit/s, and a relay whose links reach the cap of 10."""
    sites = {name: Site(name, "", about(10.0), about(10.0), about(4.0)) for name in ("s", "d", "r")}
    doubted = 2 / 3 if limited_by == "unknown" and flow is INFERRED else 0.0
    slow = Link(
        *("s", "d", about(100), about(300, flow), about(2.0, MEASURED)),
        limited_by=limited_by,
        slow_connections=doubted,
    )
    fast = {
        (src, dst): Link(src, dst, about(50), about(600), about(10.0, MEASURED), None, "vm")
        for src, dst in (("s", "r"), ("r", "d"))
    }
    links = {"s": {"d": slow, "r": fast["s", "r"]}, "r": {"d": fast["r", "d"]}, "d": {}}
    return Network(sites, links)


Asked = Plan | ShufflePlan | BroadcastPlan


def transfer(limited_by: LimitedBy = "unknown", flow: Origin = INFERRED, **asked: Any) -> Asked:
    request = TransferRequest(src="s", dst="d", volume_gb=1000, objective="time", vms=1)
    return recommend(replace(request, **asked), slow_direct(limited_by, flow), PRICES)


def shuffle(limited_by: LimitedBy = "unknown", flow: Origin = INFERRED, **asked: Any) -> Asked:
    request = ShuffleRequest({("s", "d"): 1000.0}, **{"vms": 1, **asked})
    return recommend_shuffle(request, slow_direct(limited_by, flow), PRICES)


def broadcast(limited_by: LimitedBy = "unknown", flow: Origin = INFERRED, **asked: Any) -> Asked:
    asked = {"vms": 1, **asked}
    request = BroadcastRequest("s", ("d",), volume_gb=1000.0, objective="time", **asked)
    return recommend_broadcast(request, slow_direct(limited_by, flow), PRICES)


every_question = pytest.mark.parametrize("ask", [transfer, shuffle, broadcast])


@every_question
def test_before_a_relay_replaces_a_slow_link_more_connections_are_to_be_tried(ask: Any) -> None:
    found = ask()
    assert found.verdict != "direct"
    (ramp,) = (measure for measure in found.measure_first if measure.kind == "ramp")
    assert (ramp.src, ramp.dst) == ("s", "d")
    # 5 s at twice and 5 s at four times the rate.
    assert ramp.volume_gb == pytest.approx((4 + 8) * 5 / 8)
    assert ramp.cost_usd == pytest.approx(ramp.volume_gb * 0.01)
    assert not ask(relays="none").measure_first
    for known in (ask("path"), ask(flow=MEASURED)):  # ramped, or a connection is known to be fast
        assert all(measure.kind != "ramp" for measure in known.measure_first)
        assert not any("slow" in warning for warning in known.warnings)


@pytest.mark.parametrize(
    ("ask", "carried"), [(transfer, "0.25"), (shuffle, "0.219"), (broadcast, "0.219")]
)
def test_a_plan_that_holds_under_one_reading_alone_says_so(ask: Any, carried: str) -> None:
    (said,) = ask(relays="none", connections=8).warnings
    assert "If each connection of s -> d is slow" in said
    assert f"{carried} instead of 2.00 Gbit/s" in said
    assert not ask(relays="none", connections=64).warnings


@pytest.mark.parametrize("ask", [shuffle, broadcast])
def test_as_many_connections_as_a_rate_was_measured_with_hold_under_both_readings(ask: Any) -> None:
    found = ask(relays="none")
    assert found.connections == {"s": 64, "d": 64}
    assert not found.warnings
    assert ask("path", relays="none").connections == {"s": 7, "d": 7}  # of 300 Mbit/s each


@every_question
def test_that_a_second_vm_doubles_a_slow_path_is_said_to_be_assumed(ask: Any) -> None:
    (said,) = ask("path", relays="none", vms=2).warnings
    assert "further VM" in said
    assert not ask("path", relays="none").warnings
