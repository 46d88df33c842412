"""VMs take time to start: part of durations and deadlines, unless they run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

NAMES = ["a", "b", "c"]
GBPS = np.array([[0, 1.0, 8], [1, 0, 8], [8, 8, 0]])
NETWORK = Network.from_matrices(NAMES, GBPS, rtt_ms=0.0, per_flow_mbps=GBPS * 1000 / 64)
PRICES = FlatPrices(NAMES, 0.02, 1.0)
MB = TransferRequest("a", "b", volume_gb=0.001)
LARGE = TransferRequest("a", "b", volume_gb=500, vms=1, objective="time")


def test_a_small_transfer_waits_for_its_vms_and_a_plain_copy_does() -> None:
    """1 MB at 1 Gbit/s is 8 ms; one of 64 connections takes half a second."""
    plan = recommend(MB, NETWORK, PRICES)
    assert plan.vm_start_s == plan.direct.vm_start_s == 60
    assert plan.duration_s == pytest.approx(60, abs=0.01)
    assert plan.reason.startswith("A plain copy")
    advice = next(advice for advice in plan.advice if "scp" in advice.action)
    assert advice.change is not None
    assert advice.outcome is not None
    again = recommend(MB.with_(**advice.change), NETWORK, PRICES)
    assert again.duration_s == advice.outcome.duration_s == pytest.approx(0.512)
    assert again.vm_start_s == 0
    assert "plain copy" not in recommend(LARGE, NETWORK, PRICES).reason


def test_deadlines_wait_for_vms_too() -> None:
    with pytest.raises(InfeasibleError, match=r"1 min 00 s of it until.*`vms_running`") as late:
        recommend(replace(MB, deadline_s=30.0), NETWORK, PRICES)
    assert "Allow at least 1 min 01 s (61 s)" in late.value.remedy
    assert "raise `vms`" not in late.value.remedy  # more VMs start no sooner
    ready = recommend(replace(MB, deadline_s=30.0, vms_running=True), NETWORK, PRICES)
    assert (ready.vm_start_s, ready.duration_s < 1) == (0, True)
    # 500 GB at 8 Gbit/s take 500 s.
    relayed = recommend(replace(LARGE, deadline_s=560.0), NETWORK, PRICES)
    assert relayed.verdict == "relay"
    with pytest.raises(InfeasibleError):
        recommend(replace(LARGE, deadline_s=559.0), NETWORK, PRICES)
    running = recommend(replace(LARGE, deadline_s=500.0, vms_running=True), NETWORK, PRICES)
    assert running.duration_s == pytest.approx(500)


def test_vms_that_run_are_not_paid_for_before_they_send() -> None:
    started, running = (
        recommend(replace(LARGE, vms_running=flag, relays="none"), NETWORK, PRICES)
        for flag in (False, True)
    )
    assert started.duration_s - running.duration_s == pytest.approx(60)
    assert started.cost_usd.vm - running.cost_usd.vm == pytest.approx(2 * 60 / 3600)


def test_vms_of_a_fleet_run_and_a_relay_elsewhere_starts() -> None:
    sites = {name: replace(NETWORK.sites[name], vms=1) for name in "ab"}
    fleet = NETWORK.with_(sites={**NETWORK.sites, **sites})
    plan = recommend(replace(LARGE, vms=None), fleet, PRICES)
    assert plan.best_relay is not None
    assert (plan.direct.vm_start_s, plan.best_relay.vm_start_s) == (0, 60)
    assert plan.direct.duration_s == pytest.approx(4000)
    assert plan.best_relay.duration_s == pytest.approx(60 + 500)
