"""Slow links that were never ramped: what a plan takes for granted, and what to try first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link import LimitedBy, Link, Site
from planner.model.network import Network
from planner.model.pricing import FlatPrices
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
    slow = Link("s", "d", about(100), about(300, flow), about(2.0, MEASURED), None, limited_by)
    fast = {
        (src, dst): Link(src, dst, about(50), about(600), about(10.0, MEASURED), None, "vm")
        for src, dst in (("s", "r"), ("r", "d"))
    }
    links = {"s": {"d": slow, "r": fast["s", "r"]}, "r": {"d": fast["r", "d"]}, "d": {}}
    return Network(sites, links)


def plan(network: Network, **asked: Any) -> Plan:
    request = TransferRequest(src="s", dst="d", volume_gb=1000, objective="time", vms=1)
    return recommend(replace(request, **asked), network, PRICES)


def test_before_a_relay_replaces_a_slow_link_more_connections_are_to_be_tried() -> None:
    found = plan(slow_direct())
    assert found.verdict != "direct"
    (ramp,) = (measure for measure in found.measure_first if measure.kind == "ramp")
    assert (ramp.src, ramp.dst) == ("s", "d")
    # 5 s at twice and 5 s at four times the rate.
    assert ramp.volume_gb == pytest.approx((4 + 8) * 5 / 8)
    assert ramp.cost_usd == pytest.approx(ramp.volume_gb * 0.01)


@pytest.mark.parametrize(
    "network",
    [slow_direct("path"), slow_direct(flow=MEASURED)],
    ids=["ramped already", "one connection is known to be fast"],
)
def test_what_is_known_needs_no_ramp(network: Network) -> None:
    found = plan(network)
    assert all(measure.kind != "ramp" for measure in found.measure_first)
    assert not any("slow" in warning for warning in found.warnings)


def test_a_plan_that_holds_under_one_reading_alone_says_so() -> None:
    few = plan(slow_direct(), connections=8, relays="none")
    assert few.throughput_gbps == pytest.approx(2.0)
    (said,) = (warning for warning in few.warnings if "each connection" in warning)
    assert "0.25 instead of 2.00 Gbit/s" in said
    as_measured = plan(slow_direct(), connections=64, relays="none")
    assert not any("each connection" in warning for warning in as_measured.warnings)


def test_that_a_second_vm_doubles_a_slow_path_is_said_to_be_assumed() -> None:
    two = plan(slow_direct("path"), relays="none", vms=2)
    assert two.throughput_gbps == pytest.approx(4.0)
    assert any("further VM" in warning for warning in two.warnings)
    one = plan(slow_direct("path"), relays="none")
    assert not any("further VM" in warning for warning in one.warnings)
