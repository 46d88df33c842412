"""Tariffs of links: percentile contracts paid already, times of day, leased interconnects."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, Tariff, TimedTransfer
from planner.schedule.tariffs import LinkTariffs
from tests.planner.schedule.schedules import Full, World, assert_kept, transfers, world
from tests.planner.schedule.test_schedule_program import admitted, assert_carried, both
from tests.properties import examples

FEE_USD = 0.08


def two(
    *tariffs: Tariff, volume_gb: float = 900.0, deadline_s: float | None = 7200.0
) -> SchedulePlan:
    """Return a schedule of one transfer over one link of 4 Gbit/s, whose fee is stated above."""
    names = ["a", "b"]
    rate = np.array([[0.0, 4.0], [4.0, 0.0]])
    network = Network.from_matrices(names, rate, rtt_ms=0.0, per_flow_mbps=25 * rate)
    asked = TimedTransfer("t", "a", "b", volume_gb, deadline_s=deadline_s)
    request = ScheduleRequest((asked,), tariffs=tariffs)
    return recommend_schedule(request, network, FlatPrices(names, FEE_USD, 0.0))


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


def test_the_cheapest_tariff_of_a_link_is_used_first() -> None:
    plan = two(
        Tariff("dear", "a", "b", rate_gbps=0.5, per_gb_usd=0.05),
        Tariff("cheap", "a", "b", rate_gbps=0.5, per_gb_usd=0.01),
        deadline_s=3600.0,
    )
    assert [use.volume_gb for use in plan.tariffs] == pytest.approx([225, 225])
    usd = 225 * 0.05 + 225 * 0.01 + 450 * FEE_USD
    assert plan.cost_usd.egress == pytest.approx(usd)


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


@pytest.mark.parametrize(("end_s", "turns"), [(0.5, 501), (1.0, 1001)])
def test_best_effort_goes_on_at_the_fee_after_tariffs_are_counted(end_s: float, turns: int) -> None:
    plan = two(Tariff("t", "a", "b", end_s=end_s, every_s=1.0), deadline_s=None)
    assert plan.transfers[0].end_s == pytest.approx(1800.0, abs=1.0)
    (use,) = plan.tariffs
    assert use.volume_gb == pytest.approx(0.5 * end_s * turns)
    assert plan.cost_usd.egress == pytest.approx((900.0 - use.volume_gb) * FEE_USD)
    assert plan.bound_usd <= plan.cost_usd.egress
    assert any("counted no longer" in warning for warning in plan.warnings)


# ---- against independent models ------------------------------------------------------------


def random_tariffs(of: World, seed: int, last_s: float) -> list[Tariff]:
    """Return tariffs of some links: several of one link, recurring or not, any rate or some."""
    random = np.random.default_rng(3000 + seed)
    found = []
    for number in range(int(random.integers(2, 7))):
        src, dst = (int(site) for site in random.choice(len(of.rate), 2, replace=False))
        start_s = float(random.uniform(0, last_s / 2))
        length_s = float(random.uniform(50, last_s))
        recurs = random.random() < 0.4
        tariff = Tariff(
            f"f{number}",
            of.names[src],
            of.names[dst],
            rate_gbps=None if random.random() < 0.2 else float(random.uniform(0.05, 4.0)),
            per_gb_usd=float(random.choice([0.0, 0.005, 0.05])),
            start_s=start_s,
            end_s=start_s + length_s if recurs or random.random() < 0.6 else None,
            every_s=length_s * float(random.uniform(1.0, 3.0)) if recurs else None,
        )
        found.append(tariff)
    return found


def reference_usd(full: Full, tariffs: list[Tariff], whole: set[int]) -> float:
    """Return the least fees of the whole program by HiGHS, with a volume for each tariff."""
    of = full.of
    lengths, middles = np.diff(full.cuts), (full.cuts[1:] + full.cuts[:-1]) / 2
    fees, on = full.fees_usd, [column.links for column in full.columns]
    saved, most, keys = [], [], []
    for tariff in tariffs:
        link = of.names.index(tariff.src), of.names.index(tariff.dst)
        for slot, middle_s in enumerate(middles.tolist()):
            since_s = middle_s - tariff.start_s
            held_s = inf if tariff.end_s is None else tariff.end_s - tariff.start_s
            if since_s >= 0 and (since_s % tariff.every_s if tariff.every_s else since_s) < held_s:
                saved.append(tariff.per_gb_usd / 8 - of.fees[link] / 8)
                rate = inf if tariff.rate_gbps is None else tariff.rate_gbps
                most.append(rate * lengths[slot])
                keys.append((slot, *link))
    rows = sorted(set(keys))
    by_tariffs = coo_matrix(
        ([1.0] * len(keys), ([rows.index(key) for key in keys], range(len(keys)))),
        shape=(len(rows), len(keys)),
    )
    over = [(rows.index(k), c) for c, links in enumerate(on) for k in links if k in rows]
    sent = coo_matrix(
        ([-1.0] * len(over), tuple(zip(*over, strict=True)) or ([], [])),
        shape=(len(rows), len(fees)),
    )
    volumes = np.array([v if n in whole else 0.0 for n, v in enumerate(full.volumes)])
    carried = vstack([full.caps, full.moved, -full.moved])
    solved = linprog(
        np.array([*fees, *saved]),
        A_ub=vstack(
            [
                hstack([carried, coo_matrix((carried.shape[0], len(keys)))]),
                hstack([sent, by_tariffs]),
            ]
        ),
        b_ub=np.concatenate([full.limits, volumes, -volumes, np.zeros(len(rows))]),
        bounds=[(0, None)] * len(fees) + [(0, limit) for limit in most],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


@pytest.mark.parametrize("fill", [0.2, 0.8])
@pytest.mark.parametrize("seed", range(12))
def test_least_fees_are_those_of_the_whole_program(seed: int, fill: float) -> None:
    tariffs = random_tariffs(world(seed), seed, 4000.0)
    program, full = both(seed, fill, tariffs=tariffs)
    inside = admitted(program, full)
    exact_usd = reference_usd(full, tariffs, inside)
    without_usd = full.least_fees(inside)
    least_usd, bound_usd = program.least_fees()
    assert least_usd == pytest.approx(exact_usd, rel=1e-5, abs=1e-6 * without_usd)
    assert bound_usd <= exact_usd + 1e-6 * without_usd
    assert_carried(program, full, inside)
    program.earliest(least_usd)
    assert_carried(program, full, inside)


def charged_usd(of: World, plan: SchedulePlan, tariffs: list[Tariff]) -> float:
    """Return what links and tariffs charge for the periods of a plan, moment by moment."""
    sent: list[tuple[float, float, int, int, float]] = []
    for transfer in plan.transfers:
        for period in transfer.periods:
            for path in period.paths:
                at = [of.names.index(region) for region in path.regions]
                sent += [
                    (period.start_s, period.end_s, u, v, path.throughput_gbps)
                    for u, v in pairwise(at)
                ]
    last_s = max((end for _, end, *_ in sent), default=0.0)
    times = {time for start, end, *_ in sent for time in (start, end)}
    for tariff in tariffs:
        turn = tariff.start_s
        while turn < last_s:
            times |= {turn, tariff.end_s or last_s if tariff.every_s is None else turn}
            if tariff.every_s is None:
                break
            assert tariff.end_s is not None
            times.add(turn + tariff.end_s - tariff.start_s)
            turn += tariff.every_s
    usd, ordered = 0.0, sorted(times)
    for start_s, end_s in pairwise(ordered):
        middle_s = (start_s + end_s) / 2
        rates: dict[tuple[int, int], float] = {}
        for begin, stop, u, v, rate in sent:
            if begin <= middle_s < stop:
                rates[u, v] = rates.get((u, v), 0.0) + rate
        for link, rate in rates.items():
            left = rate
            for tariff in sorted(tariffs, key=lambda tariff: tariff.per_gb_usd):
                ends = of.names.index(tariff.src), of.names.index(tariff.dst)
                if ends != link or tariff.per_gb_usd >= of.fees[link]:
                    continue
                if tariff.holds_at(middle_s):
                    part = min(left, inf if tariff.rate_gbps is None else tariff.rate_gbps)
                    usd += part * tariff.per_gb_usd / 8 * (end_s - start_s)
                    left -= part
            usd += left * of.fees[link] / 8 * (end_s - start_s)
    return usd


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.2, 0.8, 1.5]), st.booleans())
def test_a_plan_costs_what_its_periods_do_and_no_more_than_the_least(
    seed: int, fill: float, untimed: bool
) -> None:
    of = world(seed)
    asked = transfers(of, seed, 5, fill)
    if untimed:
        asked[0] = replace(asked[0], deadline_s=None)
    tariffs = random_tariffs(of, seed, 4000.0)
    plan = of.schedule(*asked, tariffs=tariffs, explain=0)
    assert_kept(of, plan)
    egress_usd = plan.cost_usd.egress
    plain = of.schedule(*asked, explain=0)
    room_usd = 1e-6 * plain.cost_usd.egress
    assert egress_usd == pytest.approx(charged_usd(of, plan, tariffs), rel=1e-6, abs=room_usd)
    assert sum(t.egress_usd for t in plan.transfers) == pytest.approx(egress_usd)
    assert plan.bound_usd <= egress_usd + room_usd
    if not untimed:
        assert egress_usd <= plan.bound_usd + 10 * room_usd
        assert {t.id for t in plan.transfers if t.verdict == "admitted"} == {
            t.id for t in plain.transfers if t.verdict == "admitted"
        }
    covered = sum(use.saved_usd for use in plan.tariffs)
    fees_usd = sum(
        path.throughput_gbps
        * (period.end_s - period.start_s)
        / 8
        * sum(of.fees[of.names.index(u), of.names.index(v)] for u, v in pairwise(path.regions))
        for transfer in plan.transfers
        for period in transfer.periods
        for path in period.paths
    )
    assert egress_usd == pytest.approx(fees_usd - covered, rel=1e-6, abs=room_usd)


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
    with pytest.raises(InputError, match="change 1001 times"):
        two(*each, Tariff("one", "a", "b", start_s=5000.0, end_s=5001.0))
