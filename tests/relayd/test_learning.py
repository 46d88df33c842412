"""What transfers teach plans, by what limited them, at what time, and whoever reports them."""

from __future__ import annotations

import time
from itertools import permutations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import pytest

import relayd as library
from planner.transfer.plan import Plan
from probes.liveness.link_health import HealthPolicy
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.ingest import append
from relayd.transfers.register import TransferRegister
from relayd.watch.links import WatchedLinks
from tests.relayd.conftest import Relayd

SRC, DST = "aws:us-east-1", "aws:sa-east-1"
ELSEWHERE = [
    ("gcp:us-east1", "gcp:europe-west1"),
    ("aws:eu-west-1", "aws:us-west-2"),
    ("azure:eastus", "azure:westeurope"),
]
CATALOGUE = load_catalogue()
TESTED = 5.0


class Door(NamedTuple):
    """How a report comes in: who sends it, and from where."""

    who: str
    address: str = ""


DOORS = [Door("root@here"), Door("robot", "10.0.0.9"), Door("10.0.0.9", "10.0.0.9")]


class Ledger:
    """A store in which the link was just tested, and transfers are reported through a door."""

    def __init__(self, db: Path, door: Door = DOORS[0], tests: int = 5) -> None:
        self.db, self.door, self.begin_s = str(db), door, time.time() - 2 * 86_400
        test = Sample(SRC, DST, "aggregate_mbps", 1e3 * TESTED, 0.0, "iperf3", 64, warmed_up=True)
        samples = [
            test._replace(measured_at_s=self.begin_s - 1e4 + 700 * n, duration_s=60.0)
            for n in range(tests)
        ]
        with open_store(self.db, mode="create") as store:
            append(store, samples)
            make_snapshot(store, CATALOGUE)

    def plan(self, src: str = SRC, dst: str = DST, **more: Any) -> Plan:
        return library.open(self.db).plan(src, dst, **{"volume_gb": 500, "vms": 1} | more)

    def rate(self) -> float:
        return library.open(self.db).network.link(SRC, DST).aggregate_gbps.expected

    def sent(
        self,
        *gbps: float,
        src: str = SRC,
        dst: str = DST,
        share: float = 0.0,
        at_once: int = 1,
        label: str | None = None,
        **end: str,
    ) -> Ledger:
        """Report transfers at some rates, or at a share of that of their plan, and estimate."""
        plan, wan = self.plan(src, dst, relays="none"), library.open(self.db)
        with open_store(self.db, mode="write") as store:
            who, address = self.door
            register = TransferRegister(
                store.database, wan, who, is_operator=not address, address=address
            )
            rates = gbps or (share * plan.throughput_gbps,)
            for number, rate in enumerate(rates):
                begun: dict[str, Any] = {"plan": plan, "at_s": self.begin_s, "label": label}
                name = register.begin_transfer(src, dst, volume_gb=500, **begun).id
                register.end_transfer(name, at_s=self.begin_s + 4000 / rate, **end)
                if (number + 1) % at_once == 0:
                    self.begin_s += 4000 / rate
            make_snapshot(store, CATALOGUE)
        return self


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("limited_by", ["application", "disk", "unknown"])
def test_what_a_program_holds_is_a_lower_bound(door: Door, limited_by: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "db", door)
    before = ledger.plan(vms=None)
    after = ledger.sent(*[2.5] * 12, limited_by=limited_by).plan(vms=None)
    assert (after.verdict, after.throughput_gbps) == (before.verdict, before.throughput_gbps)
    assert after.cost_usd == before.cost_usd
    named = {(one.src, one.dst) for one in after.measure_first}
    # The program says that it held itself, which contradicts nothing; what is not known may.
    assert ((SRC, DST) in named) == (limited_by == "unknown")
    basis = library.open(ledger.db).network.link(SRC, DST).aggregate_gbps.basis
    assert "transfers at 2.50 Gbit/s (median) count, 12 as a lower bound" in basis
    assert ledger.sent(*[6.0] * 3, limited_by=limited_by).rate() == pytest.approx(6.0, rel=0.02)


@pytest.mark.parametrize("door", DOORS)
def test_what_the_network_holds_is_a_sample_of_the_path(door: Door, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "db", door)
    assert ledger.sent(2.5, 2.52, limited_by="network").rate() == pytest.approx(TESTED, rel=0.01)
    after = ledger.sent(2.48, limited_by="network").plan()
    assert after.throughput_gbps == pytest.approx(2.5, rel=0.02)
    assert (SRC, DST, "aggregate") in {(m.src, m.dst, m.kind) for m in after.measure_first}
    said = " ".join(after.warnings)
    assert f"{door.who} report, which the prober has not confirmed" in said


@pytest.mark.parametrize("pooled", [False, True])
def test_what_a_pool_sends_at_the_same_time_is_added_up(pooled: bool, tmp_path: Path) -> None:
    ledger, pool = Ledger(tmp_path / "db"), tmp_path / "pool.toml"
    pool.write_text(f'[[pool]]\nregion = "{SRC}"\nvm_type = "aws:m5.8xlarge"\nvms = 1\n')
    wan = library.open(ledger.db, catalogues=[pool] if pooled else [])
    with open_store(ledger.db, mode="write") as store:
        register = TransferRegister(store.database, wan, "robot")
        for number in range(3):
            for dst in (DST, "aws:eu-west-1"):
                begin_s = ledger.begin_s + 2000 * number
                begun = register.begin_transfer(SRC, dst, volume_gb=500, at_s=begin_s)
                register.end_transfer(begun.id, at_s=begin_s + 1600, limited_by="network")
        make_snapshot(store, CATALOGUE)
    # Half of what its one VM sends went elsewhere; VMs of one's own are not shared.
    assert ledger.rate() == pytest.approx(TESTED if pooled else 2.5, rel=0.02)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_sent_at_the_same_time_is_added_up(door: Door, tmp_path: Path) -> None:
    for limited_by in ("network", "unknown"):
        ledger = Ledger(tmp_path / limited_by, door)
        ledger.sent(*[TESTED / 3] * 6, at_once=3, limited_by=limited_by)
        assert ledger.rate() == pytest.approx(TESTED, rel=0.02)
        assert (SRC, DST) not in {(one.src, one.dst) for one in ledger.plan().measure_first}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("share", "expected"), [(1.0, 2.5), (0.5, TESTED)])
def test_what_is_not_known_is_read_by_the_company_it_keeps(
    door: Door, share: float, expected: float, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "db", door)
    for src, dst in ELSEWHERE:
        ledger.sent(src=src, dst=dst, share=share)
    assert ledger.sent(*[2.5] * 3).rate() == pytest.approx(expected, rel=0.02)


def test_slower_transfers_elsewhere_vouch_for_none(tmp_path: Path) -> None:
    """The program may carry 2 Gbit/s at most: that it reached a plan of 1.9 shows nothing."""
    ledger = Ledger(tmp_path / "db")
    src, dst = ELSEWHERE[0]
    ledger.sent(*[1.9] * 3, src=src, dst=dst, limited_by="network").sent(
        *[1.9] * 3, src=src, dst=dst
    )
    assert ledger.plan(src, dst).throughput_gbps == pytest.approx(1.9, rel=0.02)
    assert ledger.sent(*[2.0] * 6).rate() == pytest.approx(TESTED, rel=0.01)


@pytest.mark.parametrize("limited_by", ["network", "unknown"])
def test_the_prober_settles_what_transfers_claim(limited_by: str, tmp_path: Path) -> None:
    ledger, links = Ledger(tmp_path / "db"), WatchedLinks([(SRC, DST), (DST, SRC)], HealthPolicy())

    def doubtful() -> list[tuple[str, str]]:
        links.expect(library.open(ledger.db).network)
        return links.doubtful(time.time())

    assert doubtful() == []
    ledger.sent(*[2.5] * 3, limited_by=limited_by)
    assert doubtful() == [(SRC, DST)]
    for gbps, expected in ((5.0, 5.0), (2.5, 2.5)):
        with open_store(ledger.db, mode="write") as store:
            test = Sample(SRC, DST, "aggregate_mbps", 1e3 * gbps, 0.0, "iperf3", 64, 60.0)
            times = [ledger.begin_s + 700 * number for number in range(4 if gbps == 5.0 else 12)]
            append(store, [test._replace(measured_at_s=at_s, warmed_up=True) for at_s in times])
            ledger.begin_s = times[-1] + 700
            make_snapshot(store, CATALOGUE)
        assert ledger.rate() == pytest.approx(expected, rel=0.02)
        assert "not confirmed" not in " ".join(ledger.plan().warnings)
        assert doubtful() == []


@pytest.mark.parametrize("door", DOORS)
def test_plans_say_what_their_programs_achieve(door: Door, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "db", door)
    before = ledger.plan()
    assert before.as_achieved is None
    ledger.sent(*[2.5] * 12, limited_by="application")
    ledger.sent(*[4.0] * 2, limited_by="disk", label="nightly")
    after = ledger.plan(deadline_s=1200)
    found, labelled = after.as_achieved, ledger.plan(label="nightly").as_achieved
    assert found
    assert labelled
    assert (found.of, found.transfers, labelled.of, labelled.transfers) == ("pair", 14, "label", 2)
    assert found.median == pytest.approx(2.5 / before.throughput_gbps)
    assert labelled.median == pytest.approx(4.0 / before.throughput_gbps)
    sending_s = before.duration_s + 8 * 500 * (1 / 2.5 - 1 / before.throughput_gbps)
    assert found.duration_s == pytest.approx(sending_s, rel=1e-3)
    assert (after.verdict, after.throughput_gbps) == (before.verdict, before.throughput_gbps)
    said = "As achieved: 0.50 of the planned rate (0.50 to 0.80) by the last 14 transfers"
    assert said in " ".join(after.text().split())
    assert any(one.startswith("As achieved") and "deadline" in one for one in after.warnings)
    early = ledger.plan(deadline_s=7200)
    assert not any("As achieved" in one for one in early.warnings)


@pytest.mark.thorough
def test_paths_are_learnt_from_transfers_and_programs_never_move_a_decision(tmp_path: Path) -> None:
    """200 transfers over ten links that no test has measured, and 200 that applications held."""
    random = Random(7)
    ends = [SRC, DST, "gcp:us-east1", "azure:westeurope", "aws:ap-northeast-1"]
    pairs = [pair for pair in permutations(ends, 2) if pair[0] < pair[1]]
    ledger = Ledger(tmp_path / "db", tests=0)
    before = {pair: ledger.plan(*pair, volume_gb=100) for pair in pairs}
    for src, dst in pairs:
        ledger.begin_s = time.time() - 20 * 86_400
        shares = [random.uniform(0.1, 0.95) for _ in range(20)]
        rate = before[src, dst].direct.throughput_gbps or 0.0
        ledger.sent(*(rate * x for x in shares), src=src, dst=dst, limited_by="application")
    for pair, was in before.items():
        now = ledger.plan(*pair, volume_gb=100)
        assert (now.verdict, now.cost_usd, now.vms) == (was.verdict, was.cost_usd, was.vms)
    errors = []
    for src, dst in pairs:
        ledger.begin_s = time.time() - 10 * 86_400
        truth = 4.5 * random.uniform(0.2, 1.0)
        rates = [truth * random.lognormvariate(0.0, 0.04) for _ in range(20)]
        found = ledger.sent(*rates, src=src, dst=dst, limited_by="network").plan(src, dst)
        errors.append(abs((found.direct.throughput_gbps or 0.0) / truth - 1))
    assert median(errors) < 0.05
    assert max(errors) < 0.1


def test_commands_and_tables_state_what_limited(relayd: Relayd, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "db")
    db = ["--db", ledger.db]
    assert relayd("transfers", "begin", SRC, DST, "--volume", "1GB", "--id", "a", *db).code == 0
    moved = relayd("transfers", "progress", "a", "--moved", "0.5GB", "--limited-by", "disk", *db)
    assert moved.code == 0
    wrong = relayd("transfers", "end", "a", "--limited-by", "cpu", *db)
    assert (wrong.code, "application" in wrong.err) == (2, True)
    assert '"limited_by": "disk"' in relayd("transfers", "show", "a", "--json", *db).out
    table = tmp_path / "log.csv"
    header = "src,dst,aggregate_gbps,connections,measured_at_s,limited_by\n"
    rows = [f"{SRC},{DST},2.5,64,{ledger.begin_s + n},application\n" for n in range(9)]
    table.write_text(header + "".join(rows))
    assert relayd("import", "csv", table, "--trust", *db).code == 0
    assert ledger.rate() == pytest.approx(TESTED, rel=0.01)
