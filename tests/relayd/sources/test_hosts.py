"""What one flow and 64 of them carry between hosts as they come and tuned ones, in every answer."""

from __future__ import annotations

import math
import random
from itertools import permutations
from typing import Any

import pytest

from planner.model.baseline.modelled_links import baseline_network
from relayd.catalogue.loading import load_catalogue
from relayd.sources.wan import Wan

CATALOGUE = load_catalogue()
FAST = {"aws": "c7gn.16xlarge"}


@pytest.fixture(scope="module")
def wan() -> Wan:
    return Wan(CATALOGUE, baseline_network(CATALOGUE))


def test_a_link_shown_and_a_plan_over_it_have_one_rate(wan: Wan) -> None:
    """Also where windows are the limit: the link and the matrix say what the plan can have."""
    regions = [region for region in wan.network.sites if region in CATALOGUE.regions]
    pairs = random.Random(4).sample(sorted(permutations(regions, 2)), 25)
    matrix = wan.matrix("aggregate")
    limits: set[str] = set()
    for src, dst in [("azure:australiaeast", "azure:brazilsouth"), *pairs]:
        link = wan.network.link(src, dst)
        plan = wan.plan(src, dst, volume_gb=1000, vms=1, relays="none")
        shown = link.aggregate_gbps
        assert plan.throughput_gbps == pytest.approx(shown.expected, rel=1e-9)
        assert matrix[src, dst] == pytest.approx(shown.expected)
        assert plan.throughput_gbps_low == pytest.approx(shown.low, rel=0.07)
        graph = wan.network.to_networkx().edges[src, dst] if not limits else None
        assert graph is None or graph["aggregate_gbps"] == shown.expected
        limits.add(link.limited_by)
    assert "window" in limits


def test_advice_on_windows_promises_what_flow_caps_allow(wan: Wan) -> None:
    """One stream on a VM of 200 Gbit/s: 5 Gbit/s with a window of 8 MB, and not 97."""
    ends = "aws:us-east-1", "aws:us-east-2"
    asked: dict[str, Any] = {"volume_gb": 1000, "vms": 1, "connections": 1, "vm_types": FAST}
    plan = wan.plan(*ends, **asked)
    (advice,) = [one for one in plan.advice if "TCP windows" in one.action]
    rtt_ms = wan.network_of(ends).link(*ends).rtt_ms.expected
    assert f"to {5.0 * rtt_ms / 8:.1f} MB" in advice.action
    assert advice.change == {"hosts": "tuned", "relays": "none"}
    assert advice.outcome is not None
    assert advice.outcome.throughput_gbps == pytest.approx(5.0)
    again = wan.plan(*ends, **{**asked, **advice.change})
    assert again.throughput_gbps == pytest.approx(advice.outcome.throughput_gbps)
    assert again.duration_s == pytest.approx(advice.outcome.duration_s)
    assert again.cost_usd == advice.outcome.cost_usd
    assert not any("TCP windows" in one.action for one in again.advice)


def test_google_holds_a_flow_that_it_sends_and_none_that_it_receives(wan: Wan) -> None:
    """Documented of Google Cloud; one of EC2 carried 4.67 Gbit/s into an e2-small next door."""
    virginia, google = "aws:us-east-1", "gcp:us-east4"
    network = wan.network_of((virginia, google), hosts="tuned")
    assert network.link(google, virginia).per_flow_mbps.expected == pytest.approx(3000.0)
    assert network.link(virginia, google).per_flow_mbps.expected == pytest.approx(5000.0)
    small = {"aws": "aws:t3.nano", "gcp": "gcp:e2-small"}
    ends = "aws:ap-southeast-1", "gcp:asia-southeast1"
    flow = wan.network_of(ends, small).link(*ends).per_flow_mbps
    assert flow.expected == pytest.approx(4671.0, rel=0.02)


def test_where_windows_limit_more_connections_and_raised_windows_are_the_advice(wan: Wan) -> None:
    ends = "azure:australiaeast", "azure:brazilsouth"
    asked: dict[str, Any] = {"volume_gb": 1000, "vms": 1, "connections": 16}
    plan = wan.plan(*ends, **asked)
    assert plan.bottlenecks[0].constraint == "connections"
    changes = [dict(one.change or {}) for one in plan.advice]
    (more,) = [one["connections"] for one in changes if "connections" in one]
    assert any(one.get("hosts") == "tuned" for one in changes)
    for one in plan.advice:
        if one.change and one.outcome:
            again = wan.plan(*ends, **{**asked, **one.change})
            assert again.throughput_gbps == pytest.approx(one.outcome.throughput_gbps)
            if {"connections", "hosts"} & set(one.change):
                assert again.throughput_gbps > plan.throughput_gbps
    flow_gbps = wan.network.link(*ends).per_flow_mbps.expected / 1000
    cap_gbps = wan.network.sites[ends[0]].egress_gbps.expected
    assert more == math.ceil(cap_gbps / flow_gbps)
