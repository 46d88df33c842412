"""Campaigns in the store: a :class:`~probes.campaign.state.CampaignLog` on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import TypeAdapter

from planner.model.errors import InputError, StoreError
from probes.campaign.specification import CampaignSpec, Method
from probes.campaign.tasks import Probe, ProbeOutcome, ProbeTask
from relayd.store.opening import Store
from relayd.store.samples.ingest import write_live

_TO_STOP = "campaign_to_stop"
_RUN_BY_WATCHER = "campaign_run_by_watcher"
STARTED_BY_WATCHER = "watch"
"""Value of the option `started_by` of a campaign that the watcher began."""
TASK = TypeAdapter(ProbeTask)


class StoredCampaign:
    """The log of one campaign.

    Parameters
    ----------
    store : Store
        Open for writing.
    id : int
    options : dict
        What it was begun with, as JSON types.
    """

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
        now_s = time.time()
        try:
            with self._database.transaction():
                self._record([one for one in outcomes if not self._is_stored(one.probe)], now_s)
        except StoreError:
            for outcome in outcomes:
                self._in_doubt.setdefault(outcome.probe.id, set()).add(now_s)
            raise
        for outcome in outcomes:
            self._in_doubt.pop(outcome.probe.id, None)

    def _is_stored(self, probe: Probe) -> bool:
        if probe.id not in self._in_doubt:
            return False
        row = self._database.row("SELECT ended_at_s FROM probes WHERE id = ?", (probe.id,))
        return row[0] in self._in_doubt[probe.id]

    def _record(self, outcomes: Sequence[ProbeOutcome], now_s: float) -> None:
        database = self._database
        samples = [sample for outcome in outcomes for sample in outcome.samples]
        batch_id, _ = write_live(database, f"campaign {self.id}", samples)
        for outcome in outcomes:
            database.change(
                "UPDATE probes SET status = ?, attempts = attempts + ?, sent_gb = sent_gb + ?, "
                "usd = usd + ?, reserved_gb = 0, reserved_usd = 0, ended_at_s = ?, problem = ?, "
                "batch_id = ? WHERE id = ?",
                (
                    "failed" if outcome.problem else "done",
                    outcome.attempts,
                    outcome.sent_gb,
                    outcome.usd,
                    now_s,
                    outcome.problem,
                    batch_id if outcome.samples else None,
                    outcome.probe.id,
                ),
            )

    def spent(self) -> tuple[float, float]:
        """Return GB and USD so far, with what is reserved."""
        row = self._database.row(
            "SELECT coalesce(sum(sent_gb + reserved_gb), 0), coalesce(sum(usd + reserved_usd), 0) "
            "FROM probes WHERE campaign_id = ?",
            (self.id,),
        )
        return float(row[0]), float(row[1])

    def finish(self) -> None:
        """Mark the campaign as finished."""
        self._database.change(
            "UPDATE campaigns SET finished_at_s = ? WHERE id = ?", (time.time(), self.id)
        )


class Campaigns:
    """The campaigns of a store.

    Parameters
    ----------
    store : Store
        Open for writing.
    """

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
            "SELECT options, coalesce(sum(sent_gb + reserved_gb), 0), "
            "coalesce(sum(usd + reserved_usd), 0) FROM campaigns "
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
        """Be the only campaign on this store.

        Raises
        ------
        InputError
            If another process is running one; its probes and ours would disturb each other.
        """
        with self._store.new_lease("prober") as lease:
            if not lease.acquire_unless_renewed():
                raise InputError(
                    "--db",
                    "is in use by another campaign or a watcher",
                    value=str(self._store.location),
                    remedy="Wait until it has finished, or name another database.",
                )
            self._store.lease = lease
            try:
                # Of an earlier run that ended before it took it: it is not meant for this one.
                self._database.set_metadata(_TO_STOP, 0)
                yield
            finally:
                self._store.lease = None
