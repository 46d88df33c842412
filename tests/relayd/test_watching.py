"""Continuous operation without a lab: money, hours, roles, the webhook, and states in answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relayd
from planner.model.errors import InputError
from probes.campaign.tasks import PHASES, Phase, ProbeOutcome, ProbeTask
from probes.estimation.current_samples import LinkShift
from probes.fleet.hosts import Fleet
from probes.liveness.link_health import HealthPolicy, LinkHealth, LivenessProbe
from probes.liveness.probing import parameters_for
from relayd.catalogue.loading import load_catalogue
from relayd.cli.commands import parse
from relayd.cli.measuring.watch import watch_options
from relayd.snapshots.building import make_snapshot
from relayd.sources.stored import StoredWan
from relayd.store import Store, open_store
from relayd.store.campaigns import Campaigns, Spending
from relayd.store.events import Event, Events
from relayd.store.links import LevelShifts, LinkStates
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.times import utc_date
from relayd.watch import watcher as watching
from relayd.watch.campaigns import LAST, LAST_BY_REGRET, LONGEST_S, CampaignScheduler, settle_killed
from relayd.watch.links import WatchedLinks
from relayd.watch.liveness import LEAST_SHARE, OVERHEAD_S, LivenessBudget, period_s
from relayd.watch.settings import DAY_S, QuietHours, WatchOptions, day_left_s
from relayd.watch.storage import StoreThread
from relayd.watch.upkeep import new_throughput
from relayd.watch.watcher import Watcher
from relayd.watch.webhook import DeliveryError, Notifier, Webhook, retry_s
from tests.properties import examples
from tests.relayd.building import ping, rate, unreachable
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import PostgresqlSpot, Program
from tests.relayd.store.test_store_leases import holder_at
from tests.waiting import soon

_ROOT = Path(__file__).parents[2]
_PAIR = ("aws:us-east-1", "aws:sa-east-1")
_DOWN = LinkHealth("down", 1.8e9, "3 probes in a row got no reply", silent=3)
_SECRET = "0123456789abcdef"
_NONE, _CATALOGUE = Fleet({}), load_catalogue()


def _keep(store: Store, health: LinkHealth | None, until_s: float) -> None:
    with store.database.transaction():
        LinkStates(store.database).keep(
            {_PAIR: health} if health else {}, [] if health else [_PAIR], until_s
        )


# ---- states in answers ---------------------------------------------------------------------------


def test_answers_go_by_states_until_they_are_taken_back_or_too_old(store: Store, db: Path) -> None:
    wan = relayd.open(db)
    ask = ("us-east", "aws:sa-east-1")
    usual = wan.plan(*ask, relays="none")
    _keep(store, _DOWN, time.time() + 60)
    assert wan.plan(*ask).verdict == usual.verdict  # as it was read
    assert list(wan.refresh_link_states()) == [_PAIR]
    plan = wan.plan(*ask)
    assert plan.verdict != "direct"
    assert f"{_PAIR[0]} -> {_PAIR[1]} is down since 2027-01-15T08:00:00Z" in plan.reason
    assert relayd.open(db).plan(*ask).reason == plan.reason
    # VM types are another model of the same link, which is as dead.
    assert wan.plan(*ask, vm_types={"aws": "t2.micro"}).verdict != "direct"
    assert wan.matrix("aggregate")[_PAIR] == 0
    shuffled = wan.shuffle({_PAIR: 10.0})
    assert any("is down since" in warning for warning in shuffled.warnings)
    _keep(store, None, 0)
    wan.refresh()
    assert wan.plan(*ask, relays="none").reason == usual.reason
    _keep(store, _DOWN, time.time() - 1)
    assert relayd.open(db).plan(*ask, relays="none").reason == usual.reason


# ---- money and hours -----------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), st.booleans()), max_size=25))
def test_reservations_never_exceed_the_budget(steps: list[tuple[float, float, bool]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "relayd.db", mode="create") as store,
    ):
        spending = Spending(store.database)
        for usd, share, settled in steps:
            before = spending.committed_usd("2026-01-01")
            granted = spending.reserve("2026-01-01", "liveness", usd, 5.0)
            assert granted == (before + usd <= 5.0)
            if granted and settled:  # what a crash leaves unsettled stays committed
                spending.settle("2026-01-01", "liveness", usd, usd * share, 0.1)
                assert spending.committed_usd("2026-01-01") == pytest.approx(before + usd * share)
            assert spending.committed_usd("2026-01-01") <= 5.0 + 1e-9
        assert spending.committed_usd("2026-01-02") == 0


def test_no_campaign_of_a_day_goes_on_into_the_next(db: Path) -> None:
    scheduler = CampaignScheduler(StoreThread(db), _NONE, _CATALOGUE, WatchOptions(1.0), 0.0)
    for at_s, left_s in ((0.0, LONGEST_S), (DAY_S - 600, 600.0), (DAY_S - 1, 1.0)):
        assert scheduler.time_left_s(at_s) == left_s


def test_what_keeps_the_regret_low_comes_between_the_campaigns_that_are_due_by_age(
    db: Path, store: Store
) -> None:
    options = WatchOptions(1.0, regret=0.08)
    scheduler = CampaignScheduler(StoreThread(db), _NONE, _CATALOGUE, options, 0.0)
    began_s = 1_700_000_000.0
    whole = scheduler.due(store, began_s)
    assert whole is not None
    assert (whole.spec.phases, whole.spec.threshold) == (PHASES, 0.08)
    found: list[tuple[float, tuple[Phase, ...]]] = []
    for hour in range(24 * 30):
        now_s = began_s + 3600 * hour
        if due := scheduler.due(store, now_s):
            found.append((now_s, due.spec.phases))
            with store.database.transaction():
                key = LAST if due.spec.phases == PHASES else LAST_BY_REGRET
                store.database.set_metadata(key, now_s)
    whole_s = [at_s for at_s, phases in found if phases == PHASES]
    assert len(whole_s) == 5
    assert {phases for _, phases in found} == {PHASES, ("aggregate",)}
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(found)]
    assert max(gaps) <= 1.1 * DAY_S + 3600


def test_a_purse_stops_at_the_budget_also_after_a_crash(db: Path) -> None:
    async def spend(budget_usd: float, *, orderly: bool) -> int:
        async with StoreThread(db) as storage:
            budget = LivenessBudget(storage, budget_usd, block_usd=0.1)
            taken = 0
            while await budget.spend(0.01, 0.001):
                taken += 1
                if not orderly and taken == 15:
                    return taken  # as if killed: nothing is settled
            await budget.settle()
            assert budget.empty
            return taken

    async def story() -> tuple[int, int]:
        return await spend(1.0, orderly=False), await spend(1.0, orderly=True)

    first, second = asyncio.run(story())
    assert first == 15
    # The first block was settled; what is left of the second is given up.
    assert second == 80
    with open_store(db, mode="read") as store:
        (reserved, spent) = store.database.row(
            "SELECT sum(reserved_usd), sum(spent_usd) FROM watch_spending"
        )
    assert (reserved, spent) == (pytest.approx(0.1), pytest.approx(0.9))


def test_no_clock_and_no_kill_lets_two_watchers_send_more_than_a_day_allows(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over midnight, with the clock set back and forth, and killed by turns."""
    chance, now_s, budget_usd, usd = Random(4), [1.7e9], 0.5, 0.01
    monkeypatch.setattr("relayd.watch.liveness.time.time", lambda: now_s[0])
    sent: Counter[str] = Counter()

    async def story() -> None:
        async with StoreThread(db) as first, StoreThread(db) as second:
            budgets = [LivenessBudget(one, budget_usd, block_usd=0.05) for one in (first, second)]
            owed: list[tuple[int, str]] = []
            for _ in range(3000):
                now_s[0] += chance.choice([1.0, 60.0, 900.0, 900.0, -3600.0, 43_200.0, -43_200.0])
                turn = chance.randrange(2)
                if day := await budgets[turn].spend(usd, 0.001):
                    sent[day] += 1
                    owed.append((turn, day))
                if owed and chance.random() < 0.3:  # that one could not be sent
                    turn, day = owed.pop(chance.randrange(len(owed)))
                    await budgets[turn].give_back(day, usd, 0.001)
                    sent[day] -= 1
                if chance.random() < 0.02:  # killed: nothing is settled, nothing given back
                    storage = (first, second)[turn]
                    budgets[turn] = LivenessBudget(storage, budget_usd, block_usd=0.05)
                    owed = [one for one in owed if one[0] != turn]

    asyncio.run(story())
    assert len(sent) > 3
    assert max(sent.values()) * usd <= budget_usd + 1e-9
    with open_store(db, mode="read") as store:
        for day, count in sent.items():
            assert Spending(store.database).committed_usd(day) >= count * usd - 1e-9


def test_the_next_watcher_settles_the_campaign_of_a_killed_one(db: Path) -> None:
    """Else a kill in a campaign would keep the day's budget, and the campaign, until midnight."""
    task = ProbeTask("rtt", (_PAIR,), 0, 1.0)
    scheduler = CampaignScheduler(StoreThread(db), _NONE, _CATALOGUE, WatchOptions(5.0), 0.0)
    now_s = time.time()
    day = utc_date(now_s)
    with open_store(db, mode="create") as store:
        spending = Spending(store.database)

        def run(started_by: str, *usd: float) -> None:
            """Measure, and be killed while the last probe is running."""
            campaign = Campaigns(store).begin({"started_by": started_by})
            *done, running = zip(campaign.plan("rtt", [task] * len(usd)), usd, strict=True)
            campaign.record(
                [ProbeOutcome(probe, sent_gb=10 * cost, usd=cost) for probe, cost in done]
            )
            campaign.reserve([(running[0], 10 * running[1], running[1])])

        run("watch", 0.5, 0.25)  # of the day before
        assert scheduler.reserve(store, day, now_s) == 5.0
        assert scheduler.reserve(store, day, now_s) == 0.0
        run("cli", 2.0, 2.0)
        run("watch", 0.75, 0.5)
        settle_killed(store, day)
        assert (spending.committed_usd(day), spending.sent_gb(day)) == (1.25, 12.5)
        settle_killed(store, day)
        assert spending.committed_usd(day) == 1.25
        assert scheduler.reserve(store, day, now_s) == 3.75


def test_a_watcher_stops_while_it_writes_down_what_a_campaign_spent(db: Path) -> None:
    async def story() -> None:
        async with StoreThread(db) as storage:
            assert await storage.acquire_lease()
            scheduler = CampaignScheduler(storage, _NONE, _CATALOGUE, WatchOptions(1.0), 0.0)
            due = await storage.do(lambda store: scheduler.due(store, time.time()))
            assert due is not None
            free = threading.Event()
            busy = asyncio.create_task(storage.do(lambda _: free.wait()))
            running = asyncio.create_task(scheduler.run(due, "2026-01-01", 1.0))
            await soon(lambda: scheduler.last)
            running.cancel()
            await asyncio.sleep(0)
            free.set()
            await busy
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(story())


@given(st.integers(0, 1439), st.integers(0, 1439), st.floats(0, 2e9))
def test_quiet_hours(begin_min: int, end_min: int, at_s: float) -> None:
    text = f"{begin_min // 60:02}:{begin_min % 60:02}-{end_min // 60:02}:{end_min % 60:02}"
    if begin_min == end_min:
        with pytest.raises(InputError, match="same time"):
            QuietHours.parse(text)
        return
    quiet = QuietHours.parse(text)
    left_s, minute = quiet.left_s(at_s), at_s % DAY_S / 60
    inside = (minute >= begin_min) + (minute < end_min) + (begin_min > end_min) == 2
    assert inside == (left_s > 0) == (quiet.begins_in_s(at_s) == 0)
    assert 0 < day_left_s(at_s) <= DAY_S


# ---- links ---------------------------------------------------------------------------------------


def test_silence_of_a_link_that_never_answered_may_be_a_filter() -> None:
    links = WatchedLinks([("a", "b"), ("b", "a")], HealthPolicy())
    for at_s in range(10):
        links.observed(("a", "b"), LivenessProbe(at_s, 3, 0))
        links.observed(
            ("b", "a"), LivenessProbe(at_s, 3, 3 if at_s < 5 else 0, 10.0 if at_s < 5 else None)
        )
    assert links.counts() == {"watched": 2, "up": 0, "degraded": 0, "down": 1, "unanswered": 1}
    news, changed = links.take_changes()
    assert [(item.src, item.dst, item.before, item.health.condition) for item in news] == [
        ("b", "a", "up", "down")
    ]
    assert changed == {("b", "a")}
    samples = {sample.metric: sample for sample in links.take_samples()}
    assert samples["rtt_ms"].value == 10.0
    assert samples["loss_pct"].value == 50.0


@given(st.floats(10, 3600), st.floats(0, 350), st.integers(2, 5))
def test_an_outage_is_sure_within_an_interval(
    interval_s: float, longest_ms: float, confirmations: int
) -> None:
    parameters = parameters_for(interval_s, longest_ms)
    every_s = period_s(interval_s, parameters, confirmations)
    least_s = LEAST_SHARE * interval_s
    assert every_s >= least_s
    assert parameters.wait_s >= 1.5 * longest_ms / 1e3 - 1e-3
    sure_s = every_s + confirmations * (parameters.probe_s + OVERHEAD_S)
    assert sure_s <= interval_s + 1e-9 or (every_s == least_s and confirmations > 3)


def test_what_is_kept_is_taken_up_again(store: Store) -> None:
    _keep(store, _DOWN, time.time() + 60)
    links = WatchedLinks([_PAIR], HealthPolicy())
    links.resume(LinkStates(store.database).kept(), time.time())
    assert links.healths[_PAIR] == _DOWN
    links.observed(_PAIR, LivenessProbe(time.time(), 3, 0))
    assert links.take_changes() == ([], set())  # known already
    late = WatchedLinks([_PAIR], HealthPolicy())
    late.resume(LinkStates(store.database).kept(), time.time() + 3600)
    assert late.healths[_PAIR].condition == "up"
    assert late.take_changes() == ([], {_PAIR})  # to be forgotten


# ---- changes of level ----------------------------------------------------------------------------


def test_estimates_rest_on_what_was_measured_since_the_change(store: Store) -> None:
    random = Random(1)
    levels_ms = [120.0] * 60 + [180.0] * 15
    append(
        store,
        [
            ping(*_PAIR, level_ms * random.uniform(0.98, 1.02), 1.7e9 + 600 * n)
            for n, level_ms in enumerate(levels_ms)
        ],
    )
    shifts: list[LinkShift] = []
    make_snapshot(store, _CATALOGUE, on_shift=shifts.append)
    (shift,) = shifts
    assert (shift.before, shift.after) == pytest.approx((120, 180), rel=0.02)
    link = StoredWan(_CATALOGUE, store.location).as_read().link(*_PAIR)
    assert link.rtt_ms.expected == pytest.approx(180, rel=0.02)
    assert link.rtt_ms.samples == pytest.approx(15, abs=2)
    # It is told once, however often it is found.
    known = LevelShifts(store.database)
    with store.database.transaction():
        assert [known.add(shift), known.add(shift)] == [True, False]
        assert not known.add(shift._replace(at_s=shift.at_s + 600))
        assert known.add(shift._replace(at_s=shift.found_at_s + 600, found_at_s=2e9))
    assert len(known.open()) == len(known.found_since(0.0)) == 2
    assert [found.found_at_s for found in known.found_since(shift.found_at_s + 1)] == [2e9]
    with store.database.transaction():
        known.close(*_PAIR)
    assert known.open() == []


# ---- roles ---------------------------------------------------------------------------------------


def test_where_the_regret_is_low_enough_nothing_is_measured_until_the_next_day(
    db: Path, tmp_path: Path
) -> None:
    midday_s = (time.time() // DAY_S + 0.5) * DAY_S
    options = WatchOptions(1.0, campaign_every_s=inf, regret=0.9)

    async def story() -> None:
        async with StoreThread(db) as storage:
            assert await storage.acquire_lease()
            fleet = unreachable(tmp_path, *_PAIR)
            scheduler = CampaignScheduler(storage, fleet, _CATALOGUE, options, 0.0)
            await scheduler.check(midday_s)
            assert "problem" not in scheduler.last
            assert (scheduler.last["usd"], scheduler.last["failed"]) == (0.0, 0)
            for days, due in ((0.8, False), (1.2, True)):
                at_s = time.time() + days * DAY_S
                found = await storage.do(partial(scheduler.due, now_s=at_s))
                assert (found is not None) == due

    asyncio.run(story())


@contextlib.asynccontextmanager
async def _running(watcher: Watcher) -> AsyncIterator[Watcher]:
    """Run a watcher until the end of the block."""
    stop = asyncio.Event()
    running = asyncio.create_task(watcher.run(stop))
    try:
        yield watcher
    finally:
        stop.set()
        await running


@pytest.mark.service
def test_one_watches_and_another_takes_over_when_it_is_killed(db: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    options = WatchOptions(1.0, campaign_every_s=inf)
    watcher = Watcher(db, unreachable(tmp_path, *_PAIR), _CATALOGUE, options, notes.append)

    async def story(other: Program) -> None:
        async with _running(watcher):
            await soon(lambda: watcher.status()["role"] == "standby")
            other.kill()
            await soon(lambda: watcher.status()["role"] == "prober")
        assert watcher.status()["role"] == "stopped"

    with holder_at(db) as other:
        asyncio.run(story(other))
    assert any("standing by" in note for note in notes)


def test_one_process_probes_also_after_another_was_killed_and_the_database_was_away(
    postgresql_spot: PostgresqlSpot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quick_leases: None,
) -> None:
    for name in ("STANDBY_S", "STORE_RETRY_S"):
        monkeypatch.setattr(watching, name, 0.2)
    where, fleet, notes = postgresql_spot.where, unreachable(tmp_path, *_PAIR), list[str]()
    options = WatchOptions(1.0, interval_s=2.0, campaign_every_s=inf)
    watchers = [Watcher(where, fleet, _CATALOGUE, options, notes.append) for _ in range(3)]

    def roles() -> list[str]:
        return sorted(watcher.status()["role"] for watcher in watchers)

    def problems() -> list[bool]:
        return [bool(watcher.status()["problem"]) for watcher in watchers]

    async def story(other: Program) -> None:
        one = ["prober", "standby", "standby"]
        async with contextlib.AsyncExitStack() as stack:
            for watcher in watchers:
                await stack.enter_async_context(_running(watcher))
            await soon(lambda: roles() == ["standby"] * 3)
            other.kill()
            await soon(lambda: roles() == one)
            # No host can be reached: that is told, and is no reason to end.
            prober = next(one for one in watchers if one.status()["role"] == "prober")
            await soon(lambda: len(prober.status().get("unreachable", {})) == 2)
            with postgresql_spot.away():
                await soon(lambda: all(problems()))
            await soon(lambda: roles() == one and not any(problems()))
            # A process that is none of these takes the lease.
            with open_store(where, mode="write") as store, store.new_lease("prober") as rival:
                assert rival.acquire(even_if_held=True)
                await soon(lambda: roles() == ["standby"] * 3)
                rival.check()
            await soon(lambda: roles() == one)
        assert roles() == ["stopped"] * 3

    open_store(where, mode="create").close()
    with holder_at(where) as other:
        asyncio.run(story(other))
    for told in ("Another process probes for this store: standing by", "could not be renewed"):
        assert any(told in note for note in notes)


def test_what_is_imported_becomes_a_snapshot_and_a_collapse_a_state(
    db: Path, store: Store, tmp_path: Path
) -> None:
    now_s = time.time()
    usual = rate(*_PAIR, 4000.0, now_s - 5)
    append(store, [usual._replace(measured_at_s=now_s - 9e4 - n) for n in range(3)])
    make_snapshot(store, _CATALOGUE)
    options = WatchOptions(
        1.0, interval_s=2.0, campaign_every_s=inf, snapshot_every_s=0.0, snapshots_kept=1
    )
    watcher = Watcher(db, unreachable(tmp_path, *_PAIR), _CATALOGUE, options)

    async def story() -> None:
        async with _running(watcher):
            await soon(lambda: watcher.status().get("snapshot"))
            first = watcher.status()["snapshot"]
            append(store, [usual._replace(value=40.0)], "import")
            await soon(lambda: watcher.status()["snapshot"] != first)
            await soon(lambda: watcher.status()["not_up"])
        (state,) = watcher.status()["not_up"]
        assert state["reason"] == "throughput fell to 1% of what was expected"

    asyncio.run(story())
    assert len(store.snapshots.list()) == 1
    kinds = {event.kind for event in Events(store.database).after(0)}
    assert {"leg", "snapshot"} <= kinds
    reason = relayd.open(db).plan(*_PAIR).reason
    assert f"{_PAIR[0]} -> {_PAIR[1]} is degraded since" in reason


def test_others_may_send_samples_while_throughput_is_judged(db: Path) -> None:
    usual = rate(*_PAIR, 4000.0, time.time() - 60)
    ended = threading.Event()

    def send() -> None:
        with open_store(db, mode="write") as store:
            number = 0
            while not ended.is_set():
                number += 1
                sample = usual._replace(measured_at_s=usual.measured_at_s + number / 1e3)
                ingest(store, Batch("sent", "http", reporter="other"), [sample])

    sender = threading.Thread(target=send)
    with open_store(db, mode="read") as store:
        sender.start()
        try:
            counts: list[int] = []
            while len(set(counts)) < 10:
                counts.append(len(new_throughput(store, [_PAIR], usual.measured_at_s)))
        finally:
            ended.set()
            sender.join()
        assert counts == sorted(counts)
        # Once the own prober has measured the link too, what others send does not degrade it.
        with open_store(db, mode="write") as writer:
            append(writer, [usual._replace(value=3900.0)])
        (own,) = new_throughput(store, [_PAIR], usual.measured_at_s)
        assert own.value == 3900.0


def test_without_a_budget_nothing_is_asked(db: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    fleet, options = unreachable(tmp_path, *_PAIR), WatchOptions(0.0, interval_s=2.0)
    watcher = Watcher(db, fleet, _CATALOGUE, options, notes.append)

    async def story() -> None:
        async with _running(watcher):
            await soon(lambda: watcher.status().get("budget_used_up"))
            await asyncio.sleep(1)
        # The hosts do not exist: asking one would have been noticed.
        assert watcher.status()["unreachable"] == {}

    asyncio.run(story())
    assert notes == ["The budget of today is used up: nothing is sent until midnight UTC."]
    one = unreachable(tmp_path, "aws:us-east-1")
    with pytest.raises(InputError, match="fewer than two regions"):
        Watcher(db, one, _CATALOGUE, WatchOptions(1.0))


# ---- the webhook ---------------------------------------------------------------------------------


_UNSAFE = (
    "http://example.com/x example.com https:// https://u:p@h/x https://h/x#y https://h:99999/ "
    "http://169.254.169.254/latest http://[fe80::1]/ http://0x7f000001/ http://2130706433/ "
    "http://[::ffff:169.254.169.254]/ gopher://127.0.0.1/ "
    "http://[::1 file:///etc/passwd http://127.0.0.1.example.com/"
)


@pytest.mark.parametrize("url", [*_UNSAFE.split(), "https://h/\r\nX: y"])
def test_only_addresses_that_are_safe_to_tell(url: str) -> None:
    with pytest.raises(InputError, match="--webhook") as refused:
        Webhook(url, _SECRET)
    assert "u:p@" not in str(refused.value)


def test_a_secret_is_needed_and_never_shown() -> None:
    with pytest.raises(InputError, match="16 characters"):
        Webhook("https://example.com", "short")
    assert _SECRET not in repr(Webhook("https://example.com/x?key=1", _SECRET))
    assert Webhook("https://example.com/x?key=1", _SECRET).address == "https://example.com/x"


@contextlib.contextmanager
def _server(answers: list[tuple[int, dict[str, str]]]) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn, the last one again and again."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = answers[min(len(asked), len(answers) - 1)]
            asked.append(f"{self.path} {json.loads(body)['id']}")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_redirects_are_not_followed_and_proxies_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Event(7, 1.8e9, "leg", "a>b", {})
    with _server([(200, {})]) as (elsewhere, asked_elsewhere):
        monkeypatch.setenv("http_proxy", elsewhere)
        with _server([(307, {"Location": elsewhere})]) as (url, asked):
            with pytest.raises(DeliveryError, match="answered 307"):
                asyncio.run(Webhook(url, _SECRET).post(event))
            assert asked == ["/hook 7"]
        assert asked_elsewhere == []
    with pytest.raises(DeliveryError, match="can't be reached"):
        asyncio.run(Webhook(url, _SECRET).post(event))


def test_events_are_told_in_order_each_until_it_is_taken(store: Store, db: Path) -> None:
    events = Events(store.database)
    events.add("leg", "old>news", {})  # before there was a webhook

    async def tell(url: str, until: Callable[[Notifier], bool]) -> None:
        async with StoreThread(db) as storage:
            notifier = Notifier(storage, Webhook(url, _SECRET))
            await notifier.begin()
            running = asyncio.create_task(notifier.run())
            if first:
                for subject in ("a>b", "b>c", "c>d"):
                    events.add("leg", subject, {"to": "down"})
                    events.add("snapshot", "s", {})  # not for the webhook
            await soon(lambda: until(notifier))
            running.cancel()

    first = True
    with _server([(500, {}), (500, {}), (204, {}), (503, {})]) as (url, asked):
        asyncio.run(tell(url, lambda notifier: notifier.delivered == 1 and notifier.failures > 0))
        assert asked[:4] == ["/hook 2"] * 3 + ["/hook 4"]
    first = False
    with _server([(200, {})]) as (url, asked):  # after a restart
        asyncio.run(tell(url, lambda notifier: notifier.delivered == 2))
        assert asked == ["/hook 4", "/hook 6"]
    assert retry_s(1) < retry_s(3) < retry_s(99) == 300.0


# ---- commands ------------------------------------------------------------------------------------


def test_the_example_unit_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = (_ROOT / "configs" / "relayd-watch.service").read_text()
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    program, name, *words = shlex.split(line.partition("=")[2])
    assert (program, name) == ("/usr/bin/env", "relayd")
    options = parse(words)
    with pytest.raises(InputError, match="RELAYD_WEBHOOK_SECRET"):
        watch_options(options, unreachable(tmp_path, *_PAIR))
    monkeypatch.setenv("RELAYD_WEBHOOK_SECRET", _SECRET)
    found = watch_options(options, unreachable(tmp_path, *_PAIR))
    assert (found.daily_budget_usd, found.interval_s, found.policy.hold_s) == (2.0, 30.0, 150.0)
    assert found.quiet == QuietHours(22 * 3600.0, 6 * 3600.0)
    assert found.webhook
    assert found.webhook.address == "https://ops.example.com/relayd"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("--daily-budget", "much -1usd nanusd"),
        ("--interval", "1s never 1000000000s"),
        ("--hold", "some 0s"),
        ("--campaign-every", "1s"),
        ("--retain", "1h"),
        ("--pairs", "a>b"),
        ("--regret", "low 0 1 nan"),
        ("--quiet-hours", "night 22-06 25:00-06:00 22:60-06:00 22:00 06:00-06:00"),
    ],
)
def test_wrong_words_name_the_option(tmp_path: Path, field: str, words: str) -> None:
    for word in words.split():
        usual = ["--daily-budget=1usd"] * (field != "--daily-budget")
        options = parse(["measure", "watch", *usual, f"{field}={word}"])
        with pytest.raises(InputError) as refused:
            watch_options(options, unreachable(tmp_path, *_PAIR))
        assert str(refused.value).startswith(field), word


def test_compact_from_a_shell(store: Store, db: Path, relayd: Relayd) -> None:
    append(store, [ping(*_PAIR, 120.0, 1.6e9 + 60 * number) for number in range(1000)])
    done = relayd("data", "store", "compact", "--older-than", "90d", "--db", db, "--json")
    told = {"samples": 744, "summaries": 13, "kept": 256, "transfer_reports": 0}
    assert (done.code, json.loads(done.out)) == (0, told)
    again = relayd("data", "store", "compact", "--older-than", "90d", "--period", "day", "--db", db)
    assert again.out.splitlines() == [
        "Summarised 0 samples: 0 summaries, one per day",
        "Kept 256 as old: estimates use them, or they are from imported files",
    ]
    refused = relayd("data", "store", "compact", "--older-than", "3h", "--db", db)
    assert (refused.code, "--older-than" in refused.err) == (2, True)
    assert relayd("data", "store", "compact", "--older-than", "9d", "--db", "/nowhere").code == 2
