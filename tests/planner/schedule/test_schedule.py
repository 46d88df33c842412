"""Schedules: equal to an independent program, within caps at every moment, promises kept."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import relayd
from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.schedule import admission
from planner.schedule.problem import PendingTransfer, as_shuffle, schedule_problem
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer, schedule_from
from tests.planner.schedule.schedules import (
    Full,
    assert_kept,
    charged_usd,
    nights,
    random_tariffs,
    scheduled,
    stored_usd,
    transfers,
    valued,
)
from tests.planner.worlds import even, world
from tests.properties import examples

WITHIN = 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "tariffs", "disks"])
@pytest.mark.parametrize("seed", range(examples(45)))
def test_no_set_of_transfers_is_worth_more_and_no_schedule_of_it_cheaper(
    seed: int, kind: str
) -> None:
    of = world(seed)
    random = np.random.default_rng(seed)
    count = 3 + seed % 7 if kind == "plain" else 4
    asked = valued(transfers(of, seed, count, [0.3, 1.0, 2.0][seed % 3]), seed)
    sites = [site for site in range(3) if of.may_relay[site]] if kind == "disks" else []
    usd = float(random.choice([0.0, 0.0, 0.1, 20.0]))
    disks = {site: (float(random.choice([5.0, 20.0, 1e5])), usd) for site in sites}
    disk_gb = {of.names[site]: gb for site, (gb, _) in disks.items()}
    tariffs = [] if kind == "plain" else random_tariffs(of, seed) + nights(asked, list(disk_gb))
    more = {
        "tariffs": tariffs,
        "disk_gb": disk_gb,
        "disk_usd_per_gb_month": {"*": usd} if disks else {},
    }
    full = Full(of, asked, tariffs, disks)
    plan = scheduled(of, *asked, explain=1, **more)
    assert_kept(of, plan)
    admitted = {n for n, t in enumerate(plan.transfers) if t.verdict == "admitted"}
    before: set[int] = set()
    for of_class in plan.admission:
        worth = {
            n: t.value_usd or 1.0
            for n, t in enumerate(asked)
            if t.priority == of_class.priority
            and (t.value_usd is None) == (of_class.objective == "number")
        }
        best = full.best(before, worth)
        assert of_class.reached == pytest.approx(best, rel=1e-5)
        assert of_class.bound == pytest.approx(best, rel=1e-5)
        assert of_class.bound >= of_class.reached
        before |= admitted & worth.keys()
    assert before == admitted
    egress_usd, lies_usd = plan.cost_usd.egress, plan.storage_usd
    room_usd = 1e-6 * sum(t.volume_gb for t in asked)
    least_usd = full.least_usd(admitted)
    # What is stored may lie there longer or shorter than from the middle of a slot to another's.
    assert egress_usd + 0.75 * lies_usd <= least_usd * (1 + WITHIN) + room_usd
    if not lies_usd:
        assert egress_usd == pytest.approx(least_usd, rel=WITHIN, abs=room_usd)
    assert plan.bound_usd <= egress_usd + room_usd
    if kind == "plain":
        assert plan.bound_usd == pytest.approx(least_usd, rel=1e-3)
    charged = charged_usd(of, plan, tariffs)
    assert egress_usd == pytest.approx(charged, rel=WITHIN, abs=room_usd)
    assert sum(t.egress_usd for t in plan.transfers) == pytest.approx(egress_usd, abs=room_usd)
    saved = charged_usd(of, plan, []) - sum(use.saved_usd for use in plan.tariffs)
    assert egress_usd == pytest.approx(saved, rel=WITHIN, abs=room_usd)
    assert lies_usd == pytest.approx(stored_usd(plan, disk_gb, usd), rel=1e-4, abs=room_usd)
    refused = next((t for t in plan.transfers if t.remedies), None)
    if refused and refused.remedies:
        number = plan.transfers.index(refused)
        most_gb = full.most_moved_gbit(admitted, number) / 8
        assert refused.remedies.volume_gb == pytest.approx(most_gb, rel=WITHIN, abs=1e-6)
        later = replace(asked[number], deadline_s=refused.remedies.deadline_s)
        again = [later if n == number else asked[n] for n in sorted({*admitted, number})]
        assert scheduled(of, *again, explain=0, **more).admitted == len(again)


@pytest.mark.parametrize("seed", range(3, 9, 2))
def test_a_search_that_is_cut_short_states_a_bound_that_holds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = world(seed)
    asked = [replace(t, priority=0) for t in valued(transfers(of, seed, 9, 3.0), seed)]
    best = scheduled(of, *asked, explain=0)
    monkeypatch.setattr(admission, "MOST_WORK", 1)
    plan = scheduled(of, *asked, explain=0)
    assert_kept(of, plan)
    found, whole = plan.admission[0], best.admission[0]
    assert found.reached <= whole.reached < found.bound
    assert whole.bound == whole.reached
    assert any("cut short" in warning for warning in plan.warnings)
    assert not any("cut short" in warning for warning in best.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(examples(30)), 380])
def test_remedies_do_when_applied_and_less_would_not(seed: int) -> None:
    of = world(seed)
    asked = transfers(of, seed, 6, 2.0)
    plan = scheduled(of, *asked)
    before = {t.id for t in plan.transfers if t.verdict == "admitted"}
    for number, refused in enumerate(plan.transfers):
        remedies = refused.remedies
        if remedies is None:
            continue

        def fits(at: int, more: dict[str, int] | None = None, **change: float) -> bool:
            changed = replace(asked[at], **change)  # type: ignore[arg-type]
            together = [*(t for t in asked if t.id in before), changed]
            return Full(of.with_vms(more or {}), together).fits({*range(len(together))})

        def admits(at: int, **change: float) -> bool:
            changed = [*asked[:at], replace(asked[at], **change), *asked[at + 1 :]]  # type: ignore[arg-type]
            found = scheduled(of, *changed, explain=0).transfer(asked[at].id)
            return bool(found.verdict == "admitted")

        assert fits(number, deadline_s=remedies.deadline_s)
        assert admits(number, deadline_s=remedies.deadline_s)
        assert not fits(number, deadline_s=remedies.deadline_s - 1.01)
        if remedies.volume_gb > 0:
            assert fits(number, volume_gb=remedies.volume_gb)
            assert admits(number, volume_gb=remedies.volume_gb)
            assert not fits(number, volume_gb=remedies.volume_gb * 1.001)
        assert fits(number, remedies.more_vms.vms)
        whole = Full(of, [*(t for t in asked if t.id in before), asked[number]])
        fewest = max(1, ceil(whole.fewest_vms() - 1e-5))
        assert 1 <= remedies.more_vms.at_least <= fewest <= sum(remedies.more_vms.vms.values())


# ---- known answers -------------------------------------------------------------------------

PAIR = [[0.0, 4.0], [4.0, 0.0]]


def transfer(name: str, volume_gb: float, **more: Any) -> TimedTransfer:
    return TimedTransfer(name, "r0", "r1", volume_gb, **more)


def test_one_transfer_is_a_division_and_sent_at_once() -> None:
    of = even(PAIR)
    plan = scheduled(of, transfer("a", 100, deadline_s=86400.0), vms_running=False)
    (found,) = plan.transfers
    assert found.verdict == "admitted"
    assert plan.vm_start_s == 60
    assert found.periods[0].start_s == pytest.approx(60)
    assert found.end_s == pytest.approx(260)
    assert found.slack_s == pytest.approx(86140)
    assert [p.throughput_gbps for p in found.periods] == pytest.approx([4.0])
    assert plan.cost_usd.egress == pytest.approx(2.0)
    assert plan.cost_usd.vm == pytest.approx(2 * (200 + 60) / 3600)
    # VMs of a transfer that waits start in time for it, and those of one under way run.
    later = transfer("b", 100, start_s=90, deadline_s=290.0)
    plan = scheduled(of, later, vms_running=False)
    assert plan.transfer("b").end_s == pytest.approx(290)
    for now_s in (0.0, 30.0, 150.0):
        again = scheduled(of, existing=plan, now_s=now_s, vms_running=False)
        assert again.transfer("b").end_s == pytest.approx(290)


def test_what_a_higher_priority_keeps_out_is_warned_of_with_its_worth() -> None:
    poor = transfer("poor", 100, deadline_s=200.0, value_usd=50.0)
    rich = transfer("rich", 50, deadline_s=200.0, value_usd=40.0)
    plan = scheduled(even(PAIR), poor, rich)
    assert [t.verdict for t in plan.transfers] == ["admitted", "refused"]
    assert plan.value_usd == 50
    plan = scheduled(even(PAIR), replace(poor, priority=1, value_usd=1.0), rich)
    assert plan.transfer("poor").verdict == "admitted"
    assert any("worth $1.00" in warning for warning in plan.warnings)


def test_best_effort_takes_what_is_left_and_never_waits_while_there_is_room() -> None:
    of = even([[0.0, 4.0, 4.0], [4.0, 0.0, 4.0], [4.0, 4.0, 0.0]])
    plan = scheduled(
        of,
        transfer("timed", 100, deadline_s=200.0),
        transfer("high", 50, priority=2),
        transfer("low", 50, priority=1),
        TimedTransfer("elsewhere", "r2", "r0", 50),
    )
    assert_kept(of, plan)
    ends = {t.id: t.end_s for t in plan.transfers}
    assert ends == {
        "timed": pytest.approx(200),
        "high": pytest.approx(300),
        "low": pytest.approx(400),
        "elsewhere": pytest.approx(100),
    }
    # Whole numbers are as good as others.
    whole = scheduled(of, transfer("a", 50, start_s=1), existing=plan, now_s=500)
    assert whole.transfer("a").end_s == pytest.approx(600)
    equals = scheduled(of, transfer("a", 50), transfer("b", 100))
    assert [t.end_s for t in equals.transfers] == pytest.approx([200, 300])


@pytest.mark.parametrize(("connections", "admitted"), [(50, 5), (20, 2)])
def test_slow_paths_side_by_side_fill_a_fast_vm(connections: int, admitted: int) -> None:
    """Five paths of 2 Gbit/s, 200 Mbit/s a connection, from a VM of 10 Gbit/s: 50 suffice."""
    names = ["s", *"abcde"]
    rate, caps = np.full((6, 6), 2.0), [10.0] * 6
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(
        names, rate, rtt_ms=0.0, per_flow_mbps=100 * rate, egress_gbps=caps, ingress_gbps=caps
    )
    asked = tuple(TimedTransfer(n, "s", n, 100, deadline_s=400.0) for n in names[1:])
    request = ScheduleRequest(asked, connections=connections, vms=1, vms_running=True)
    plan = recommend_schedule(request, network, FlatPrices(names, 0.02, 1.0))
    assert (plan.admitted, plan.relayed_share) == (admitted, 0.0)
    assert plan.end_s == pytest.approx(400)
    assert plan.connections["s"] == 10 * admitted


def test_getting_up_to_speed_is_part_of_the_window() -> None:
    names = ["a", "b"]
    network = Network.from_matrices(names, np.array(PAIR), rtt_ms=100.0)

    def alone(deadline_s: float) -> Any:
        asked = TimedTransfer("x", "a", "b", 100, deadline_s=deadline_s)
        prices = FlatPrices(names, 0.02, 1.0)
        return recommend_schedule(ScheduleRequest((asked,), vms=1), network, prices).transfers[0]

    assert alone(260.9).end_s == pytest.approx(260.85)
    assert alone(260.8).remedies.deadline_s == 261
    hopeless = alone(60.5).remedies
    assert (hopeless.volume_gb, hopeless.more_vms, hopeless.deadline_s) == (0.0, None, 261)


# ---- schedules in progress -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_schedule_in_progress_takes_more_without_breaking_a_promise(seed: int) -> None:
    of = world(seed)
    asked = transfers(of, seed, 9, 0.8)
    early, late = asked[:5], asked[5:]
    plan = scheduled(of, *early, transfer("rest", 500) if of.rate[0, 1] else early[0])
    now_s = 1200.0
    # A new one of the highest priority still comes after what was promised.
    later = [replace(t, priority=9) for t in late]
    stored = schedule_from(json.loads(plan.model_dump_json()))
    again = scheduled(of, *later, existing=stored, now_s=now_s)
    assert_kept(of, again)
    for before in plan.transfers:
        if before.verdict == "refused":
            continue
        after = again.transfer(before.id)
        assert after.verdict == before.verdict
        past = [p for p in before.periods if p.start_s < now_s]
        for was, stays in zip(past, after.periods, strict=False):
            assert stays.start_s == was.start_s
            assert stays.throughput_gbps == was.throughput_gbps
    assert again.model_dump("json")["now_s"] == now_s
    nothing_new = scheduled(of, existing=plan, now_s=0.0)
    assert nothing_new.admitted == plan.admitted


def test_ids_of_a_schedule_in_progress_are_taken_and_time_does_not_go_back() -> None:
    of = even(PAIR)
    plan = scheduled(
        of, transfer("a", 100, deadline_s=500.0), transfer("b", 9999, deadline_s=500.0)
    )
    with pytest.raises(InputError, match="schedule in progress has"):
        scheduled(of, transfer("a", 1), existing=plan, now_s=10.0)
    again = scheduled(of, transfer("b", 10, deadline_s=500.0), existing=plan, now_s=10.0)
    assert again.transfer("b").verdict == "admitted"  # what was refused may be asked for again
    with pytest.raises(InputError, match="before the schedule"):
        scheduled(of, transfer("c", 1), existing=again, now_s=5.0)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"verdict": "perhaps"}, "transfer 1, verdict"),
        ({"periods": None}, "transfer 1, periods"),
        ({"volume_gb": float("nan")}, "not finite"),
        ({"dst": "r0"}, "source itself"),
    ],
)
def test_a_document_that_is_no_schedule_is_refused(change: dict[str, object], names: str) -> None:
    document = scheduled(even(PAIR), transfer("a", 100)).model_dump("json")
    document["transfers"][0].update(src="r0", **change)
    with pytest.raises(InputError, match=names):
        schedule_from(document)


def test_a_promise_that_the_network_breaks_is_told() -> None:
    of = even(PAIR)
    plan = scheduled(of, transfer("a", 100, deadline_s=200.0))
    slower = replace(
        of, rate=of.rate / 2, flows=of.flows / 2, egress=of.egress / 2, ingress=of.ingress / 2
    )
    again = scheduled(slower, existing=plan, now_s=100.0)
    assert again.transfer("a").verdict == "refused"
    assert "admitted before" in again.warnings[0]
    remedies = again.transfer("a").remedies
    assert remedies.volume_gb == pytest.approx(75, rel=1e-5)  # 50 are there, 25 more can be
    assert remedies.deadline_s == 300


# ---- properties ----------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 1e5]), st.integers(1, 8))
@example(282, 1e5, 1)  # in the last slot it fits over another relay than the first one there
def test_promises_hold_whatever_is_asked(seed: int, scale: float, count: int) -> None:
    of = world(seed)
    asked = [
        replace(
            t,
            volume_gb=min(1e9, t.volume_gb * scale) or 1e-9,
            deadline_s=None if n % 4 == 3 else t.deadline_s,
        )
        for n, t in enumerate(transfers(of, seed, count, 1.0))
    ]
    plan = scheduled(of, *asked, explain=2)
    assert_kept(of, plan)
    assert [t.id for t in plan.transfers] == [t.id for t in asked]
    stated = json.loads(plan.model_dump_json())
    assert schedule_from(stated).transfers[0].id == asked[0].id
    assert plan.bound_usd <= plan.cost_usd.egress * (1 + 1e-6)


# ---- input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"src": "a", "dst": "b"}, "volume_gb"),
        ({"src": "a", "dst": "a", "volume": 1}, "source itself"),
        ({"src": "a", "dst": "b", "volume": 1, "deadline": "1h", "start": "2h"}, "after the start"),
        ({"src": "a", "dst": "b", "volume": 1, "color": 1}, "unknown field"),
        ({"src": "a", "dst": "b", "volume": 1, "gb": 1}, "twice"),
    ],
)
def test_wrong_transfers_are_named(entry: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ScheduleRequest([entry])


def test_units_names_and_gaps_are_understood() -> None:
    rows = [
        {
            "name": "n",
            "src": "a",
            "dst": "b",
            "volume": "1.5TB",
            "deadline": "2h",
            "start": "",
            "priority": "3",
            "value": float("nan"),
        }
    ]
    (found,) = ScheduleRequest(rows).transfers
    assert found == TimedTransfer("n", "a", "b", 1500.0, 0.0, 7200.0, 3, None)
    with pytest.raises(InputError, match="id twice"):
        ScheduleRequest((found, found))


def test_transfers_that_start_together_share_a_slot() -> None:
    """Where it costs them a thousandth of their window, not where the window is short."""
    names = [f"r{i}" for i in range(8)]
    rtt_ms = np.random.default_rng(1).uniform(20, 250, (8, 8))
    network = Network.from_matrices(names, np.full((8, 8), 5.0), rtt_ms=rtt_ms)
    ends = [(names[i], names[j]) for i in range(8) for j in range(8) if i != j]
    asked = [TimedTransfer(f"{a}{b}", a, b, 10.0, deadline_s=7200.0) for a, b in ends]
    asked.append(TimedTransfer("short", "r0", "r1", 1.0, deadline_s=66.0))
    request = ScheduleRequest(asked, vms=1, relays="none")
    pending = [PendingTransfer(transfer, transfer.volume_gb) for transfer in asked]
    problem = as_shuffle(request, pending, network, FlatPrices(names))
    found = schedule_problem(request, problem, pending, 0.0)
    assert len(found.cuts_s) < 10
    for number, (src, dst) in enumerate(ends):
        alone_s = 60 + 8.5 * rtt_ms[names.index(src), names.index(dst)] / 1000
        assert -1e-6 <= found.commodities[number].start_s - alone_s <= 7.2
    assert found.commodities[-1].start_s == pytest.approx(60 + 8.5 * rtt_ms[0, 1] / 1000)
    assert not recommend_schedule(request, network, FlatPrices(names)).refused


class FallingPrices(FlatPrices):
    """The first 100 GB that a meter counts cost 0.10 USD each, what follows 0.04."""

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        return (0.1 * min(volume_gb, 100) + 0.04 * max(0.0, volume_gb - 100)) / volume_gb


def test_fees_are_what_each_meter_counts() -> None:
    names = ["x:a", "x:b", "y:c"]
    rate = np.full((3, 3), 4.0)
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(names, rate, rtt_ms=0.0, per_flow_mbps=25 * rate)
    asked = (
        TimedTransfer("inside", "x:a", "x:b", 50, deadline_s=4000.0),
        TimedTransfer("out", "x:a", "y:c", 150, deadline_s=4000.0),
        TimedTransfer("too", "x:b", "y:c", 50, deadline_s=4000.0),
    )
    request = ScheduleRequest(asked, relays="none", vms=1)
    plan = recommend_schedule(request, network, FallingPrices(names))
    out = 100 * 0.1 + 100 * 0.04  # 200 GB to the internet, by one meter
    usd = [transfer.egress_usd for transfer in plan.transfers]
    assert usd == pytest.approx([50 * 0.1, out * 150 / 200, out * 50 / 200])
    assert plan.cost_usd.egress == pytest.approx(50 * 0.1 + out)
    assert 0 < plan.bound_usd <= plan.cost_usd.egress


def detour(direct_gbps: float) -> relayd.Wan:
    """Return two ends with a slow link, and a fast relay that adds 550 ms."""
    return relayd.open(
        {
            "regions": ["a", "b", "c", "d"],
            "aggregate_gbps": [
                [0, direct_gbps, 5.0, 0],
                [direct_gbps, 0, 5.0, 0],
                [5.0, 5.0, 0, 0],
                [0, 0, 0, 0],
            ],
            "rtt_ms": [[0, 50, 300, 50], [50, 0, 300, 50], [300, 300, 0, 50], [50, 50, 50, 0]],
            "usd_per_gb": 0.02,
        }
    )


@pytest.mark.parametrize("direct_gbps", [0.0, 1.0])
def test_a_relay_far_away_keeps_a_deadline_that_a_plan_with_it_keeps(direct_gbps: float) -> None:
    wan = detour(direct_gbps)
    plan = wan.plan("a", "b", volume_gb=500, vms=1, objective="time")
    asked = {"id": "x", "src": "a", "dst": "b", "volume_gb": 500}
    (kept,) = wan.schedule([{**asked, "deadline": plan.duration_s * 1.001}], vms=1).transfers
    assert kept.verdict == "admitted"
    (refused,) = wan.schedule([{**asked, "deadline": plan.duration_s * 0.98}], vms=1).transfers
    assert refused.verdict == "refused"
    assert refused.remedies
    assert refused.remedies.deadline_s == pytest.approx(plan.duration_s, rel=0.01)
    # A path through it begins once it is up to speed, 8.5 round trips after the VMs run.
    rtts_ms = {"b": 50.0, "c": 600.0}
    for period in kept.periods:
        for path in period.paths:
            assert period.start_s >= 60 + 8.5e-3 * rtts_ms[path.regions[1]] - 1e-6


def test_a_transfer_without_a_path_is_refused_and_the_others_are_planned() -> None:
    wan = detour(1.0)
    of = {"src": "a", "volume_gb": 10, "deadline": 3600}
    plan = wan.schedule([{**of, "id": "x", "dst": "b"}, {**of, "id": "y", "dst": "d"}], vms=1)
    assert [one.verdict for one in plan.transfers] == ["admitted", "refused"]
    assert plan.reason == "The deadline can be met."
    assert any(
        "y is refused: at these rates, nothing is known to lead from a to d" in text
        for text in plan.warnings
    )
    with pytest.raises(DataError, match="any path from a to d"):
        wan.schedule([{**of, "id": "y", "dst": "d"}], vms=1)
