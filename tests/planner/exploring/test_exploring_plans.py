"""Plans that learn from past transfers between the same ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.exploring.outcome import Outcome
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

NAMES = ["a", "b", "near", "far"]


def plan(*outcomes: Outcome, explore: float = 0.02, **more: Any) -> Plan:
    """Return a plan from a to b: direct 4 Gbit/s, relays of 3.9 and 3."""
    rate = np.full((4, 4), 4.0)
    rate[0, 2] = rate[2, 1] = 3.9
    rate[0, 3] = rate[3, 1] = 3.0
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(NAMES, rate, rtt_ms=10.0, per_flow_mbps=25 * rate)
    asked: dict[str, Any] = {"objective": "time", "vms": 1, **more}
    request = TransferRequest("a", "b", explore=explore, outcomes=outcomes, **asked)
    return recommend(request, network, FlatPrices(NAMES, 0.02, 1.0), now_s=1e5)


def outcome(number: int, via: str, rate_gbps: float) -> Outcome:
    return Outcome(f"o{number}", "a", "b", rate_gbps, 3600.0 * number, via)


def test_without_outcomes_the_best_is_taken_where_a_trial_is_too_dear() -> None:
    found = plan(explore=0.0001)
    assert found.exploration is not None
    assert (found.verdict, found.exploration.via, found.exploration.best) == (
        "direct",
        "direct",
        "direct",
    )
    assert {rate.via for rate in found.exploration.rates} == {"direct", "near", "far"}
    assert found.exploration.rates[0].gbps == pytest.approx(4.0)
    assert found.best_relay is not None
    assert plan(explore=0.0).exploration is None
    # Outcomes of other ends and of unknown relays do no harm.
    others = [Outcome("x", "b", "a", 0.1, 1.0), Outcome("y", "a", "b", 0.1, 1.0, "elsewhere")]
    again = plan(*others, explore=0.0001).exploration
    assert again is not None
    assert again.rates == found.exploration.rates


def test_a_path_that_outcomes_show_to_be_slow_is_left() -> None:
    slow = [outcome(number, "direct", 1.0) for number in range(1, 6)]
    found = plan(*slow)
    assert found.exploration is not None
    assert (found.verdict, found.exploration.best) == ("relay", "near")
    known = {rate.via: rate for rate in found.exploration.rates}
    assert known["direct"].gbps == pytest.approx(1.0, rel=0.3)
    assert known["direct"].outcomes == 5
    assert known["direct"].gbps_low < known["direct"].gbps < known["direct"].gbps_high
    assert found.plan_id != plan(*slow[:4]).plan_id


def test_what_transfers_had_is_what_the_plan_predicts() -> None:
    """A dozen transfers of 2.5 Gbit/s where 4 were estimated, with one VM and with two."""
    for vms in (1, 2):
        had = [Outcome(f"{n}", "a", "b", 2.5 * vms, 3600.0 * n, vms=vms) for n in range(1, 13)]
        found = plan(*had, relays="none", volume_gb=500)
        assert found.throughput_gbps == pytest.approx(2.5, rel=0.02)
        assert found.throughput_gbps_low < found.throughput_gbps < found.throughput_gbps_high
        assert found.exploration is not None
        (known,) = found.exploration.rates
        rates = found.throughput_gbps_low, found.throughput_gbps, found.throughput_gbps_high
        assert (known.gbps_low, known.gbps, known.gbps_high) == rates
        assert found.duration_s == pytest.approx(60 + 8 * 500 / found.throughput_gbps, rel=1e-3)
        # A deadline that estimates would keep with one VM takes two.
        cheap: dict[str, Any] = {"objective": "cost", "relays": "none", "vms": 4, "volume_gb": 500}
        hurried = plan(*had, **cheap, deadline_s=1200.0)
        assert hurried.vms["a"] > 1
        assert hurried.duration_s <= 1200.0
        assert plan(**cheap, deadline_s=1200.0).vms == {"a": 1, "b": 1}


def test_limits_hold_for_trials_too() -> None:
    found = plan(explore=0.5, min_throughput_gbps=3.5)
    assert found.exploration is not None
    assert {rate.via for rate in found.exploration.rates} == {"direct", "near"}
    cheaper: dict[str, Any] = {"objective": "cost", "min_throughput_gbps": 3.5}
    fast, slow = ([outcome(n, "direct", rate) for n in range(1, 11)] for rate in (3.9, 1.0))
    assert plan(*fast, **cheaper).verdict == "direct"
    left = plan(*slow, **cheaper)
    assert left.exploration is not None
    assert (left.exploration.best, left.exploration.via, left.warnings) == ("near", "near", ())
    none = plan(explore=0.5, relays="none")
    assert none.exploration is not None
    assert [rate.via for rate in none.exploration.rates] == ["direct"]


@pytest.mark.parametrize("limits", [{"deadline_s": 300.0}, {"min_throughput_gbps": 3.0}])
def test_where_no_path_is_known_to_meet_the_limits_the_plan_warns(limits: dict[str, float]) -> None:
    slow = [outcome(number, "direct", 1.0) for number in range(1, 6)]
    found = plan(*slow, objective="cost", relays="none", volume_gb=100, **limits)
    assert found.verdict == "direct"
    (said,) = found.warnings
    assert "no path meets the limits" in said
    assert "the direct path, which has 1.0" in said
    assert not plan(objective="cost", relays="none", volume_gb=100, **limits).warnings


def test_the_reason_says_when_trials_have_cost_what_they_may() -> None:
    dear = [outcome(number, "far", 2.0) for number in range(1, 4)]
    found = plan(*dear, explore=0.001)
    assert found.exploration is not None
    assert found.exploration.spent > found.exploration.allowed
    assert found.exploration.via == found.exploration.best == "direct"
    assert "Trials have cost what they may; none is made now." in found.reason
    assert "worth a trial" not in found.reason


def test_wrong_exploring_is_named() -> None:
    with pytest.raises(InputError, match="latency") as raised:
        TransferRequest("a", "b", objective="latency", explore=0.01)
    assert raised.value.field == "explore"
    with pytest.raises(InputError, match="are for exploring"):
        TransferRequest("a", "b", outcomes=[{"src": "a", "dst": "b", "rate": 1, "ended_s": 0}])
    with pytest.raises(InputError, match="outcomes outcome1, rate_gbps"):
        TransferRequest("a", "b", explore=0.1, outcomes=[{"src": "a", "dst": "b", "ended_s": 0}])
