"""What leased interconnects make of a transfer, and from what volume a month they pay."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.plan import LeasedPath, Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

NAMES = ["a", "b", "relay", "other"]
FEE, HOUR = 0.1, 2.0


def plan(*leases: dict[str, Any], **more: Any) -> Plan:
    """Return a plan for 900 GB from a to b: links of 4 Gbit/s, VMs that send and receive 4."""
    rate = np.full((4, 4), 4.0)
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(NAMES, rate, rtt_ms=0.0, per_flow_mbps=25 * rate)
    asked: dict[str, Any] = {"volume_gb": 900, "vms": 3, "vm_start_s": 60, **more}
    request = TransferRequest("a", "b", leases=leases, **asked)
    return recommend(request, network, FlatPrices(NAMES, FEE, HOUR))


def leased(lease: dict[str, Any], **more: Any) -> LeasedPath:
    (found,) = plan(lease, **more).leases
    return found


def test_a_lease_says_what_it_takes_and_when_its_month_pays() -> None:
    lease = {"id": "line", "src": "a", "dst": "b", "rate": "2gbps", "per_gb_usd": 0.02}
    found = leased({**lease, "monthly_usd": 700, "ready": "1h"}, objective="cost")
    assert found.regions == ("a", "b")
    assert found.throughput_gbps == 2
    assert found.duration_s == pytest.approx(3600 + 3600)
    assert found.vms == {"a": 1, "b": 1}
    # One VM at each end for an hour, and the minute in which it starts.
    assert found.cost_usd.vm == pytest.approx(2 * HOUR * (1 + 1 / 60))
    assert found.cost_usd.egress == pytest.approx(18)
    without = plan(objective="cost")
    saved = without.cost_usd.total - found.cost_usd.total
    assert found.saved_usd == pytest.approx(saved)
    assert found.break_even_gb == pytest.approx(700 * 900 / saved)
    assert found.full_gb == pytest.approx(2 * 730 * 3600 / 8)
    assert found.feasible
    assert found.better


def test_leases_change_nothing_of_what_is_recommended_without() -> None:
    lease = {"src": "a", "dst": "b", "rate": 1}
    with_one, without = plan(lease), plan()
    for name in ("verdict", "cost_usd", "duration_s", "paths", "direct", "best_relay", "advice"):
        assert getattr(with_one, name) == getattr(without, name)


def test_a_dear_lease_is_never_earned_and_a_free_one_costs_no_month() -> None:
    dear = leased({"src": "a", "dst": "b", "rate": 2, "per_gb_usd": 1, "monthly_usd": 5})
    assert dear.saved_usd < 0
    assert dear.break_even_gb is None
    assert not dear.better
    assert leased({"src": "a", "dst": "b", "rate": 2}).break_even_gb is None


def test_a_lease_to_or_from_a_relay_pays_the_other_link_as_usual() -> None:
    for src, dst in (("a", "relay"), ("relay", "b")):
        found = leased({"src": src, "dst": dst, "rate": 9, "per_gb_usd": 0.01}, objective="time")
        assert found.regions == ("a", "relay", "b")
        assert found.cost_usd.egress == pytest.approx(900 * (0.01 + FEE))
        assert found.throughput_gbps == 9
        assert found.vms == {"a": 3, "relay": 3, "b": 3}


@pytest.mark.parametrize(
    ("lease", "more"),
    [
        ({"src": "relay", "dst": "other"}, {}),
        ({"src": "b", "dst": "a"}, {}),
        ({"src": "a", "dst": "relay"}, {"relays": "none"}),
        ({"src": "a", "dst": "relay"}, {"relays": "other"}),
        ({"src": "a", "dst": "relay"}, {"avoid": ["relay"]}),
    ],
)
def test_leases_on_no_permitted_path_are_left_out(
    lease: dict[str, Any], more: dict[str, Any]
) -> None:
    assert plan({**lease, "rate": 1}, **more).leases == ()


def test_limits_that_a_lease_misses_are_named() -> None:
    late = leased({"src": "a", "dst": "b", "rate": 9, "ready": "2h"}, deadline="1h")
    assert (late.feasible, late.reason) == (False, "misses the deadline")
    slow = leased({"src": "a", "dst": "b", "rate": 1}, min_throughput="2gbps")
    assert (slow.feasible, slow.better, slow.reason) == (False, False, "misses the least rate")


def test_wrong_leases_are_refused() -> None:
    with pytest.raises(InputError, match="leases lease1, dst"):
        plan({"src": "a", "dst": "a", "rate": 1})
    with pytest.raises(InputError, match="rate_gbps"):
        plan({"src": "a", "dst": "b"})


@given(
    rate=st.floats(0.5, 20),
    hour=st.sampled_from([0.0, 1.0, 50.0]),
    volume=st.floats(1, 5000),
    objective=st.sampled_from(["value", "time", "cost"]),
    via=st.sampled_from(["b", "relay"]),
)
def test_no_number_of_vms_is_better(
    rate: float, hour: float, volume: float, objective: str, via: str
) -> None:
    """Against every number of VMs at every site, each as fast as it can be."""
    found = leased(
        {"src": "a", "dst": via, "rate": rate, "per_gb_usd": 0.01},
        objective=objective,
        time_value_usd_per_h=hour,
        volume_gb=volume,
    )
    per_h = {"value": hour, "time": None, "cost": 0.0}[objective]

    def value(gbps: float, vms: int) -> float:
        hours = volume * 8 / gbps / 3600
        if per_h is None:
            return hours
        return vms * HOUR * (hours + 60 / 3600) + per_h * hours

    least = min(
        value(min(rate, *(4.0 * n for n in counts)), sum(counts))
        for counts in product(range(1, 4), repeat=len(found.regions))
    )
    mine = value(found.throughput_gbps, sum(found.vms.values()))
    assert mine == pytest.approx(least, rel=1e-6)
