"""Campaigns in the store and on real hosts: kept whole, done once, failures kept apart."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from planner.model.errors import InputError, StoreError
from probes.campaign.costing import Meter, task_volume_gb
from probes.campaign.engine import Engine
from probes.campaign.probing import Prober
from probes.campaign.specification import AS_ASKED, CampaignSpec, Method
from probes.campaign.tasks import CampaignLimits, Phase, ProbeOutcome, ProbeTask
from probes.campaign.throughput_tests import Findings
from probes.fleet.failures import ProbeError
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions
from probes.samples import Sample
from relayd.campaigns.running import CampaignRunner
from relayd.catalogue.loading import load_catalogue
from relayd.store import Store, open_store
from relayd.store.campaigns import Campaigns, Spending, StoredCampaign, failures, last_event, stages
from relayd.store.events import Events
from tests.probes.fleet.machines import Machine, machines, need, owner
from tests.relayd.store.engines import PostgresqlSpot, Spot, program, said
from tests.relayd.store.proxy import Proxy

_PING = ProbeTask("rtt", (("aws:us-east-1", "gcp:us-east1"),), 0, 1.0)
_CAPS = ProbeTask("caps", (("a", "b"), ("a", "c")), 64, 5.0, 4.5)
_SAMPLE = Sample("aws:us-east-1", "gcp:us-east1", "rtt_ms", 11.5, 1.7e9, "ping")
_REGIONS = ["aws:us-east-1", "gcp:us-east1", "azure:eastus", "aws:eu-west-1"]
_BRIEF = Timeouts(connect_s=4, login_s=4)


def test_plans_come_back_as_they_were(store: Store) -> None:
    ramped = replace(_CAPS, phase="aggregate", ramp=True, udp_s=10.0, first_s=2.0, most_gbps=9.0)
    spec = CampaignSpec(phases=("rtt",), pairs=(("a", "b"),), thorough=True)
    method = Method(udp=True, window_bytes=2**20)
    runner = CampaignRunner(Fleet({}), load_catalogue(), store)
    runner.begin(spec, method, None).plan("rtt", [_PING, _CAPS, ramped])
    found = Campaigns(store).unfinished()
    assert found
    assert [probe.task for probe in found.probes()] == [_PING, _CAPS, ramped]
    assert (found.spec, found.method) == (spec, method)


def test_a_campaign_is_not_resumed_at_another_price(store: Store, tmp_path: Path) -> None:
    def runner(*prices: str) -> CampaignRunner:
        file = tmp_path / "fleet.toml"
        file.write_text(
            "".join(
                f'[[host]]\nregion = "{region}"\nhost = "127.0.0.{n}"\n{price}\n'
                for n, (region, price) in enumerate(zip(_REGIONS, prices, strict=False), 1)
            )
        )
        return CampaignRunner(load_fleet(file), load_catalogue(), store)

    runner("egress_usd_per_gb = 0.09", "").begin(CampaignSpec(), Method(), 5.0)
    same = runner("egress_usd_per_gb = 0.09", "").unfinished()
    assert same
    assert not any(probe.status for probe in same.probes())
    for other in (("egress_usd_per_gb = 0.01", ""), ("", ""), ("", "egress_usd_per_gb = 0.09")):
        with pytest.raises(InputError, match=r"was \$0.09 when this campaign began") as caught:
            runner(*other).unfinished()
        assert caught.value.field == "egress_usd_per_gb"


def test_a_campaign_is_found_again_with_what_is_left(store: Store, spot: Spot) -> None:
    campaigns = Campaigns(store)
    assert campaigns.unfinished() is None
    campaign = campaigns.begin({"wish": {"phases": ["rtt"]}})
    first, second = campaign.plan("rtt", [_PING, _CAPS])
    campaign.record([ProbeOutcome(first, (_SAMPLE,), sent_gb=0.5, usd=0.25)])
    campaign.record([ProbeOutcome(second, sent_gb=0.25, usd=0.125, problem="it hung", attempts=3)])
    (stage,) = stages(store.database, campaign.id)
    assert stage == ("rtt", 0, 1, 1, 0.75, 0.375)
    (found_failure,) = failures(store.database, campaign.id)
    assert (found_failure.problem, found_failure.probes) == ("it hung", 1)
    assert (found_failure.hosts, found_failure.attempts) == (["a", "b", "c"], 3)
    assert last_event(store.database, campaign.id) is None
    for done in (1, 2):
        Events(store.database).add("campaign", str(campaign.id), {"done": done})
    assert (last_event(store.database, campaign.id) or {})["done"] == 2
    with open_store(spot.where, mode="write") as again:
        found = Campaigns(again).unfinished()
        assert found is not None
        assert found.options == {"wish": {"phases": ["rtt"]}}
        assert [(p.status, p.problem) for p in found.probes()] == [
            ("done", ""),
            ("failed", "it hung"),
        ]
        assert found.spent() == (0.75, 0.375)
        assert Campaigns(again).controller == campaigns.controller
        found.finish()
    assert campaigns.unfinished() is None
    assert list(store.samples.read()) == [_SAMPLE]


def test_what_was_running_at_a_kill_is_spent_at_its_worst_and_once(
    store: Store, spot: Spot
) -> None:
    campaign = Campaigns(store).begin({})
    reported, lost = campaign.plan("aggregate 1", [_CAPS, _CAPS])
    campaign.reserve([(reported, 4.0, 2.0), (lost, 1.0, 0.5)])
    campaign.record([ProbeOutcome(reported, sent_gb=1.0, usd=0.5)])
    for _ in range(2):  # killed twice in the same probe
        with open_store(spot.where, mode="write") as again:
            resumed = Campaigns(again).unfinished()
            assert resumed
            before = resumed.spent()
            resumed.charge_lost()
            assert resumed.spent() == before
            resumed.reserve([(lost, 1.0, 0.5)])
    assert campaign.spent() == (4.0, 2.0)
    campaign.record([ProbeOutcome(lost, sent_gb=0.25, usd=0.125)])
    assert campaign.spent() == (3.25, 1.625)


def test_samples_and_their_probe_are_kept_together_or_not_at_all(store: Store, spot: Spot) -> None:
    campaign = Campaigns(store).begin({})
    first, second = campaign.plan("rtt", [_PING, _PING])
    campaign.record([ProbeOutcome(first, (_SAMPLE,))])
    with pytest.raises(spot.integrity_error, match="the probe is done"):
        campaign.record([ProbeOutcome(first, (_SAMPLE._replace(value=12.0),))])
    with pytest.raises(InputError, match=r"can't be stored.*= -1\.0"):
        campaign.record([ProbeOutcome(second, (_SAMPLE._replace(value=-1.0),))])
    assert list(store.samples.read()) == [_SAMPLE]
    assert [probe.status for probe in campaign.probes()] == ["done", "planned"]


def test_what_was_stored_in_doubt_is_stored_and_paid_for_once(
    postgresql_spot: PostgresqlSpot,
) -> None:
    server = postgresql_spot.server
    open_store(postgresql_spot.where, mode="create").close()
    with (
        Proxy(server.port) as proxy,
        open_store(postgresql_spot.through(proxy), mode="write") as store,
    ):
        campaign = Campaigns(store).begin({})
        done, failed, later = campaign.plan("rtt", [_PING, _PING, _PING])
        outcomes = [
            ProbeOutcome(done, (_SAMPLE,), sent_gb=0.5, usd=0.25),
            ProbeOutcome(failed, sent_gb=0.5, usd=0.25, problem="it hung"),
        ]
        # Statistics that begin again may follow a crash: then nothing is sure.
        server.sql("SELECT pg_stat_reset_shared('bgwriter')")
        proxy.cut_at(b"COMMIT\0", forward=True)
        with pytest.raises(StoreError, match="could not be asked since"):
            campaign.record(outcomes)
        assert [probe.status for probe in campaign.probes()] == ["done", "failed", "planned"]
        campaign.record([*outcomes, ProbeOutcome(later, sent_gb=0.125, usd=0.5)])
        assert campaign.spent() == (1.125, 1.0)
        assert list(store.samples.read()) == [_SAMPLE]
        # Tried again on purpose, it is paid for again.
        campaign.record([ProbeOutcome(failed, sent_gb=0.5, usd=0.25)])
        assert campaign.spent() == (1.625, 1.25)


def test_one_campaign_at_a_time_also_after_a_kill(store: Store, spot: Spot) -> None:
    code = (
        "import sys, time\n"
        "from relayd.store import open_store\n"
        "from relayd.store.campaigns import Campaigns\n"
        "with open_store(sys.argv[1], mode='write') as store, Campaigns(store).alone():\n"
        "    print('alone', flush=True)\n"
        "    time.sleep(600)\n"
    )
    with program(code, spot.where) as other:
        said(other, "alone")
        with pytest.raises(InputError, match="in use by another campaign or a watcher"):
            Campaigns(store).alone().__enter__()
    campaigns = Campaigns(store)
    number = campaigns.begin({}).id
    campaigns.ask_to_stop(number)
    with campaigns.alone():
        assert not campaigns.take_stop(number)  # of a run before
        campaigns.ask_to_stop(number)
        assert campaigns.take_stop(number)


def test_replicas_never_reserve_the_same_money_of_a_day(store: Store, spot: Spot) -> None:
    """Each of three has a connection of its own, and asks for a third more than there is."""

    def reserve(_: int) -> int:
        with open_store(spot.where, mode="write") as own:
            spending = Spending(own.database)
            asked = [spending.reserve("2026-01-01", "campaign", 0.15, 1.0) for _ in range(3)]
            return sum(asked)

    with ThreadPoolExecutor(3) as pool:
        granted = sum(pool.map(reserve, range(3)))
    assert granted == 6
    assert Spending(store.database).committed_usd("2026-01-01") == pytest.approx(0.9)


# ---- the engine, on real hosts -----------------------------------------------------------------


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, dict[str, Machine]]]:
    need("ping")
    with machines(tmp_path_factory.mktemp("hosts"), _REGIONS) as found:
        yield found


@pytest.fixture
def fleet(hosts: tuple[Fleet, dict[str, Machine]]) -> Iterator[tuple[Fleet, dict[str, Machine]]]:
    """Hosts that answer at first, whatever a test does to them."""
    yield hosts
    for machine in hosts[1].values():
        if machine.process is None:
            machine.start()
        machine.signal(signal.SIGCONT)


def _pings(names: list[str]) -> list[ProbeTask]:
    return [ProbeTask("rtt", ((a, b),), 0, 0.6) for a in names for b in names if a != b]


def _run(
    fleet: Fleet,
    campaign: StoredCampaign,
    tasks: list[ProbeTask],
    limits: CampaignLimits,
    prober: type[Prober] = Prober,
    *,
    method: Method = AS_ASKED,
    stage: str = "aggregate 1",
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[list[ProbeOutcome], Engine]:
    async def main() -> tuple[list[ProbeOutcome], Engine]:
        async with Sessions(fleet, owner("engine"), timeouts=_BRIEF) as sessions:
            made = prober(sessions, lambda *_: 1.0, method)
            meter = Meter(load_catalogue())
            engine = Engine(sessions, made, campaign, meter, limits, on_note=on_note, seed=1)
            return await engine.run(campaign.plan(stage, tasks)), engine

    return asyncio.run(asyncio.wait_for(main(), 120))


def test_a_dead_and_a_hanging_host_cost_only_their_own_probes(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    members, found = fleet
    dead, hanging = _REGIONS[2:]
    found[dead].stop()
    found[hanging].signal(signal.SIGSTOP)
    campaign = Campaigns(store).begin({})
    limits = CampaignLimits(backoff_s=0.1)
    outcomes, _ = _run(members, campaign, _pings(_REGIONS), limits, stage="rtt")
    probes = campaign.probes()
    assert len(outcomes) == len(probes) == 12
    # Where such a host only has to answer pings, its sshd is not asked for anything.
    for outcome in outcomes:
        client = outcome.probe.task.pairs[0][0]
        assert bool(outcome.problem) == (client in (dead, hanging))
        if outcome.problem:
            assert outcome.host == client
            assert outcome.usd == outcome.sent_gb == 0.0
    assert {probe.status for probe in probes} == {"done", "failed"}
    assert len({(s.src, s.dst) for s in store.samples.read()}) == 6


def test_a_host_that_comes_back_gets_its_second_chance(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    members, found = fleet
    late = _REGIONS[1]
    found[late].stop()
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        found[late].start()

    limits, campaign = CampaignLimits(backoff_s=0.1), Campaigns(store).begin({})
    outcomes, _ = _run(members, campaign, _pings(_REGIONS), limits, stage="rtt", on_note=note)
    assert any("skipped for now" in text for text in notes)
    assert len(outcomes) == 12
    assert not [outcome.problem for outcome in outcomes if outcome.problem]


def test_no_host_is_in_two_bandwidth_probes_and_rounds_give_the_order(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    busy: Counter[str] = Counter()
    most: list[int] = []
    order: list[ProbeTask] = []

    class Watched(Prober):
        async def probe(self, task: ProbeTask, findings: Findings) -> None:
            order.append(task)
            busy.update(task.hosts)
            most.append(max(busy.values()))
            try:
                await asyncio.sleep(task.duration_s)
            finally:
                busy.subtract(task.hosts)

    tasks = [ProbeTask("aggregate", (pair,), 4, 0.05, 0.001) for pair in permutations(_REGIONS, 2)]
    limits, campaign = CampaignLimits(jitter_s=0.02), Campaigns(store).begin({})
    _, engine = _run(fleet[0], campaign, tasks, limits, Watched)
    assert engine.progress.rounds == 6  # 4 hosts, 12 pairs, two at a time
    assert max(most) == 1
    assert Counter(order) == Counter(tasks)


class _Sender(Prober):
    async def probe(self, task: ProbeTask, findings: Findings) -> None:
        findings.sent.append((*task.pairs[0], task_volume_gb(task)))


def test_a_budget_is_never_passed(fleet: tuple[Fleet, dict[str, Machine]], store: Store) -> None:
    pair = (_REGIONS[0], _REGIONS[1])
    tasks = [ProbeTask("aggregate", (pair,), 4, 0.01, 800.0) for _ in range(6)]  # 1 GB: $0.09
    limits = CampaignLimits(budget_usd=0.25, jitter_s=0.0)
    _, engine = _run(fleet[0], Campaigns(store).begin({}), tasks, limits, _Sender)
    assert (engine.progress.done, engine.progress.left_out) == (2, 4)
    assert engine.progress.usd == pytest.approx(2 * (1.07 * 0.09 + 0.03 * 0.12), rel=0.01)


def test_a_budget_too_small_for_many_connections_still_measures_one(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    # 0.1 GB with one connection, $0.009; 1 GB more with four.
    pair = (_REGIONS[0], _REGIONS[1])
    task = ProbeTask("aggregate", (pair,), 4, 2.0, 4.4, flow_s=1.0, flow_gbps=0.8)
    limits = CampaignLimits(budget_usd=0.2, jitter_s=0.0)
    tasks = [replace(task) for _ in range(4)]
    outcomes, engine = _run(fleet[0], Campaigns(store).begin({}), tasks, limits, _Sender)
    assert [outcome.probe.task.phase for outcome in outcomes] == ["aggregate", *["per-flow"] * 3]
    assert [outcome.notes for outcome in outcomes[1:]] == [
        ("one connection alone: the budget does not allow many",)
    ] * 3
    assert engine.progress.left_out == 3
    assert engine.ledger.usd <= 0.2


def test_a_probe_starts_once_the_store_has_what_it_may_send(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    """So does one that fails and is tried again: what it has sent stays spent meanwhile."""
    campaign = Campaigns(store).begin({})
    task = ProbeTask("aggregate", ((_REGIONS[0], _REGIONS[1]),), 4, 0.01, 80.0)  # 0.1 GB: $0.009
    seen: list[float] = []

    class Failing(Prober):
        async def probe(self, task: ProbeTask, findings: Findings) -> None:
            seen.append(campaign.spent()[0])
            findings.sent.append((*task.pairs[0], 0.2))
            raise ProbeError(task.pairs[0][0], "tool", "it broke")

    limits = CampaignLimits(budget_usd=1.0, jitter_s=0.0, backoff_s=0.01)
    _run(fleet[0], campaign, [task], limits, Failing)
    assert seen == pytest.approx([0.3, 0.5, 0.7])
    assert campaign.spent()[0] == pytest.approx(0.6)


@pytest.mark.parametrize(("phase", "peers"), [("aggregate", 1), ("caps", 2)])
def test_a_path_far_above_what_was_expected_keeps_to_the_budget(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store, phase: Phase, peers: int
) -> None:
    """Loopback carries a hundred times what the task says: 4 s without a limit cost over $0.2."""
    need("iperf3")
    budget_usd = 0.012
    pairs = tuple((_REGIONS[0], peer) for peer in _REGIONS[1 : 1 + peers])
    campaign = Campaigns(store).begin({})
    limits = CampaignLimits(budget_usd=budget_usd, jitter_s=0.0)
    task, method = ProbeTask(phase, pairs, 2, 4.0, 0.02), Method(ramp="never")
    (outcome,), engine = _run(fleet[0], campaign, [task], limits, method=method, stage=phase)
    assert (outcome.cause, outcome.samples) == ("limit", ())
    assert "the budget allows" in outcome.problem
    assert outcome.attempts == 2
    # What it did allow was sent, and every attempt of it is paid for.
    assert 0.5 * budget_usd < outcome.usd == engine.ledger.usd <= budget_usd
    assert campaign.spent() == pytest.approx((engine.ledger.sent_gb, engine.ledger.usd))


def test_a_file_without_room_is_waited_for(
    fleet: tuple[Fleet, dict[str, Machine]], store: Store
) -> None:
    members, _ = fleet
    campaign = Campaigns(store).begin({})
    page_count = store.database.row("PRAGMA page_count")[0]
    notes: list[str] = []

    async def main() -> list[ProbeOutcome]:
        async with Sessions(members, owner("engine")) as sessions:
            probes = campaign.plan("rtt", _pings(_REGIONS[:2]))
            store.database.row(f"PRAGMA max_page_count = {page_count}")

            def note(text: str) -> None:
                notes.append(text)
                store.database.row("PRAGMA max_page_count = 100000")

            engine = Engine(
                sessions,
                Prober(sessions, lambda *_: 1.0),
                campaign,
                Meter(load_catalogue()),
                CampaignLimits(),
                on_note=note,
                seed=1,
            )
            # Fill the page that is left, so that the first write finds no room.
            with contextlib.suppress(StoreError):
                while True:
                    campaign.plan("later", [_CAPS] * 50)
            return await engine.run(probes)

    outcomes = asyncio.run(main())
    assert len(outcomes) == 2
    assert all(probe.status == "done" for probe in campaign.probes() if probe.stage == "rtt")
    assert all("disk is full" in text for text in notes)
