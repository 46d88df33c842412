"""Capacity that transfers hold: never more than there is, nothing after its lease.

The ledger of the state machine shares no code with :mod:`relayd.questions.holds`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from planner.model.errors import InfeasibleError, InputError
from planner.transfer.plan import Plan
from relayd.catalogue.loading import load_catalogue
from relayd.questions.holds import holds_of
from relayd.sources.stored import StoredWan
from relayd.store import open_store
from relayd.transfers import register as registers
from relayd.transfers.register import TransferRegister
from relayd.transfers.tracked import TrackedTransfer
from tests.properties import examples
from tests.relayd.store.engines import ON_BOTH, Spot

SRC, DST, RELAY = "aws:us-east-1", "aws:sa-east-1", "aws:us-west-2"
VM = "aws:m5.8xlarge"
POOLS = f"""
[[pool]]
region = "{SRC}"
vm_type = "{VM}"
vms = 4

[[vcpu_quota]]
region = "{DST}"
family = "L-1216C47A"
vcpus = 320
used_vcpus = 64
"""
Begin = Callable[..., TrackedTransfer]
POOL_GBPS, QUOTA_VMS = 20.0, 8  # four times 5 Gbit/s (EC2's documentation), and 256 vCPUs of 32
SILENT_S = 100.0


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pools") / "pools.toml"
    file.write_text(POOLS)
    return file


def opened(where: Any, pools: Path) -> StoredWan:
    open_store(where, mode="create").close()
    return StoredWan(load_catalogue([pools]), where)


def plan_of(gbps: float, vms: int, duration_s: float = 300.0, name: str = "p") -> dict[str, Any]:
    return {
        "plan_id": name,
        "paths": [{"regions": [SRC, DST], "throughput_gbps": gbps}],
        "throughput_gbps": gbps,
        "duration_s": duration_s,
        "vms": {SRC: 4, DST: vms},
        "vm_types": {SRC: VM, DST: VM},
    }


class _Entry:
    def __init__(self, gbps: float, vms: int, heard_s: float) -> None:
        self.gbps, self.vms, self.heard_s = gbps, vms, heard_s
        self.moved_gb, self.is_lost, self.at_s = 0.0, False, heard_s


class Ledger(RuleBasedStateMachine):
    """Transfers begin, report, fall silent, end; the process is restarted; clocks are ahead."""

    where: Any
    wan: StoredWan
    set_clock: Callable[[Callable[[], float]], None]
    now_s = 1.8e9

    def __init__(self) -> None:
        super().__init__()
        type(self).now_s += 1e6  # all earlier examples are long silent
        self.entries: dict[str, _Entry] = {}
        self.count = 0
        self.set_clock(lambda: self.now_s)
        self._open()

    def _open(self) -> None:
        self.store = open_store(self.where, mode="write")
        self.register = TransferRegister(self.store.database, self.wan, "tester")

    def teardown(self) -> None:
        self.store.close()

    def live(self, but: str = "") -> list[_Entry]:
        return [
            one
            for name, one in self.entries.items()
            if name != but and not one.is_lost and self.now_s - one.heard_s <= SILENT_S
        ]

    def fits(self, gbps: float, vms: int, but: str = "") -> bool:
        live = self.live(but)
        sent, running = sum(one.gbps for one in live), sum(one.vms for one in live)
        return sent + gbps <= POOL_GBPS + 1e-6 and running + vms <= QUOTA_VMS

    @rule(gbps=st.sampled_from([0.5, 3.0, 7.5, 20.0]), vms=st.integers(1, 8))
    def begin(self, gbps: float, vms: int) -> None:
        self.count += 1
        name = f"{self.now_s:.0f}-{self.count}"
        begun: dict[str, Any] = {"volume_gb": 100, "id": name, "silent_after_s": SILENT_S}
        begun["plan"] = plan_of(gbps, vms)
        if self.fits(gbps, vms):
            for _ in range(2):  # again, under the same id, is the same transfer
                assert self.register.begin_transfer(SRC, DST, **begun).hold == "held"
            self.entries[name] = _Entry(gbps, vms, self.now_s)
        else:
            with pytest.raises(InfeasibleError, match="more than others leave"):
                self.register.begin_transfer(SRC, DST, **begun)
            assert name not in {one.id for one in self.register.transfers("in-flight")}

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), ahead_s=st.sampled_from([0.0, 50.0]))
    def report(self, data: st.DataObject, ahead_s: float) -> None:
        name = data.draw(st.sampled_from(sorted(self.entries)))
        one = self.entries[name]
        if not one.is_lost and self.now_s - one.heard_s > SILENT_S:
            one.is_lost = not self.fits(one.gbps, one.vms, but=name)
        one.heard_s, one.moved_gb = self.now_s, min(99.0, one.moved_gb + 1)
        one.at_s = max(one.at_s, self.now_s + ahead_s)
        found = self.register.report_transfer(name, one.moved_gb, at_s=one.at_s)
        assert found.hold == ("lost" if one.is_lost else "held")

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), state=st.sampled_from(["finished", "failed", "cancelled"]))
    def end(self, data: st.DataObject, state: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.entries)))
        at_s = max(self.now_s, self.entries.pop(name).at_s)
        found = self.register.end_transfer(name, state, at_s=at_s)
        assert found.hold == "none"

    @rule(pause_s=st.sampled_from([1.0, 40.0, 101.0, 250.0]))
    def wait(self, pause_s: float) -> None:
        type(self).now_s += pause_s

    @rule()
    def restart(self) -> None:
        self.teardown()
        self._open()

    @invariant()
    def holds_are_those_of_the_ledger(self) -> None:
        held = holds_of(self.store.database, self.now_s)
        sent = sum(one.egress_gbps for one in held.all if one.at == ("pool", SRC))
        vms = sum(one.vms for one in held.all if one.at == ("vms", DST))
        live = self.live()
        assert sent == pytest.approx(sum(one.gbps for one in live))
        assert vms == sum(one.vms for one in live)
        assert sent <= POOL_GBPS + 1e-6
        assert vms <= QUOTA_VMS


@ON_BOTH
def test_holds_are_never_more_than_there_is(
    spot: Spot, pools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_clock(clock: Callable[[], float]) -> None:
        monkeypatch.setattr(registers, "clock", clock)

    with closing(opened(spot.where, pools)) as wan:
        members = {"where": spot.where, "wan": wan, "set_clock": staticmethod(set_clock)}
        few = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
        run_state_machine_as_test(type("Machine", (Ledger,), members), settings=few)


@ON_BOTH
def test_many_that_begin_at_once_hold_no_more_than_there_is(spot: Spot, pools: Path) -> None:
    opened(spot.where, pools).close()

    def begin(number: int) -> bool:
        with (
            open_store(spot.where, mode="write") as store,
            closing(opened(spot.where, pools)) as it,
        ):
            register = TransferRegister(store.database, it, "tester")
            plan = plan_of(1.5, 0, name=str(number))
            try:
                register.begin_transfer(SRC, DST, volume_gb=1, id=str(number), plan=plan)
            except InfeasibleError:
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        began = sum(threads.map(begin, range(40)))
    assert began == POOL_GBPS // 1.5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def wan(file: Path, pools: Path) -> Iterator[StoredWan]:
    with closing(opened(file, pools)) as found:
        yield found


@pytest.fixture
def begun(file: Path, wan: StoredWan) -> Callable[..., TrackedTransfer]:
    def begin(plan: Plan | dict[str, Any], **more: Any) -> Any:
        if isinstance(plan, dict):  # figures only: what moves is not among them
            more = {"src": SRC, "dst": DST, "volume_gb": 500, **more}
        with open_store(file, mode="write") as store:
            return TransferRegister(store.database, wan, "tester").begin_transfer(plan=plan, **more)

    return begin


def test_a_plan_is_on_what_others_leave_and_says_so(wan: StoredWan, begun: Begin) -> None:
    alone = wan.plan(SRC, DST, volume_gb=500, vms=2)
    assert (alone.held, alone.without_others, alone.starts_at_s) == ((), None, None)
    begun(plan_of(15.0, 1), id="one")
    found = wan.plan(SRC, DST, volume_gb=500, vms=2)
    # Two of the four VMs, each with a quarter of its egress left.
    assert found.throughput_gbps == pytest.approx(alone.throughput_gbps / 4, rel=0.05)
    assert found.without_others is not None
    assert found.without_others.duration_s == alone.duration_s
    (vms, pool) = sorted(found.held, key=lambda one: one.place)
    assert (vms.kind, vms.place, vms.vms, vms.vms_left) == ("vms", DST, 1, 56)  # of 4 vCPUs
    assert (pool.kind, pool.egress_gbps, pool.egress_gbps_left) == ("pool", 15.0, 5.0)
    assert "1 transfer under way holds 15.00 Gbit/s sent" in str(found)
    assert found.plan_id != alone.plan_id

    # Of a plan in progress, its own hold does not count.
    begun(found, id="two")
    advice = wan.replan(found, moved_gb=100, elapsed_s=8 * 100 / found.throughput_gbps)
    left_s = 8 * (500 - 100) / found.throughput_gbps
    assert advice.keep.duration_s == pytest.approx(left_s, rel=0.05)


def test_a_full_pool_says_from_when_there_is_a_plan(wan: StoredWan, begun: Begin) -> None:
    begun(plan_of(12.0, 1, duration_s=600), id="one")
    begun(plan_of(8.0, 1, duration_s=200), id="two")
    with pytest.raises(InfeasibleError, match=r"hold all 20\.00 Gbit/s") as caught:
        wan.plan(SRC, DST, volume_gb=500, vms=4)
    starts_at_s = caught.value.starts_at_s
    found = wan.plan(SRC, DST, volume_gb=500, vms=4, queue=True)
    assert starts_at_s is not None
    assert found.starts_at_s is not None
    # When `two` has ended there is room; and to wait for `one`, too, ends no sooner.
    assert found.starts_at_s == starts_at_s
    with pytest.raises(InfeasibleError) as refused:
        begun(found, id="three")
    assert refused.value.starts_at_s == starts_at_s
    # What leaves the pool alone is not touched.
    assert wan.plan(RELAY, DST, volume_gb=10, vms=1).starts_at_s is None


def test_vms_of_ones_own_without_a_quota_take_nothing_and_it_is_said(
    wan: StoredWan, begun: Begin
) -> None:
    ends = RELAY, "aws:eu-west-1"
    before = wan.plan(*ends, volume_gb=500)
    for name in ("one", "two", "three"):
        begun(wan.plan(*ends, volume_gb=500), id=name)
    fourth = wan.plan(*ends, volume_gb=500)
    assert (fourth.throughput_gbps, fourth.vms) == (before.throughput_gbps, before.vms)
    assert [one.transfers for one in fourth.held] == [3, 3]
    assert "no quota is stated" in str(fourth)


def test_what_is_wrong_is_refused(begun: Begin) -> None:
    unknown = {"paths": [{"regions": [SRC, "mars"], "throughput_gbps": 1.0}]}
    for plan, problem in (
        (plan_of(21.0, 1), "more than there is"),
        (plan_of(1.0, 9), "more than there is"),
        ({**plan_of(1.0, 1), "vms": 3}, "does not say what it takes"),
        ({**plan_of(1.0, 1), "vms": {DST: -9}}, "does not say what it takes"),
        (unknown, "does not say what it takes"),
    ):
        with pytest.raises(InputError, match=problem):
            begun(plan)
        assert begun(plan, no_hold=True).hold == "none"
    old = {**plan_of(1.0, 1), "snapshot": {"as_of": "2020-01-01"}}
    with pytest.raises(InputError, match="newer figures are of 2022"):
        begun(old)


def test_any_plan_can_be_begun(wan: StoredWan, begun: Begin, file: Path) -> None:
    def sent() -> float:
        with open_store(file, mode="read") as store:
            return holds_of(store.database, time.time()).gbps("pool", SRC)[0]

    demands = {(SRC, DST): 50, (SRC, RELAY): 50, (RELAY, DST): 50}
    shuffle = wan.shuffle(demands, vms=2)
    assert begun(shuffle, id="shuffle").volume_gb == 150
    out = [pair.throughput_gbps for pair in shuffle.pairs if pair.src == SRC]
    assert sent() == pytest.approx(sum(out))
    broadcast = wan.broadcast(SRC, [DST, RELAY], volume_gb=500, vms=1)
    assert any(one.limits for one in broadcast.held)
    assert begun(broadcast, id="broadcast").dst == DST
    links = [link for tree in broadcast.trees for link in tree.legs if link.src == SRC]
    assert sent() == pytest.approx(sum(out) + sum(link.throughput_gbps for link in links))
    for name in ("shuffle", "broadcast"):
        with open_store(file, mode="write") as store:
            TransferRegister(store.database, wan, "tester").end_transfer(name)
    assert sent() == 0
    timed = {"id": "nightly", "src": SRC, "dst": DST, "volume_gb": 500, "deadline_s": 3600}
    schedule = wan.schedule([timed], vms=1)
    assert begun(schedule, id="nightly").volume_gb == 500
    with pytest.raises(InputError, match="Missing src"):
        begun(schedule, id="weekly")
    (admitted,) = schedule.transfers
    assert sent() == pytest.approx(max(one.throughput_gbps for one in admitted.periods))
    # A shuffle's ends are no pair: its time says nothing of a link.
    with open_store(file, mode="read") as store:
        assert store.samples.last_id() == 0


def test_a_store_of_version_1_is_read_as_it_is_and_migrated_when_it_is_written(
    file: Path, pools: Path
) -> None:
    with open_store(file, mode="create") as store:
        register = TransferRegister(store.database, StoredWan(load_catalogue([pools]), file), "me")
        register.begin_transfer(SRC, DST, volume_gb=1, id="old")
    with closing(sqlite3.connect(file)) as plain:
        plain.execute("DROP TABLE holds")
        plain.execute("ALTER TABLE transfers DROP COLUMN limited_by")
        plain.execute("PRAGMA user_version = 1")
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.read_bytes()
    with closing(StoredWan(load_catalogue([pools]), file)) as wan:
        assert wan.plan(SRC, DST, volume_gb=1).held == ()
        with open_store(file, mode="read") as store:
            found = TransferRegister(store.database, wan, "").transfer_details("old").transfer
            assert (found.id, found.hold) == ("old", "none")
        assert file.read_bytes() == before
        with open_store(file, mode="write") as store:
            register = TransferRegister(store.database, wan, "me")
            new = register.begin_transfer(SRC, DST, volume_gb=1, plan=plan_of(1.0, 1))
        assert new.hold == "held"
        assert {one.transfers for one in wan.plan(SRC, DST, volume_gb=1).held} == {1}
