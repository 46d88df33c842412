"""Transfers that a program carries out with ``wan.transfer(plan)``, on a store of its own."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from threading import Thread

import pytest

import relayd as library
from planner.model.errors import InfeasibleError, InputError
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.transfers.register import TransferRegister, transfer_rows
from relayd.transfers.tracked import TrackedTransfer, tracked
from tests.relayd.building import modelled, table
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import Spot
from tests.waiting import eventually

SRC, DST = "aws:us-east-1", "aws:sa-east-1"


@pytest.fixture
def wan(spot: Spot, tmp_path: Path) -> Wan:
    """Return a store with a pool of two VMs at each end."""
    with open_store(spot.where, mode="create"):
        pass
    lines = [f'[[pool]]\nregion = "{r}"\nvm_type = "aws:m5.8xlarge"\nvms = 2' for r in (SRC, DST)]
    found = library.open(spot.where, catalogues=[table(tmp_path / "own.toml", *lines)])
    assert isinstance(found, Wan)
    return found


def newest(where: str, name: str = "") -> TrackedTransfer:
    with open_store(where, mode="read") as store:
        found = [row for row in transfer_rows(store.database) if name in ("", row.id)]
        return tracked(found[0], time.time())


def test_it_holds_is_reported_and_finishes(spot: Spot, wan: Wan) -> None:
    plan = wan.plan("us-east-1", "sa-east-1", volume_gb=500)
    with wan.transfer(plan, id="one", label="nightly", silent_after_s=1.2) as transfer:
        assert (transfer.id, transfer.rate_gbps) == ("one", plan.throughput_gbps)
        # Twice as long as it takes to be silent, another thread holds it; this one only waits.
        eventually(lambda: time.time() - newest(spot.where).began_s > 2.5)
        found = newest(spot.where)
        assert (found.state, found.hold, found.label) == ("running", "held", "nightly")
        # Nothing was said of its progress: so neither its rate nor that it is slow.
        assert (found.rate_gbps, found.is_slow) == (None, None)
        with pytest.raises(InfeasibleError) as full, wan.transfer(plan):
            pytest.fail("the pool is full")
        assert full.value.starts_at_s == pytest.approx(found.began_s + plan.duration_s, abs=1)

        workers = [Thread(target=transfer.moved, args=(gb,)) for gb in (100, "200GB", 150)]
        for worker in workers:
            worker.start()
            worker.join()
        assert transfer.moved_gb == 200
        found = eventually(lambda: newest(spot.where).moved_gb == 200 and newest(spot.where))
        assert found.rate_gbps > 100  # as of when it was said
        with pytest.raises(InputError, match="more than the 500 GB"):
            transfer.moved(600)
        transfer.moved(499)
    done = newest(spot.where)
    assert (done.state, done.moved_gb, done.hold, transfer.problem) == (
        *("finished", 499, "none"),
        None,
    )
    with wan.transfer(plan):  # there is room again, and what says nothing has moved all
        pass
    assert (newest(spot.where).state, newest(spot.where).moved_gb) == ("finished", 500)
    with (
        pytest.raises(InputError, match="is of a transfer that finished"),
        wan.transfer(plan, id="one", label="nightly", silent_after_s=1.2),
    ):
        pytest.fail("it has ended")


@pytest.mark.parametrize(
    ("raised", "state", "problem"),
    [
        (OSError("disk\0 full \ud800"), "failed", "OSError: disk  full ?"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
        (None, "failed", "its program left it at 120 GB of 500 GB"),
    ],
)
def test_what_leaves_the_block_says_how_it_ended(
    spot: Spot, wan: Wan, raised: BaseException | None, state: str, problem: str
) -> None:
    document = json.loads(wan.plan(SRC, DST, volume_gb=500).model_dump_json())
    leaves = pytest.raises(type(raised)) if raised else nullcontext()
    with leaves, wan.transfer(document) as transfer:
        transfer.moved(120)
        if raised:
            raise raised
    found = newest(spot.where)
    assert (found.state, found.problem, found.moved_gb) == (state, problem, 120)


def test_an_id_under_way_is_gone_on_with(spot: Spot, wan: Wan) -> None:
    plan = wan.plan(SRC, DST, volume_gb=500)
    first = wan.transfer(plan, id="one")
    first.__enter__()
    first.moved(100)
    with open_store(spot.where, mode="write") as store:
        TransferRegister(store.database, modelled(), "").report_transfer("one", 100)
    with wan.transfer(plan, id="one") as again:
        assert again.moved_gb == 100
        again.moved(10)  # it began to count from nothing: that says nothing
        assert again.moved_gb == 100
        again.moved(500)
    assert newest(spot.where).state == "finished"
    first.__exit__(None, None, None)  # what is wrong with reports leaves the program alone
    assert "finished" in str(first.problem)


def test_what_can_not_be_carried_out_is_refused(wan: Wan) -> None:
    plan = wan.plan(SRC, DST, volume_gb=500)
    with pytest.raises(InputError, match="is kept by stores and services"):
        modelled().transfer(plan)
    for wrong, field in (("nightly-7", "plan"), (7, "plan"), ({"throughput_gbps": 4}, "src")):
        with pytest.raises(InputError) as caught:
            wan.transfer(wrong)  # type: ignore[arg-type]
        assert caught.value.field == field
    with pytest.raises(InputError, match="silent_after_s"):
        wan.transfer(plan, silent_after_s=-1)


def test_what_is_reported_and_held_says_why_it_is_slow(spot: Spot, wan: Wan) -> None:
    """A transfer as planned for 100 s, then at a tenth; another one begins on its VMs; silence."""
    plan, now_s = wan.plan(SRC, DST, volume_gb=1000, vms=1), time.time()
    gb_per_s = plan.throughput_gbps / 8

    def cause() -> tuple[str, str]:
        with open_store(spot.where, mode="write") as store:
            rest = TransferRegister(store.database, wan, "").transfer_details("one").rest
        assert rest is not None
        answer = wan.replan(**json.loads(json.dumps(rest.body)))
        assert (answer.verdict, answer.plan_id) == ("keep", plan.plan_id)
        assert answer.cause is not None
        return answer.cause.kind, answer.cause.text

    with open_store(spot.where, mode="write") as store:
        register = TransferRegister(store.database, wan, "")
        first = {"volume_gb": 1000, "plan": plan, "at_s": now_s - 160}
        register.begin_transfer(SRC, DST, id="one", silent_after_s=3, **first)
        for after_s, moved_s in ((50, 50), (100, 100), (130, 103), (160, 106)):
            register.report_transfer("one", gb_per_s * moved_s, at_s=now_s - 160 + after_s)
        kind, text = cause()
        assert kind == "slow"
        assert text.startswith("It has been slower than planned for 1 min 00 s: at ")
        small = wan.plan(SRC, DST, volume_gb=50, vms=1)
        register.begin_transfer(SRC, DST, volume_gb=50, plan=small)
    assert cause() == (
        "others",
        f"Since it began, 1 other transfer takes {small.throughput_gbps:.2f} Gbit/s of the VMs at "
        f"{SRC}.",
    )
    eventually(lambda: newest(spot.where, "one").state == "silent")
    assert cause()[0] == "silent"


def test_without_a_register_the_mean_rate_says_as_much() -> None:
    wan = modelled()
    plan = wan.plan(SRC, "aws:us-west-2", volume_gb=5000, vms=8, objective="time")
    answer = wan.replan(plan, moved_gb=20, elapsed_s="2min")
    assert (answer.verdict, answer.cause and answer.cause.kind) == ("keep", "slow")
    assert "since it began: at 1.34 Gbit/s" in str(answer.cause)
    assert wan.replan(plan, moved_gb=0, elapsed_s=0).cause is None


def test_commands_compare_with_what_was_reported(relayd: Relayd, tmp_path: Path) -> None:
    db, wan = tmp_path / "relayd.db", modelled()
    plan = wan.plan(SRC, DST, volume_gb=500, vms=1)
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    moved = ("--moved", f"{plan.throughput_gbps * 100 / 8:.3f}GB", "--elapsed", "100s")
    words = ("transfers", "replan", str(tmp_path / "plan.json"), *moved, "--db", str(db))
    figures = {"throughput_gbps": plan.throughput_gbps}
    with open_store(db, mode="create") as store:
        register = TransferRegister(store.database, wan, "root@here")
        for number in range(9):
            began_s = 1.7e9 + 1000 * number
            asked = {"volume_gb": 1000, "at_s": began_s, "plan": figures}
            name = register.begin_transfer(SRC, DST, **asked).id
            took_s = 8 * 1000 / (1.2 * plan.throughput_gbps)
            register.end_transfer(name, at_s=began_s + took_s)
    said = " ".join(relayd(*words).out.split())
    assert "Probable cause: It runs at 1.0" in said
    assert "of the last 9, 95 % reached at least 1.20" in said
