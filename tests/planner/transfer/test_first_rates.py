"""Links whose rate falls during a transfer: plans count on what they carry over the volume."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.model.document import document_of, network_of
from planner.model.estimate import CutCause, Estimate, Figures, Origin, RateCut
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.rate_cuts import average_gbps
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.networks import stated_network, with_link

PRICES = FlatPrices(["s", "d", "r"], 0.01, 0.1)


def exactly(value: float, origin: Origin) -> Estimate:
    return Estimate(value, value, value, origin)


def network(cut: RateCut | None) -> Network:
    """A direct link that falls to 1 Gbit/s, and a relay of 1.5 that holds."""
    plain = Origin("measured", "median-of-samples", 3, figures=Figures(connections=64))
    falls = plain._replace(figures=Figures(connections=64, rate_cut=cut))
    rates = {("s", "d"): exactly(1.0, falls)}
    rates |= dict.fromkeys((("s", "r"), ("r", "d")), exactly(1.5, plain))
    network = stated_network(rates, cap_gbps=10.0, rtt_ms=20.0, flow_mbps=500.0)
    for src, dst in rates:
        network = with_link(network, src, dst, limited_by="path")
    return network


def cut(cause: CutCause = "volume") -> RateCut:
    return RateCut(40.0, 10.0, 2.0, 1.0, cause)


def plan(on: Network, volume_gb: float, **asked: Any) -> Plan:
    request = TransferRequest(src="s", dst="d", volume_gb=volume_gb, objective="time", vms=1)
    return recommend(replace(request, **asked), on, PRICES)


def test_a_small_volume_has_the_first_rate_and_a_large_one_what_lasts() -> None:
    small, middle, large = (plan(network(cut()), gb, relays="none") for gb in (8.0, 30.0, 10_000.0))
    assert small.throughput_gbps == pytest.approx(2.0)
    # 10 GB at 2 Gbit/s take 40 s, 20 GB at 1 Gbit/s take 160 s.
    assert middle.throughput_gbps == pytest.approx(30 * 8 / 200)
    assert large.throughput_gbps == pytest.approx(1.0, rel=1e-3)
    assert "s -> d falls from 2 to 1 Gbit/s a VM pair after 10 GB: 1.2 on average over 30 GB." in (
        middle.warnings
    )
    assert any("may end before" in said for said in small.warnings)
    same = plan(network(None), 30.0, relays="none")
    assert same.throughput_gbps == pytest.approx(1.0)
    assert same.plan_id != middle.plan_id


def test_a_fall_by_time_counts_what_was_sent_until_then() -> None:
    by_time = RateCut(80.0, 12.0, 2.0, 1.0, "time")
    # 80 s at 2 Gbit/s are 20 GB, whatever volume slower tests had reached.
    assert average_gbps(by_time, 20.0) == 2.0
    assert average_gbps(by_time, 40.0) == pytest.approx(40 / (20 / 2 + 20 / 1))


def test_a_burst_of_the_vm_is_not_counted_on() -> None:
    found = plan(network(cut("burst")), 8.0, relays="none")
    assert found.throughput_gbps == pytest.approx(1.0)
    assert any("counts on the second alone" in said for said in found.warnings)


def test_a_transfer_in_progress_has_what_lasts() -> None:
    request = TransferRequest(src="s", dst="d", volume_gb=8.0, objective="time", relays="none")
    on = network(cut())
    rest = recommend(replace(request, vms=1), on, PRICES, begins=False)
    assert rest.throughput_gbps == pytest.approx(1.0)


def test_falls_survive_a_document() -> None:
    before = network(cut("time"))
    again = network_of(json.loads(json.dumps(document_of(before))))
    assert again == before
    assert plan(again, 30.0).plan_id == plan(before, 30.0).plan_id
