"""Storage at relays: equal to an independent program, within disks at every moment, and priced."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, Tariff, TimedTransfer, schedule_from
from tests.planner.schedule.schedules import World, assert_kept, stored_usd, transfers, world
from tests.planner.schedule.test_schedule_program import admitted, assert_carried, both
from tests.planner.schedule.test_tariffs import charged_usd, random_tariffs, reference_usd
from tests.properties import examples

FEE_USD = 0.08
HOUR_S = 3600.0
# The source's night is the first hour, the destination's the fifth.
NIGHTS = (
    Tariff("night at the source", "a", "r", start_s=0.0, end_s=HOUR_S),
    Tariff("night at the destination", "r", "b", start_s=4 * HOUR_S, end_s=5 * HOUR_S),
)
DAY = TimedTransfer("bulk", "a", "b", 900.0, deadline_s=6 * HOUR_S)


def three(asked: tuple[TimedTransfer, ...] = (DAY,), **more: Any) -> SchedulePlan:
    """Return a schedule over links of 4 Gbit/s between a, r and b, whose fee is stated above."""
    names = ["a", "b", "r"]
    rate = np.full((3, 3), 4.0)
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(names, rate, rtt_ms=0.0, per_flow_mbps=25 * rate)
    request = ScheduleRequest(asked, **{"tariffs": NIGHTS, **more})
    return recommend_schedule(request, network, FlatPrices(names, FEE_USD, 0.0))


def test_what_waits_at_a_relay_goes_by_both_nights() -> None:
    plain = three()
    assert plain.cost_usd.egress == pytest.approx(900 * FEE_USD)
    plan = three(disk_gb={"r": 5000.0})
    assert plan.cost_usd.egress == pytest.approx(0.0, abs=1e-6)
    (stored,) = plan.transfers[0].stored
    assert stored.region == "r"
    assert stored.most_gb == pytest.approx(900.0)
    # In by the last half hour of one night, three hours there, out by the first of the other.
    assert (stored.start_s, stored.end_s) == pytest.approx((0.5 * HOUR_S, 4.5 * HOUR_S))
    assert plan.storage_usd == pytest.approx(900 * 0.10 * 3.5 / 730)
    assert plan.storage_usd == pytest.approx(stored.usd)
    assert plan.cost_usd.total == pytest.approx(plan.cost_usd.vm + stored.usd, abs=1e-6)
    assert plan.bound_usd == pytest.approx(0.0, abs=1e-6)
    assert plan.relayed_share == pytest.approx(1.0)
    first, last = plan.transfers[0].periods[0], plan.transfers[0].periods[-1]
    assert [path.regions for path in (*first.paths, *last.paths)] == [("a", "r"), ("r", "b")]


def test_what_does_not_fit_on_the_disk_pays_the_fee() -> None:
    plan = three(disk_gb={"r": 300.0}, disk_usd_per_gb_month={"*": 0.0})
    (stored,) = plan.transfers[0].stored
    assert stored.most_gb == pytest.approx(300.0)
    assert plan.cost_usd.egress == pytest.approx(600 * FEE_USD)


def test_what_is_dearer_to_store_than_to_send_is_not_stored() -> None:
    dear = three(disk_gb={"r": 5000.0}, disk_usd_per_gb_month={"r": 20.0, "*": 0.0})
    assert not dear.transfers[0].stored
    assert dear.cost_usd.egress == pytest.approx(900 * FEE_USD)


@pytest.mark.parametrize("now_h", [0.75, 1.0, 2.5, 4.25])
def test_what_lies_at_a_relay_is_sent_on_from_there(now_h: float) -> None:
    disk_gb = {"r": 5000.0}
    plan = three(disk_gb=disk_gb)
    going_on = schedule_from(plan.model_dump("json"))
    later = three((), existing=going_on, now_s=now_h * HOUR_S, disk_gb=disk_gb)
    assert later.transfers[0].verdict == "admitted"
    assert later.cost_usd.egress == pytest.approx(0.0, abs=1e-5)
    assert stored_usd(later, disk_gb, 0.10) == pytest.approx(plan.storage_usd, rel=1e-3)
    assert 0.0 < later.storage_usd <= plan.storage_usd * (1 + 1e-6)
    with pytest.raises(InputError, match="the schedule in progress has there"):
        three((), existing=going_on, now_s=now_h * HOUR_S)


def nights(of: World, asked: list[TimedTransfer], sites: Collection[int]) -> list[Tariff]:
    """Return tariffs that transfers can use by storage: early to a site, and late from there."""
    found: list[Tariff] = []
    for transfer in asked:
        window_s = (transfer.deadline_s or 0.0) - transfer.start_s
        for name in (of.names[site] for site in sites):
            for src, dst, from_s in ((transfer.src, name, 0.0), (name, transfer.dst, 0.7)):
                if src != dst:
                    start_s = transfer.start_s + from_s * window_s
                    end_s = start_s + 0.3 * window_s
                    tariff_id = f"night{len(found)}"
                    found.append(Tariff(tariff_id, src, dst, start_s=start_s, end_s=end_s))
    return found


@pytest.mark.parametrize("fill", [0.2, 0.8])
@pytest.mark.parametrize("seed", range(12))
def test_least_costs_are_those_of_the_whole_program(seed: int, fill: float) -> None:
    of = world(seed)
    random = np.random.default_rng(seed)
    disks = {
        int(site): (float(random.choice([5.0, 20.0, 1e5])), float(random.choice([0.1, 20.0])))
        for site in random.choice(len(of.rate), 2, replace=False)
        if of.may_relay[site]
    }
    tariffs = random_tariffs(of, seed, 4000.0) + nights(of, transfers(of, seed, 4, fill), disks)
    program, full = both(seed, fill, tariffs=tariffs, disks=disks)
    inside = admitted(program, full)
    exact_usd = reference_usd(full, tariffs, inside)
    least_usd, bound_usd = program.least_fees()
    room_usd = 1e-6 * full.least_fees(inside)
    assert least_usd == pytest.approx(exact_usd, rel=1e-5, abs=room_usd)
    assert bound_usd <= exact_usd + room_usd
    assert_carried(program, full, inside)
    program.earliest(least_usd)
    assert_carried(program, full, inside)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.2, 0.8, 1.5]),
    st.sampled_from([0.5, 50.0, 1e5]),
    st.sampled_from([0.0, 0.1, 100.0]),
)
def test_disk_never_costs_more_and_always_keeps_within(
    seed: int, fill: float, disk_gb: float, price_usd: float
) -> None:
    of = world(seed)
    asked = transfers(of, seed, 4, fill)
    sites = [site for site in range(3) if of.may_relay[site]]
    disks = {of.names[site]: disk_gb for site in sites}
    tariffs = random_tariffs(of, seed, 4000.0) + nights(of, asked, sites)
    plain = of.schedule(*asked, tariffs=tariffs, explain=0)
    plan = of.schedule(
        *asked,
        tariffs=tariffs,
        explain=1,
        disk_gb=disks,
        disk_usd_per_gb_month={"*": price_usd} if disks else {},
    )
    assert_kept(of, plan)
    cost = plan.cost_usd
    room_usd = 1e-6 * sum(t.volume_gb for t in asked)
    assert plan.storage_usd == pytest.approx(
        stored_usd(plan, disks, price_usd), rel=1e-4, abs=room_usd
    )
    assert cost.egress == pytest.approx(charged_usd(of, plan, tariffs), rel=1e-5, abs=room_usd)
    assert plan.bound_usd <= cost.egress + room_usd
    for one, other in zip(plan.admission, plain.admission, strict=True):
        assert one.reached >= other.reached * (1 - 1e-9)
        if one.reached > other.reached:
            return
    verdicts = [t.verdict for t in plan.transfers]
    if verdicts == [t.verdict for t in plain.transfers]:
        assert cost.egress + plan.storage_usd <= plain.cost_usd.egress + room_usd
    refused = next((t for t in plan.transfers if t.remedies), None)
    if refused and refused.remedies:
        again = [
            t
            if t.id != refused.id
            else TimedTransfer(
                t.id, t.src, t.dst, t.volume_gb, t.start_s, refused.remedies.deadline_s, t.priority
            )
            for t in asked
            if t.id == refused.id or plan.transfer(t.id).verdict == "admitted"
        ]
        retried = of.schedule(*again, tariffs=tariffs, explain=0, disk_gb=disks)
        assert retried.admitted == len(again)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"disk_gb": {"r": 1.0}, "relays": "none"}, "disk_gb: is for relays"),
        ({"disk_usd_per_gb_month": {"*": 0.1}}, "there is none.*Say how much"),
        ({"disk_gb": {"r": 1.0}, "avoid": ["r"]}, "disk_gb r: is at a region that may not relay"),
        ({"disk_gb": {"r": 0.0}}, "above 0"),
    ],
)
def test_wrong_disks_are_named(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        three(**more)
