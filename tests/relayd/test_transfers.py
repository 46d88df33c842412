"""Transfers that are reported: rate, forecast, what is refused, and what plans learn of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relayd as library
from planner.model.errors import InputError
from probes.samples import Sample
from relayd.snapshots.building import make_snapshot
from relayd.sources.wan import Wan
from relayd.store import Store, open_store
from relayd.store.events import Events
from relayd.store.samples.decisions import decide
from relayd.store.samples.ingest import append
from relayd.transfers import register as registers
from relayd.transfers.register import NotOwnerError, TransferRegister, forget_reports, transfer_rows
from relayd.transfers.tracked import TransferRate, tracked
from tests.properties import examples
from tests.relayd.building import catalogue_of, modelled
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import ON_BOTH, Spot

SRC, DST, RELAY = "aws:us-east-1", "aws:sa-east-1", "aws:us-west-2"
BEGAN_S = 1.7e9
FIGURES: dict[str, Any] = {
    "paths": [{"regions": [SRC, DST], "throughput_gbps": 4.0}],
    "throughput_gbps": 4.0,
    "throughput_gbps_low": 3.0,
    "duration_s": 200.0,
    "cost_usd": {"total": 5.0},
}


@pytest.fixture(scope="module")
def wan() -> Wan:
    return modelled()


@contextmanager
def register_at(where: str, wan: Wan) -> Iterator[TransferRegister]:
    with open_store(where, mode="create") as store:
        yield TransferRegister(store.database, wan, "tester")


def begin(register: TransferRegister, **more: Any) -> str:
    given = {"volume_gb": 100, "at_s": BEGAN_S, "plan": FIGURES, "deadline_s": 400, **more}
    return register.begin_transfer("us-east", "sa", **given).id


@ON_BOTH
def test_what_ended_stands_by_its_end(spot: Spot, wan: Wan) -> None:
    with register_at(spot.where, wan) as register:
        for name, took_s in (("b", 20), ("d", 10), ("c", 20), ("a", 30)):  # begun in this order
            begin(register, id=name)
            register.end_transfer(name, at_s=BEGAN_S + took_s)
    with open_store(spot.where, mode="read") as store:
        names, last = [], None
        while rows := transfer_rows(store.database, "ended", before_number=last, limit=1):
            names.append(rows[0].id)
            last = rows[0].number
        assert names == ["a", "c", "b", "d"]
        within = (BEGAN_S + 10, BEGAN_S + 20)
        (only,) = transfer_rows(store.database, "finished", ended_s=within)
        assert only.id == "d"


def test_progress_against_plan_and_deadline(spot: Spot, wan: Wan) -> None:
    with register_at(spot.where, wan) as register:
        name = begin(register, id="one", label="nightly copy")
        found = register.transfer_details(name).transfer
        assert (found.src, found.dst, found.who, found.via) == (SRC, DST, "tester", "direct")
        # Without pools there is nothing to hold, nor to share.
        assert register.transfer_rate(name) == TransferRate(4.0, 500_000_000, "none", None)
        # Without a report the plan says when it ends.
        assert found.forecast_end_s == found.planned_end_s == BEGAN_S + 200
        # The deadline is over by the clock, and it has not ended.
        assert (found.state, found.rate_gbps, found.is_late) == ("running", None, True)

        # 40 GB in 100 s, then 5 GB in 40 s: 1 Gbit/s, where 3 to 4 were planned.
        register.report_transfer(name, 40, at_s=BEGAN_S + 100)
        assert register.transfer_details(name).transfer.is_slow is False
        found = register.report_transfer(name, "45GB", at_s=BEGAN_S + 140)
        assert found.rate_gbps == pytest.approx(1.0)
        assert found.mean_gbps == pytest.approx(8 * 45 / 140)
        assert found.forecast_end_s is not None
        assert found.forecast_end_s - BEGAN_S == pytest.approx(140 + 8 * 55, rel=2e-3)
        assert (found.is_late, found.is_slow, found.share) == (True, True, 0.45)
        assert found.reason == (
            "It runs at 1.00 Gbit/s, much slower than the 4.00 Gbit/s planned, and ends "
            "3 min 00 s after its deadline."
        )
        # Figures alone can't be re-planned: what is left is a question of its own.
        rest = register.transfer_details(name).rest
        assert rest is not None
        assert (rest.question, rest.advised) == ("transfer", True)
        assert rest.body == {"src": SRC, "dst": DST, "volume_gb": 55}  # the deadline is over

        done = register.end_transfer(name, at_s=BEGAN_S + 400)
        assert (done.state, done.moved_gb, done.is_late) == ("finished", 100, False)
        assert done.mean_gbps == pytest.approx(2.0)
        details = register.transfer_details(name)
        assert [report.moved_gb for report in details.reports] == [40, 45, 100]
        assert details.rest is None
        assert [one.id for one in register.transfers("finished", "us-east", "sa")] == ["one"]
        assert register.transfers("in-flight") == []
    with open_store(spot.where, mode="read") as store:
        # Of its progress only the newest event stays, beside its beginning and its end.
        kinds = [event.detail["state"] for event in Events(store.database).after(0)]
    assert kinds == ["running", "finished"]


def test_saying_it_again_changes_nothing_and_what_is_wrong_is_refused(spot: Spot, wan: Wan) -> None:
    with register_at(spot.where, wan) as register:
        name = begin(register, id="one")
        assert begin(register, id="one") == name
        first = register.report_transfer(name, 10, via_gb={"direct": 10}, at_s=BEGAN_S + 10)
        assert register.report_transfer(name, 10, at_s=BEGAN_S + 10) == first
        begun, reported = partial(begin, register), partial(register.report_transfer, name)
        refused: list[tuple[Callable[[], Any], str, str]] = [
            (partial(begun, id="one", volume_gb=99), "id", "of another transfer"),
            (partial(begun, at_s=time.time() + 1e6), "at_s", "in the future"),
            (partial(begun, plan={"paths": [{}]}), "plan.paths", "two or three regions"),
            (partial(begun, plan={"throughput_gbps": "4"}), "plan.throughput_gbps", ""),
            (partial(begun, label="a\0b"), "label", "the character"),
            (partial(register.begin_transfer, SRC, "us-east", volume_gb=1), "dst", "itself"),
            (partial(reported, 9), "moved_gb", "reported before"),
            (partial(reported, 101), "moved_gb", "more than the 100 GB"),
            (partial(reported, 11, at_s=BEGAN_S), "at_s", "before the last"),
            (partial(reported, 11, via_gb={"direct": 9}), "via_gb direct", "reported before"),
            (partial(reported, 11, via_gb={RELAY: 2}), "via_gb", "more than the 11 GB"),
            (partial(register.report_transfer, "two", 1), "id", "of no transfer"),
            (partial(register.end_transfer, name, "done"), "state", "must be one of"),
        ]
        for call, field, problem in refused:
            with pytest.raises(InputError, match=problem or None) as caught:
                call()
            assert caught.value.field == field
        assert register.transfer_details(name).transfer.moved_gb == 10
        # Two paths: no outcome of either.
        register.report_transfer(name, 20, via_gb={RELAY: 10}, at_s=BEGAN_S + 20)
        paths = {path.regions: path.moved_gb for path in register.transfer_details(name).paths}
        assert paths == {(SRC, DST): 10, (SRC, RELAY, DST): 10}
        failed = register.end_transfer(name, "failed", problem="disk full.", at_s=BEGAN_S + 30)
        assert failed.reason == "It failed: disk full."
        assert register.end_transfer(name, "failed").ended_s == BEGAN_S + 30
        for call in (partial(register.end_transfer, name), partial(reported, 21)):
            with pytest.raises(InputError, match="failed at 2023"):
                call()


def test_without_reports_it_is_silent_and_at_last_failed(tmp_path: Path, wan: Wan) -> None:
    with open_store(tmp_path / "relayd.db", mode="create") as store:
        register = TransferRegister(store.database, wan, "")
        name = begin(register, silent_after_s="10min", at_s=None)
        register.report_transfer(name, 1)
        (row,) = transfer_rows(store.database)
        states = {later_s: tracked(row, row.heard_s + later_s) for later_s in (0, 599, 601, 86_401)}
        assert [one.state for one in states.values()] == ["running"] * 2 + ["silent", "failed"]
        assert states[601].rate_gbps is None
        assert states[601].forecast_end_s is None
        assert "at least every 10 min 00 s" in states[601].reason
        assert "no program has reported it for a day" in states[86_401].reason


@settings(max_examples=examples(30), deadline=None)
@given(steps=st.lists(st.tuples(st.floats(0.5, 1e5), st.floats(0, 1e3)), min_size=1, max_size=30))
def test_rates_and_forecasts_follow_from_what_was_reported(
    tmp_path_factory: pytest.TempPathFactory, wan: Wan, steps: list[tuple[float, float]]
) -> None:
    folder = tmp_path_factory.mktemp("reported")
    volume_gb = sum(gb for _, gb in steps) + 1.0
    at_s, moved_gb = BEGAN_S, 0.0
    with register_at(str(folder / "relayd.db"), wan) as register:
        name = begin(register, volume_gb=volume_gb)
        for step_s, gb in steps:
            at_s, moved_gb = at_s + step_s, moved_gb + gb
            found = register.report_transfer(name, moved_gb, at_s=at_s)
            assert found.mean_gbps == pytest.approx(8 * moved_gb / (at_s - BEGAN_S))
            assert found.rate_gbps is not None
            assert found.rate_gbps >= 0
            if found.forecast_end_s is not None:
                # Between what it has and what was planned, nearer to what it has.
                left_gbit = 8 * (volume_gb - moved_gb)
                rates = sorted((found.rate_gbps, (4.0 * found.rate_gbps) ** 0.5))
                ends_s = [at_s + left_gbit / gbps for gbps in rates]
                assert ends_s[1] - 1e-6 <= found.forecast_end_s <= ends_s[0] + 1e-6
            assert 0 <= found.share <= 1
        reports = register.transfer_details(name).reports
        assert len(reports) == len(steps)
        total = sum(
            (report.rate_gbps or 0.0) * step_s
            for report, (step_s, _) in zip(reports, steps, strict=True)
        )
        assert total == pytest.approx(8 * moved_gb, rel=1e-3, abs=1e-3)


def test_many_reports_are_thinned_and_old_ones_removed(
    spot: Spot, wan: Wan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registers, "MOST_REPORTS", 20)
    with open_store(spot.where, mode="create") as store:
        register = TransferRegister(store.database, wan, "")
        name = begin(register)
        for number in range(1, 60):
            register.report_transfer(name, number, at_s=BEGAN_S + number)
            known = register.transfer_details(name).reports
            assert len(known) <= 20
            assert known[-1].moved_gb == number
        assert register.transfer_details(name).transfer.rate_gbps == pytest.approx(8.0)
        register.end_transfer(name, at_s=BEGAN_S + 100)
        assert forget_reports(store.database, time.time() - 100) == 0
        assert forget_reports(store.database, time.time() + 1) > 10
        found = register.transfer_details(name)
        assert (found.reports, found.plan) == ((), None)
        assert found.transfer.expected is not None


def test_a_reporter_has_so_many_transfers_a_day(
    spot: Spot, wan: Wan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registers, "MOST_OF_ONE", 3)
    with open_store(spot.where, mode="create") as store:
        one, other = (
            TransferRegister(store.database, wan, who, is_operator=False) for who in ("a", "b")
        )
        for number in range(3):
            begin(one, id=str(number))
        one.end_transfer("0", at_s=BEGAN_S + 1)  # over or not, it was reported within a day
        with pytest.raises(NotOwnerError, match="more than the 3 that a token"):
            begin(one, id="3")
        assert begin(one, id="1") == "1"
        assert begin(other, id="3") == "3"
        operator = TransferRegister(store.database, wan, "a")
        assert begin(operator, id="4") == "4"
        with store.database.transaction():
            store.database.change("UPDATE transfers SET heard_s = heard_s - 86401")
        assert begin(one, id="5") == "5"


def finished(
    register: TransferRegister, plan: Any, gbps: float, began_s: float, limited_by: str = "network"
) -> None:
    name = register.begin_transfer(SRC, DST, volume_gb=500, plan=plan, at_s=began_s).id
    register.end_transfer(name, at_s=began_s + 4000 / gbps, limited_by=limited_by)


def snapshot(store: Store) -> None:
    assert make_snapshot(store, catalogue_of(SRC, DST)) is not None


@pytest.mark.parametrize(("vms", "planned"), [(1, True), (1, False), (3, True)])
def test_plans_expect_what_twelve_transfers_achieved(
    spot: Spot, wan: Wan, vms: int, planned: bool
) -> None:
    """Half of what was planned: in plans, their tables, re-plans, forecasts and shuffles."""
    asked: dict[str, Any] = {"volume_gb": 500, "relays": "none", "vms": vms}
    plan, now_s = wan.plan(SRC, DST, **asked), time.time()
    achieved = 2.5 * vms
    with open_store(spot.where, mode="create") as store:
        register = TransferRegister(store.database, wan, "root@here")
        for hours in range(12):
            began_s = now_s - 3600 * (13 - hours)
            finished(register, plan if planned else None, achieved, began_s)
        snapshot(store)
        name = register.begin_transfer(SRC, DST, volume_gb=500, plan=plan, at_s=now_s - 60).id
        register.report_transfer(name, achieved * 60 / 8, at_s=now_s)
        rest = register.transfer_details(name)
    with_them = library.open(spot.where)
    after = with_them.plan(SRC, DST, **asked)
    assert plan.throughput_gbps > 1.5 * achieved
    assert after.throughput_gbps == pytest.approx(achieved, rel=0.02)
    assert after.throughput_gbps_low < achieved < after.throughput_gbps_high
    assert after.throughput_gbps_high < 1.2 * achieved
    # A transfer that runs so, by the plan from before: the same rate for the rest of it.
    assert rest.rest is not None
    assert rest.transfer.forecast_end_s is not None
    keep = with_them.replan(**json.loads(json.dumps(rest.rest.body))).keep
    left_s = 8 * (500 - rest.transfer.moved_gb) / after.throughput_gbps
    assert keep.duration_s == pytest.approx(left_s, rel=0.02)
    assert rest.transfer.forecast_end_s - now_s == pytest.approx(left_s, rel=0.02)
    shuffle = with_them.shuffle(
        demands_gb={(SRC, DST): 500}, relays="none", vms=1, vms_running=True
    )
    assert shuffle.duration_s == pytest.approx(8 * 500 / 2.5, rel=0.03)


def test_few_low_transfers_move_little_and_retracted_ones_nothing(spot: Spot, wan: Wan) -> None:
    plan = wan.plan(SRC, DST, volume_gb=500, relays="none", vms=1)
    day_s = time.time() - 86_400

    def rate() -> float:
        found = library.open(spot.where).plan(SRC, DST, volume_gb=500, relays="none", vms=1)
        return float(found.throughput_gbps)

    with open_store(spot.where, mode="create") as store:
        register = TransferRegister(store.database, wan, "root@here")
        for count in range(2):
            finished(register, plan, 2.5, day_s + count * 3600)
            snapshot(store)
            assert rate() == pytest.approx(plan.throughput_gbps, rel=0.02)
        finished(register, plan, 2.5, day_s + 9000)
        snapshot(store)
        assert rate() == pytest.approx(2.5, rel=0.02)
        selection = {"tool": "transfer", "since_s": day_s + 8000}
        assert decide(store.database, "retract", selection, who="me", reason="false") == 2
        snapshot(store)
        assert rate() == pytest.approx(plan.throughput_gbps, rel=0.02)


def test_false_reports_of_a_token_are_named_and_retracted(spot: Spot, wan: Wan) -> None:
    plan, day_s = wan.plan(SRC, DST, volume_gb=500, relays="none", vms=1), time.time() - 86_400

    def ask() -> tuple[float, str]:
        found = library.open(spot.where).plan(SRC, DST, volume_gb=500, relays="none", vms=1)
        return found.throughput_gbps, " ".join(found.warnings)

    with open_store(spot.where, mode="create") as store:
        test = Sample(SRC, DST, "aggregate_mbps", 4700.0, day_s, "iperf3", 64, 10.0)
        append(store, [test._replace(measured_at_s=day_s + n) for n in range(5)])
        snapshot(store)
        honest, said = ask()
        assert "mallory" not in said
        register = TransferRegister(
            store.database, wan, "mallory", is_operator=False, address="10.0.0.9"
        )
        for first, limited_by in enumerate(("unknown", "network")):
            for number in range(3):
                finished(register, plan, 0.5, day_s + 100 + 9000 * (3 * first + number), limited_by)
            snapshot(store)
            rate, said = ask()
            if limited_by == "unknown":
                assert rate == honest
                assert f"Transfers over {SRC} -> {DST} reached 0.5 Gbit/s" in said
        # What is said to be the network's counts until it is measured again, and is named.
        assert rate == pytest.approx(0.5, rel=0.02)
        assert (
            "has changed by what token mallory report, which the prober has not confirmed" in said
        )
        decide(store.database, "retract", {"token": "mallory"}, who="me", reason="false")
        assert all(one.is_retracted for one in register.transfers())
        snapshot(store)
        assert ask()[0] == honest
        assert "mallory" not in ask()[1]


def test_replan_and_the_register_say_the_same_of_the_rest(wan: Wan, tmp_path: Path) -> None:
    """At a third of the planned rate; near the plan; and faster than it."""
    plan = wan.plan(SRC, DST, volume_gb=1000, relays="none", vms=1)
    for number, share in enumerate((0.3, 0.97, 1.2)):
        with register_at(str(tmp_path / f"{number}.db"), wan) as register:
            with pytest.raises(InputError, match="plan moves 1000 GB, and the transfer 50 GB"):
                begin(register, plan=plan, volume_gb=50)
            name = begin(register, plan=plan, volume_gb=1000)
            for at_s in (100, 200):
                moved_gb = share * plan.throughput_gbps * at_s / 8
                found = register.report_transfer(name, moved_gb, at_s=BEGAN_S + at_s)
            rest = register.transfer_details(name).rest
        assert rest is not None
        assert (rest.question, rest.advised) == ("replan", True)
        assert found.forecast_end_s is not None
        answer = wan.replan(**json.loads(json.dumps(rest.body)))
        assert answer.plan_id == plan.plan_id
        left_s = found.forecast_end_s - BEGAN_S - 200
        assert answer.keep.duration_s == pytest.approx(left_s, rel=0.02)
        # Without the rate of the moment, the mean so far says as much.
        mean = wan.replan(**{k: v for k, v in rest.body.items() if k != "rate_gbps"})
        assert mean.keep.duration_s == pytest.approx(left_s, rel=0.03)
        if share == 0.3:
            left_gbit = 8 * answer.remaining_gb
            assert left_s == pytest.approx(left_gbit / (0.3 * plan.throughput_gbps), rel=2e-3)
            assert answer.keep.duration_s_low > 2.5 * left_gbit / plan.throughput_gbps


def test_commands_report_and_list(relayd: Relayd, tmp_path: Path) -> None:
    where = tmp_path / "relayd.db"
    db, progress = ["--db", str(where)], ("transfers", "progress", "nightly/1")
    plan = relayd("plan", SRC, DST, "--volume", "100TB", "--vms", 1, "--json")
    (tmp_path / "plan.json").write_text(plan.out)
    begun = relayd(
        *("transfers", "begin", "us-east", "sa", "--volume", "100TB", "--id", "nightly/1"),
        *("--plan", tmp_path / "plan.json", "--deadline", "1h", *db),
    )
    assert (begun.code, begun.out) == (0, "nightly/1\n")
    assert relayd(*progress, "--moved", "1MB", *db).out.startswith("It runs at ")
    back = relayd(*progress, "--moved", "0GB", *db)
    assert (back.code, back.out) == (2, "")
    assert back.err == (
        "relayd: --moved is less than the 1 MB that were reported before (got 0.0). "
        "Give all that has arrived since the transfer began.\n"
    )
    assert relayd(*progress, *db).err.startswith("relayd: Missing --moved")
    shown = " ".join(relayd("transfers", "show", "nightly/1", *db).out.split())
    assert f"{SRC} -> {DST}, 1 MB of 100 TB" in shown
    again = "relayd transfers show nightly/1 --plan | relayd transfers replan - --moved 0.001GB"
    assert again in shown
    written = relayd("transfers", "show", "nightly/1", "--plan", *db)
    assert json.loads(written.out)["plan_id"] == json.loads(plan.out)["plan_id"]
    assert relayd("transfers", "end", "nightly/1", *db).out.startswith("It finished at ")
