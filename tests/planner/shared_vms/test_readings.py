"""Slow links that were never ramped, in shuffles and broadcasts."""

from __future__ import annotations

from typing import Any

import pytest

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from tests.planner.transfer.test_readings import PRICES, slow_direct


def shuffle(limited_by: Any = "unknown", **asked: Any) -> ShufflePlan:
    request = ShuffleRequest({("s", "d"): 1000.0}, **asked)
    return recommend_shuffle(request, slow_direct(limited_by), PRICES)


def broadcast(limited_by: Any = "unknown", **asked: Any) -> BroadcastPlan:
    request = BroadcastRequest("s", ("d",), volume_gb=1000.0, objective="time", **asked)
    return recommend_broadcast(request, slow_direct(limited_by), PRICES)


@pytest.mark.parametrize("ask", [shuffle, broadcast])
def test_where_a_slow_link_is_relayed_more_connections_are_to_be_tried(ask: Any) -> None:
    found = ask()
    assert found.verdict != "direct"
    (ramp,) = found.measure_first
    assert (ramp.src, ramp.dst, ramp.kind) == ("s", "d", "ramp")
    assert ramp.volume_gb == pytest.approx((4 + 8) * 5 / 8)
    assert not ask("path").measure_first
    assert not ask(relays="none").measure_first


@pytest.mark.parametrize("ask", [shuffle, broadcast])
def test_as_many_connections_as_a_rate_was_measured_with_hold_under_both_readings(ask: Any) -> None:
    found = ask(relays="none")
    assert found.connections == {"s": 64, "d": 64}
    assert not found.warnings
    assert ask("path", relays="none").connections == {"s": 7, "d": 7}  # of 300 Mbit/s each
    (said,) = ask(relays="none", connections=8).warnings
    assert "If each connection of s -> d is slow" in said
    assert "0.219 instead of 2.00 Gbit/s" in said


@pytest.mark.parametrize("ask", [shuffle, broadcast])
def test_that_a_second_vm_doubles_a_slow_path_is_said_to_be_assumed(ask: Any) -> None:
    (said,) = ask("path", relays="none", vms=2).warnings
    assert "further VM" in said
    assert not ask("path", relays="none").warnings
