"""What an operator decides about samples that are there: to retract, restore or confirm them.

Nothing is removed or changed: a decision is a row that says who made it, when, why, and of which
samples. Retracted samples are left out wherever samples are read until a later decision restores
them; confirmed ones count as the own prober's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from planner.model.errors import InputError
from probes.samples import Metric
from relayd.store.changes import record_change
from relayd.store.database import Database
from relayd.store.metadata import Metadata

Decision: TypeAlias = Literal["retract", "restore", "confirm"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
HEEDED = "decisions_heeded"
"""Name of the last decision about samples that the newest snapshot heeds."""

_IDS = (
    "SELECT samples.id FROM samples JOIN batches ON batches.id = samples.batch_id "
    "JOIN setups ON setups.id = samples.setup_id "
    "LEFT JOIN retracted_samples ON sample_id = samples.id AND restored_by IS NULL WHERE {} "
    "ORDER BY samples.id"
)
_STATES: dict[Decision, str] = {
    "retract": "sample_id IS NULL",
    "restore": "sample_id IS NOT NULL",
    "confirm": "sample_id IS NULL AND samples.id NOT IN (SELECT sample_id FROM confirmed_samples)",
}
_CONDITIONS = {
    "source": "batches.source = ?",
    "token": "batches.reporter = ?",
    "address": "batches.address = ?",
    # A version follows after a space.
    "tool": "substr(setups.tool || ' ', 1, CAST(? AS INTEGER)) = ?",
    "src": "samples.src_id = (SELECT id FROM regions WHERE name = ?)",
    "dst": "samples.dst_id = (SELECT id FROM regions WHERE name = ?)",
    "metric": "samples.metric_id = (SELECT id FROM metrics WHERE name = ?)",
    "batch": "samples.batch_id = ?",
    "since_s": "samples.measured_at_s >= ?",
    "until_s": "samples.measured_at_s <= ?",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples are meant: those to which all that is stated applies.

    Attributes
    ----------
    source : str | None
        Who reported them, as of batches: ``files``, ``token NAME``, ``address IP``.
    token : str | None
        Name of the token that sent them.
    address : str | None
        From where.
    tool : str | None
        With or without its version.
    src, dst : str | None
        Region ids.
    metric : Metric | None
    batch : int | None
    since_s, until_s : float | None
        When they were measured, both ends included; seconds since 1970 (UTC).
    """

    source: str | None = None
    token: str | None = None
    address: str | None = None
    tool: str | None = None
    src: str | None = None
    dst: str | None = None
    metric: Metric | None = None
    batch: int | None = None
    since_s: float | None = None
    until_s: float | None = None

    def stated(self) -> dict[str, object]:
        """Return the conditions that are stated, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class DecisionRow(NamedTuple):
    """A decision as it is kept."""

    id: int
    decision: Decision
    at_s: float
    who: str
    reason: str
    selection: dict[str, object]
    samples: int


def selected(
    database: Database, decision: Decision, selection: Selection, *, through: int | None = None
) -> list[int]:
    """Return the ids of the samples that a decision would change; none above ``through``.

    Raises
    ------
    InputError
        If nothing is stated: all samples of a store are never meant.
    """
    stated = selection.stated()
    if not stated:
        raise InputError(
            "selection",
            "names no samples",
            remedy="State a token, an address, a tool, an end of a link, a metric, a batch or a "
            "time.",
        )
    values: list[object] = []
    for name, value in stated.items():
        values += [len(f"{value} "), f"{value} "] if name == "tool" else [value]
    conditions = [_STATES[decision], *(_CONDITIONS[name] for name in stated)]
    if through is not None:
        conditions, values = [*conditions, "samples.id <= ?"], [*values, through]
    return [number for (number,) in database.rows(_IDS.format(" AND ".join(conditions)), values)]


def decide(
    database: Database,
    decision: Decision,
    selection: Selection,
    *,
    who: str,
    reason: str,
    address: str = "",
    through: int | None = None,
) -> int:
    """Make a decision about all samples of a selection; return how many it changed.

    It is recorded with the changes, too.

    Parameters
    ----------
    address : str
        From where it was asked for; ``""`` for a command.
    through : int, optional
        The last sample that is meant: not those that came after a look at them.

    Raises
    ------
    InputError
        See :func:`selected`.
    StoreError
        If the database can't take it; then nothing is decided.
    """
    with database.transaction():
        ids = selected(database, decision, selection, through=through)
        if not ids:
            database.roll_back()
            return 0
        stated = json.dumps(selection.stated(), sort_keys=True)
        row = {"decision": decision, "at_s": time.time(), "who": who, "reason": reason}
        row |= {"selection": stated, "samples": len(ids)}
        number = database.add("sample_decisions", row, "id")
        if decision == "restore":
            database.change_many(
                "UPDATE retracted_samples SET restored_by = ? "
                "WHERE sample_id = ? AND restored_by IS NULL",
                [(number, sample_id) for sample_id in ids],
            )
        elif decision == "retract":
            database.insert("retracted_samples", [(sample, number, None) for sample in ids])
        else:
            database.insert("confirmed_samples", [(sample, number) for sample in ids])
        subject = f"{len(ids)} of {in_words(selection.stated())}"
        record_change(database, f"samples {decision}", subject, who=who, address=address)
    return len(ids)


def in_words(stated: Mapping[str, object]) -> str:
    """Return the conditions of a selection as one text."""
    return ", ".join(f"{name} {value}" for name, value in stated.items())


def last_decision(database: Database) -> int:
    """Return the id of the last decision; 0 where there is none."""
    return int(database.row("SELECT coalesce(max(id), 0) FROM sample_decisions")[0])


def all_heeded(database: Database) -> bool:
    """Return whether the newest snapshot heeds all decisions."""
    return (Metadata(database).get(HEEDED) or 0) == last_decision(database)


def retracted_ids(database: Database) -> set[int]:
    """Return the ids of the samples that are retracted."""
    rows = database.rows("SELECT sample_id FROM retracted_samples WHERE restored_by IS NULL")
    return {number for (number,) in rows}


def decisions(database: Database) -> list[DecisionRow]:
    """Return all decisions, the newest first."""
    rows = database.rows(
        "SELECT id, decision, at_s, who, reason, selection, samples FROM sample_decisions "
        "ORDER BY id DESC"
    )
    return [
        DecisionRow(number, decision, at_s, who, reason, json.loads(selection), samples)
        for number, decision, at_s, who, reason, selection, samples in rows
    ]
