"""Campaigns in the store: their logs, what they have spent, and how they are shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter

from planner.model.errors import InputError, StoreError
from probes.campaign.specification import CampaignSpec, Method
from probes.campaign.tasks import Probe, ProbeOutcome, ProbeTask
from relayd.store.database import Database, Part
from relayd.store.leases import is_held
from relayd.store.opening import Store
from relayd.store.samples.ingest import write_live

_TO_STOP = "campaign_to_stop"
_RUN_BY_WATCHER = "campaign_run_by_watcher"
STARTED_BY_WATCHER = "watch"
"""Value of the option `started_by` of a campaign that the watcher began."""
TASK = TypeAdapter(ProbeTask)
_RECORD = (
    "UPDATE probes SET status = ?, attempts = attempts + ?, sent_gb = sent_gb + ?, usd = usd + ?, "
    "reserved_gb = 0, reserved_usd = 0, ended_at_s = ?, problem = ?, batch_id = ? WHERE id = ?"
)
_SPENT = "coalesce(sum(sent_gb + reserved_gb), 0), coalesce(sum(usd + reserved_usd), 0)"


class StoredCampaign:
    """The log of one campaign, with the options it was begun with, as JSON types."""

    def __init__(self, store: Store, id: int, options: dict[str, Any]) -> None:  # noqa: A002
        self._database = store.database
        self.id = id
        self.options = options
        # Probe to when it was recorded by a change that may or may not have been stored.
        self._in_doubt: dict[int, set[float]] = {}

    @property
    def spec(self) -> CampaignSpec:
        """The links to measure."""
        return TypeAdapter(CampaignSpec).validate_python(self.options["wish"])

    @property
    def method(self) -> Method:
        """The method of measuring."""
        return TypeAdapter(Method).validate_python(self.options.get("method", {"ramp": "never"}))

    def probes(self) -> list[Probe]:
        """Return all probes so far, in the order in which they were planned."""
        rows = self._database.rows(
            "SELECT id, stage, task, status, problem FROM probes WHERE campaign_id = ? ORDER BY id",
            (self.id,),
        )
        return [
            Probe(number, stage, TASK.validate_json(task), *how)
            for number, stage, task, *how in rows
        ]

    def plan(self, stage: str, tasks: Sequence[ProbeTask]) -> list[Probe]:
        """Store the tasks of a stage."""
        row = {"campaign_id": self.id, "stage": stage}
        with self._database.transaction():
            numbers = [
                self._database.add("probes", {**row, "task": TASK.dump_json(task).decode()}, "id")
                for task in tasks
            ]
        return [Probe(id, stage, task) for id, task in zip(numbers, tasks, strict=True)]  # noqa: A001

    def reserve(self, starting: Sequence[tuple[Probe, float, float]]) -> None:
        """Store the most GB and USD of each probe until it is recorded, before it starts.

        Of a probe that is started again, with what its earlier attempts have sent.
        """
        self._database.change_many(
            "UPDATE probes SET reserved_gb = ?, reserved_usd = ? WHERE id = ?",
            [(gb, usd, probe.id) for probe, gb, usd in starting],
        )

    def charge_lost(self) -> None:
        """Count what is reserved as spent: by probes that an earlier run started and lost."""
        self._database.change(
            "UPDATE probes SET sent_gb = sent_gb + reserved_gb, usd = usd + reserved_usd, "
            "reserved_gb = 0, reserved_usd = 0 WHERE campaign_id = ? AND reserved_gb > 0",
            (self.id,),
        )

    def record(self, outcomes: Sequence[ProbeOutcome]) -> None:
        """Store samples and mark their probes as done: all or nothing.

        After an error it may be called again with the same and more: what turns out to be stored
        already is not stored, or paid for, twice.
        """
        database, now_s = self._database, time.time()
        ended = "SELECT ended_at_s FROM probes WHERE id = ?"
        try:
            with database.transaction():
                new = [
                    one
                    for one in outcomes
                    if not (doubts := self._in_doubt.get(one.probe.id))
                    or database.row(ended, (one.probe.id,))[0] not in doubts
                ]
                samples = [sample for outcome in new for sample in outcome.samples]
                batch_id, _ = write_live(database, f"campaign {self.id}", samples)
                for one in new:
                    status = "failed" if one.problem else "done"
                    spent = (one.attempts, one.sent_gb, one.usd)
                    batch = batch_id if one.samples else None
                    database.change(
                        _RECORD, (status, *spent, now_s, one.problem, batch, one.probe.id)
                    )
        except StoreError:
            for outcome in outcomes:
                self._in_doubt.setdefault(outcome.probe.id, set()).add(now_s)
            raise
        for outcome in outcomes:
            self._in_doubt.pop(outcome.probe.id, None)

    def spent(self) -> tuple[float, float]:
        """Return GB and USD so far, with what is reserved."""
        row = self._database.row(f"SELECT {_SPENT} FROM probes WHERE campaign_id = ?", (self.id,))  # noqa: S608
        return float(row[0]), float(row[1])

    def finish(self) -> None:
        """Mark the campaign as finished."""
        self._database.change(
            "UPDATE campaigns SET finished_at_s = ? WHERE id = ?", (time.time(), self.id)
        )


class Campaigns:
    """The campaigns of a store that is open for writing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store.database

    @property
    def controller(self) -> str:
        """The name that marks what this store has started on hosts."""
        return str(self._database.row("SELECT name FROM controller")[0])

    def begin(self, options: Mapping[str, Any]) -> StoredCampaign:
        """Store a new campaign."""
        row = {"options": json.dumps(dict(options), sort_keys=True), "started_at_s": time.time()}
        number = self._database.add("campaigns", row, "id")
        return StoredCampaign(self._store, number, dict(options))

    def unfinished(self) -> StoredCampaign | None:
        """Return the newest campaign if it is unfinished."""
        row = self._database.row(
            "SELECT id, options, finished_at_s FROM campaigns ORDER BY id DESC LIMIT 1"
        )
        if row is None or row[2] is not None:
            return None
        return StoredCampaign(self._store, row[0], json.loads(row[1]))

    def spent(self, started_by: str) -> tuple[float, float]:
        """Return GB and USD so far, with what is reserved, of all campaigns of one starter."""
        rows = self._database.rows(
            f"SELECT options, {_SPENT} FROM campaigns "  # noqa: S608
            "JOIN probes ON campaign_id = campaigns.id GROUP BY campaigns.id, options"
        )
        found = [row for row in rows if json.loads(row[0]).get("started_by") == started_by]
        return sum(float(row[1]) for row in found), sum(float(row[2]) for row in found)

    def ask_to_stop(self, number: int) -> None:
        """Ask the process that runs a campaign to interrupt it."""
        self._database.set_metadata(_TO_STOP, number)

    def take_stop(self, number: int) -> bool:
        """Return whether a stop of a campaign was requested, and clear the request."""
        if is_asked := self._database.metadata(_TO_STOP) == number:
            self._database.set_metadata(_TO_STOP, 0)
        return is_asked

    def is_run_by_watcher(self) -> bool:
        """Return whether the watcher runs the current campaign, or ran the last one."""
        return bool(self._database.metadata(_RUN_BY_WATCHER))

    @contextmanager
    def under_way(self, *, by_watcher: bool = False) -> Iterator[None]:
        """Hold the lease that shows other processes that a campaign is running, and whose.

        It may be that of a campaign that was killed just now: one at a time is the prober.
        """
        with self._store.new_lease("campaign") as lease:
            with suppress(StoreError):
                self._database.set_metadata(_RUN_BY_WATCHER, float(by_watcher))
                lease.acquire(even_if_held=True)
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only campaign on this store; raises InputError if another process runs one.

        Its probes and ours would disturb each other.
        """
        with self._store.new_lease("prober") as lease:
            if not lease.acquire_unless_renewed():
                problem = "is in use by another campaign or a watcher"
                remedy = "Wait until it has finished, or name another database."
                raise InputError("--db", problem, value=str(self._store.location), remedy=remedy)
            self._store.lease = lease
            try:
                # Of an earlier run that ended before it took it: it is not meant for this one.
                self._database.set_metadata(_TO_STOP, 0)
                yield
            finally:
                self._store.lease = None


# ---- what continuous probing spends in a day ----------------------------------------------------

Kind: TypeAlias = Literal["liveness", "campaign"]


class Spending(Part):
    """The spending of a store, by UTC day.

    Money is reserved before it is spent. A reservation counts as spent until it is settled.
    """

    def committed_usd(self, day: str, kind: Kind | None = None) -> float:
        """Return USD spent or reserved on a day, of one kind or of all."""
        return self._sum("reserved_usd + spent_usd", day, kind)

    def reserved_usd(self, day: str, kind: Kind) -> float:
        """Return USD reserved on a day and not settled."""
        return self._sum("reserved_usd", day, kind)

    def sent_gb(self, day: str) -> float:
        """Return GB sent on a day, without open reservations."""
        return self._sum("sent_gb", day, None)

    def _sum(self, what: str, day: str, kind: Kind | None) -> float:
        row = self._database.row(
            f"SELECT coalesce(sum({what}), 0) FROM watch_spending "  # noqa: S608
            "WHERE day = ? AND (kind = ? OR ? = '')",
            (day, kind or "", kind or ""),
        )
        return float(row[0])

    def reserve(self, day: str, kind: Kind, usd: float, budget_usd: float) -> bool:
        """Reserve an amount if the day's budget allows it."""
        with self._database.transaction():
            if self.committed_usd(day) + usd > budget_usd:
                return False
            self._database.change(
                "INSERT INTO watch_spending (day, kind, reserved_usd) VALUES (?, ?, ?) "
                "ON CONFLICT (day, kind) DO UPDATE SET "
                "reserved_usd = watch_spending.reserved_usd + excluded.reserved_usd",
                (day, kind, usd),
            )
        return True

    def settle(self, day: str, kind: Kind, reserved_usd: float, usd: float, sent_gb: float) -> None:
        """Replace a reservation by what was actually spent."""
        self._database.change(
            "UPDATE watch_spending SET reserved_usd = reserved_usd - ?, "
            "spent_usd = spent_usd + ?, sent_gb = sent_gb + ? WHERE day = ? AND kind = ?",
            (reserved_usd, usd, sent_gb, day, kind),
        )


# ---- campaigns as they are shown: progress, totals, and reasons for failures ---------------------

_COLUMNS = {
    "id": "campaigns.id",
    **{
        status: f"count(CASE WHEN probes.status = '{status}' THEN 1 END)"
        for status in ("planned", "done", "failed")
    },
    **{sent: f"coalesce(sum(probes.{sent}), 0.0)" for sent in ("sent_gb", "usd")},
}
_OF_CAMPAIGNS = (
    "campaigns LEFT JOIN probes ON probes.campaign_id = campaigns.id "
    "WHERE campaigns.id >= ? AND campaigns.id < ? "
    "GROUP BY campaigns.id, options, started_at_s, finished_at_s ORDER BY campaigns.id DESC LIMIT ?"
)
MOST_PAIRS = 20
"""Pairs that are named of each kind of failure; how many there are is counted."""
EVENTS_BACK = 20_000  # in how many of the newest events a campaign's last one is looked for
_BEYOND = 2**62


class CampaignState(NamedTuple):
    """A campaign, what was asked of it, and how far it is."""

    id: int
    options: dict[str, Any]
    started_at_s: float
    finished_at_s: float | None
    planned: int  # this and the next two are numbers of probes
    done: int
    failed: int
    sent_gb: float  # what they moved, and what that costs
    usd: float


def campaign_page(database: Database, *, before_id: int = 0, limit: int) -> list[CampaignState]:
    """Return campaigns that began before one of them, the newest first; 0 for the first page."""
    values = (0, before_id or _BEYOND, limit)
    return database.records(CampaignState, _OF_CAMPAIGNS, values, _COLUMNS)


class RunningCampaign(NamedTuple):
    """The campaign that some process is running now, and whether that is the watcher."""

    id: int
    by_watcher: bool


def running(store: Store) -> RunningCampaign | None:
    """Return the campaign that some process is running now."""
    if not is_held(store.database, "campaign"):
        return None
    number = store.database.last_id("campaigns")
    return RunningCampaign(number, Campaigns(store).is_run_by_watcher()) if number else None


def campaign(database: Database, number: int) -> CampaignState | None:
    """Return one campaign; None if there is none of this number."""
    values = (number, number + 1, 1)
    return next(iter(database.records(CampaignState, _OF_CAMPAIGNS, values, _COLUMNS)), None)


class CampaignTotals(NamedTuple):
    """Egress in USD and GB, and the numbers of probes that ended."""

    usd: float
    sent_gb: float
    done: int
    failed: int


def campaign_totals(database: Database, since_s: float = 0.0) -> CampaignTotals:
    """Add up all campaigns so far, or their probes that ended since a time."""
    ended = "probes WHERE coalesce(ended_at_s, 0) >= ?"
    return database.records(CampaignTotals, ended, (since_s,), _COLUMNS)[0]


class StageState(NamedTuple):
    """A stage: tasks that were chosen together."""

    stage: str
    planned: int  # this and the next two are numbers of probes
    done: int
    failed: int
    sent_gb: float
    usd: float


class Failures(NamedTuple):
    """Probes that failed for the same reason."""

    problem: str  # what happened, and what to do about it
    remedy: str  # ``""`` where none is known
    stages: list[str]
    probes: int  # how many
    pairs: list[list[str]]  # source and destination host of the first of them
    hosts: list[str]  # those that take part in all of these probes: where to look first
    attempts: int  # in all
    last_at_s: float | None  # when one of them failed last


def stages(database: Database, number: int) -> list[StageState]:
    """Return the stages of a campaign so far, in the order in which they were planned."""
    of_stages = "probes WHERE campaign_id = ? GROUP BY stage ORDER BY min(id)"
    return database.records(StageState, of_stages, (number,), _COLUMNS)


def failures(database: Database, number: int) -> list[Failures]:
    """Return the reasons for failed probes of a campaign, the most frequent first."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for text, *row in database.rows(
        "SELECT problem, stage, task, attempts, ended_at_s FROM probes "
        "WHERE campaign_id = ? AND status = 'failed' ORDER BY id",
        (number,),
    ):
        groups.setdefault(text, []).append(tuple(row))
    found = []
    for text, rows in groups.items():
        stages_of, tasks, attempts, ended_at_s = zip(*rows, strict=True)
        of_tasks = [json.loads(task)["pairs"] for task in tasks]
        pairs = dict.fromkeys((src, dst) for task in of_tasks for src, dst in task)
        hosts = [{host for pair in task for host in pair} for task in of_tasks]
        found.append(
            Failures(
                *in_two(text),
                list(dict.fromkeys(stages_of)),
                len(rows),
                [list(pair) for pair in pairs][:MOST_PAIRS],
                sorted(set.intersection(*hosts)),
                sum(attempts),
                max((at_s for at_s in ended_at_s if at_s is not None), default=None),
            )
        )
    return sorted(found, key=lambda one: -one.probes)


def last_event(database: Database, number: int) -> dict[str, Any] | None:
    """Return the last progress event of a campaign, with its time as ``at_s``."""
    row = database.row(
        "SELECT at_s, detail FROM events WHERE kind = 'campaign' AND subject = ? "
        "AND id > (SELECT coalesce(max(id), 0) FROM events) - ? ORDER BY id DESC LIMIT 1",
        (str(number), EVENTS_BACK),
    )
    return None if row is None else {"at_s": row[0], **json.loads(row[1])}


def in_two(text: str) -> tuple[str, str]:
    """Return a stored problem as what happened and what to do about it.

    Both are kept as one text: a clause, a full stop, and sentences. What a tool or a host said
    stands in parentheses and may hold full stops of its own.
    """
    depth = 0
    for position, character in enumerate(text):
        if character in "()":
            depth += 1 if character == "(" else -1
        elif character == "." and depth == 0 and text[position + 1 : position + 2] == " ":
            return text[:position], text[position + 2 :]
    return text.removesuffix("."), ""
