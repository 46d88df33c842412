"""Tariffs of links (contracts paid already, times of day, leases), and storage at relays."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from planner.model.baseline.modelled_links import baseline_network
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, FlatPrices
from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, Tariff, TimedTransfer, schedule_from
from planner.schedule.tariffs import LinkTariffs
from relayd.catalogue.loading import load_catalogue
from tests.planner.schedule.schedules import stored_usd

FEE_USD = 0.08


def schedule_of(names: list[str], *asked: TimedTransfer, **more: Any) -> SchedulePlan:
    """Return a schedule over links of 4 Gbit/s, whose fee is stated above."""
    rate = np.full((len(names), len(names)), 4.0)
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(names, rate, rtt_ms=0.0, per_flow_mbps=25 * rate)
    prices = FlatPrices(names, FEE_USD, 0.0)
    return recommend_schedule(
        ScheduleRequest(asked, **{"vms": 1, "vms_running": True, **more}), network, prices
    )


def two(
    *tariffs: Tariff, volume_gb: float = 900.0, deadline_s: float | None = 7200.0
) -> SchedulePlan:
    asked = TimedTransfer("t", "a", "b", volume_gb, deadline_s=deadline_s)
    return schedule_of(["a", "b"], asked, tariffs=tariffs)


def test_what_a_contract_has_paid_is_free() -> None:
    plan = two(Tariff("paid", "a", "b", rate_gbps=1.0))
    assert plan.cost_usd.egress == pytest.approx(0.0, abs=1e-6)  # 1 Gbit/s for two hours
    assert plan.transfers[0].end_s == pytest.approx(7200.0)
    plan = two(Tariff("paid", "a", "b", rate_gbps=1.0), deadline_s=3600.0)
    assert plan.cost_usd.egress == pytest.approx(450 * FEE_USD)  # the other half is not
    assert plan.bound_usd == pytest.approx(plan.cost_usd.egress)
    (use,) = plan.tariffs
    assert (use.volume_gb, use.saved_usd) == pytest.approx((450, 450 * FEE_USD))
    assert use.break_even_gb is None
    assert use.full_gb == pytest.approx(730 * 450)


def test_what_may_wait_waits_for_its_time_of_day() -> None:
    night = Tariff("night", "a", "b", start_s=3600.0, end_s=5400.0, every_s=86400.0)
    plan = two(night)
    (period,) = plan.transfers[0].periods
    assert (period.start_s, period.end_s) == pytest.approx((3600.0, 5400.0))
    assert plan.cost_usd.egress == pytest.approx(0.0, abs=1e-6)
    hurried = two(night, deadline_s=4500.0)
    assert hurried.cost_usd.egress == pytest.approx(450 * FEE_USD)
    tomorrow = two(night, volume_gb=1800.0, deadline_s=2 * 86400.0)
    assert [p.start_s for p in tomorrow.transfers[0].periods] == [3600.0, 86400.0 + 3600.0]
    without = two(replace(night, per_gb_usd=FEE_USD))
    assert without.transfers[0].end_s == pytest.approx(1800.0)


def test_a_lease_says_when_its_month_pays() -> None:
    lease = Tariff("lease", "a", "b", rate_gbps=10.0, per_gb_usd=0.02, monthly_usd=600.0)
    plan = two(replace(lease, start_s=900.0), deadline_s=1800.0)  # 900 s to be provided
    assert plan.cost_usd.egress == pytest.approx(450 * FEE_USD + 450 * 0.02)
    (use,) = plan.tariffs
    assert use.saved_usd == pytest.approx(450 * (FEE_USD - 0.02))
    assert use.break_even_gb == pytest.approx(600 / (FEE_USD - 0.02))
    assert use.full_gb == pytest.approx(730 * 4500)
    (unused,) = two(replace(lease, per_gb_usd=0.1)).tariffs
    assert (unused.volume_gb, unused.break_even_gb) == (0.0, None)


def test_tariffs_that_meet_leave_no_slot_between_them() -> None:
    night_s, day_s, every_s = 20 * 3600.0, 8.2 * 3600.0, 24 * 3600.0
    day = Tariff("day", "a", "b", start_s=day_s, end_s=night_s, every_s=every_s)
    night = Tariff("night", "a", "b", start_s=night_s, end_s=32.2 * 3600.0, every_s=every_s)
    last_s = 5 * every_s + day_s
    cuts_s = LinkTariffs([day, night], ["a", "b"], np.full((2, 2), FEE_USD)).cuts_s([0.0, last_s])
    assert len(cuts_s) == 12
    assert np.diff(cuts_s).min() == pytest.approx(day_s)
    plan = two(day, night, volume_gb=4.0 / 8 * (last_s - day_s), deadline_s=last_s)
    assert plan.cost_usd.egress == pytest.approx(0.0, abs=1e-6)
    periods = plan.transfers[0].periods
    assert (periods[0].start_s, periods[-1].end_s) == pytest.approx((day_s, last_s))
    assert all(one.end_s == other.start_s for one, other in pairwise(periods))


def test_what_recurs_may_hold_all_the_time() -> None:
    always = {"src": "a", "dst": "b", "start": "8.2h", "end": "32.2h", "every": "24h"}
    (tariff,) = ScheduleRequest((TimedTransfer("t", "a", "b", 1.0),), tariffs=[always]).tariffs
    assert two(replace(tariff, start_s=0.0, end_s=86400.0)).cost_usd.egress == 0.0


# ---- storage at relays ---------------------------------------------------------------------


HOUR_S = 3600.0
# The source's night is the first hour, the destination's the fifth.
NIGHTS = (
    Tariff("night at the source", "a", "r", start_s=0.0, end_s=HOUR_S),
    Tariff("night at the destination", "r", "b", start_s=4 * HOUR_S, end_s=5 * HOUR_S),
)
DAY = TimedTransfer("bulk", "a", "b", 900.0, deadline_s=6 * HOUR_S)


def three(asked: tuple[TimedTransfer, ...] = (DAY,), **more: Any) -> SchedulePlan:
    return schedule_of(["a", "b", "r"], *asked, **{"tariffs": NIGHTS, **more})


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


def test_what_does_not_fit_on_the_disk_or_is_dear_to_store_pays_the_fee() -> None:
    plan = three(disk_gb={"r": 300.0}, disk_usd_per_gb_month={"*": 0.0})
    (stored,) = plan.transfers[0].stored
    assert stored.most_gb == pytest.approx(300.0)
    assert plan.cost_usd.egress == pytest.approx(600 * FEE_USD)
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


# ---- input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"dst": "a"}, "source itself .* give the one that receives"),
        ({"rate": 0}, "above 0"),
        ({"start": "2h", "end": "1h"}, "after the start"),
        ({"every": "24h"}, "What recurs has an end"),
        ({"end": "2h", "every": "1h"}, "shorter than .* Give at least how long"),
        ({"usd_per_gb": "-1"}, "0 or more"),
        ({"color": 1}, "unknown field"),
    ],
)
def test_wrong_tariffs_are_named(entry: dict[str, object], words: str) -> None:
    asked = TimedTransfer("t", "a", "b", 1.0)
    with pytest.raises(InputError, match=words) as raised:
        ScheduleRequest((asked,), tariffs=[{"src": "a", "dst": "b", **entry}])
    assert raised.value.field.startswith("tariffs tariff1, ")


def test_tariffs_that_change_too_often_are_refused() -> None:
    with pytest.raises(InputError, match="in what is scheduled"):
        two(Tariff("t", "a", "b", end_s=0.1, every_s=0.2))
    each = [Tariff(f"t{n}", "a", "b", start_s=n + 0.5) for n in range(999)]
    with pytest.raises(InputError, match="change more than 1000 times"):
        two(*each, Tariff("one", "a", "b", start_s=5000.0, end_s=5001.0))
    with pytest.raises(InputError, match="in what is scheduled"):  # also beyond all deadlines
        two(Tariff("t", "a", "b", end_s=0.5, every_s=1.0), deadline_s=None)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"disk_gb": {"r": 1.0}, "relays": "none"}, "disk_gb is for relays"),
        ({"disk_usd_per_gb_month": {"*": 0.1}}, "there is none.*Say how much"),
        ({"disk_gb": {"r": 1.0}, "avoid": ["r"]}, "disk_gb r is at a region that may not relay"),
        ({"disk_gb": {"r": 0.0}}, "above 0"),
    ],
)
def test_wrong_disks_are_named(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        three(**more)


@pytest.mark.parametrize("volume_gb", [397.0, 400.0, 410.0, 500.0])
def test_rounding_parts_no_period_in_two(volume_gb: float) -> None:
    catalogue = load_catalogue()
    names = ["aws:ap-northeast-1", "gcp:us-east1", "azure:brazilsouth", "azure:eastus2"]
    network = baseline_network(catalogue).with_(restricted_to=names)
    tokyo, east, brazil, other = names
    asked = [
        TimedTransfer("t0", brazil, other, 1.0, start_s=50.0, deadline_s=600.0),
        TimedTransfer("t1", tokyo, east, volume_gb, deadline_s=7200.0),
        TimedTransfer("t2", brazil, east, 20.0, start_s=100.0, deadline_s=7200.0),
    ]
    tariffs = [
        Tariff(f"of {src}", src, dst, per_gb_usd=0.001, rate_gbps=1.0)
        for src, dst in ((brazil, other), (tokyo, east))
    ]
    request = ScheduleRequest(asked, tariffs=tariffs, vms=3, relays="none")
    plan = recommend_schedule(request, network, CataloguePrices(catalogue, network))
    for transfer in plan.transfers:
        for one, after in pairwise(transfer.periods):
            gap_s = after.start_s - one.end_s
            assert gap_s == 0 or gap_s > 1e-3
