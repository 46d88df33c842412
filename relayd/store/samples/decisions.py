"""Decisions of an operator about samples, those in quarantine included.

Nothing is removed or changed: a decision is a row that says who made it, when, why, and of which
samples. Retracted samples are left out wherever samples are read until a later decision restores
them; confirmed ones count as the own prober's. Samples in quarantine are kept with the reason,
apart from what estimates rest on, until they are accepted, and also when they are rejected.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias

from planner.model.errors import InputError
from probes.importers.limits import FAULTS
from probes.samples import QuarantinedSample, Sample
from relayd.store.database import Database, matching
from relayd.store.events import record_change
from relayd.store.samples.ingest import Batch, SampleWriter, detail_digest
from relayd.store.samples.reading import SETUP, Decision

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
Selection: TypeAlias = Mapping[str, object]
"""Which samples are meant: those to which all applies that is not None, by the names below."""
_CONDITIONS = {
    "source": "batches.source = :source",  # as of batches: `files`, `token NAME`, `address IP`
    "token": "batches.reporter = :token",  # the name of the token that sent them
    "address": "batches.address = :address",
    # A version follows after a space.
    "tool": "substr(setups.tool || ' ', 1, length(CAST(:tool AS TEXT)) + 1) = "
    "CAST(:tool AS TEXT) || ' '",
    "src": "samples.src_id = (SELECT id FROM regions WHERE name = :src)",
    "dst": "samples.dst_id = (SELECT id FROM regions WHERE name = :dst)",
    "metric": "samples.metric_id = (SELECT id FROM metrics WHERE name = :metric)",
    "batch": "samples.batch_id = :batch",
    "since_s": "samples.measured_at_s >= :since_s",  # seconds since 1970 (UTC)
    "until_s": "samples.measured_at_s <= :until_s",
    "through": "samples.id <= :through",
}


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

    Raises InputError if nothing is stated: all samples of a store are never meant.
    """
    stated = _stated(selection)
    if not stated:
        remedy = "State a token, an address, a tool, an end of a link, a metric, a batch or a time."
        raise InputError("selection", "names no samples", remedy=remedy)
    if through is not None:
        stated["through"] = through
    conditions = " AND ".join([_STATES[decision], *(_CONDITIONS[name] for name in stated)])
    return [number for (number,) in database.rows(_IDS.format(conditions), stated)]


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

    It is recorded with the changes, too, with the `address` that it was asked for from. Samples
    after `through` came after a look at them and are not meant. Raises as :func:`selected` does.
    """
    with database.transaction():
        ids = selected(database, decision, selection, through=through)
        if not ids:
            database.roll_back()
            return 0
        stated = _stated(selection)
        row = {"decision": decision, "at_s": time.time(), "who": who, "reason": reason}
        row |= {"selection": json.dumps(stated, sort_keys=True), "samples": len(ids)}
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
        subject = f"{len(ids)} of {in_words(stated)}"
        record_change(database, f"samples {decision}", subject, who=who, address=address)
    return len(ids)


def _stated(selection: Selection) -> dict[str, object]:
    return {name: value for name, value in selection.items() if value is not None}


def in_words(stated: Mapping[str, object]) -> str:
    """Return the conditions of a selection as one text."""
    return ", ".join(f"{name} {value}" for name, value in stated.items())


def last_decision(database: Database) -> int:
    """Return the id of the last decision; 0 where there is none."""
    return database.last_id("sample_decisions")


def all_heeded(database: Database) -> bool:
    """Return whether the newest snapshot takes all decisions into account."""
    return (database.metadata(HEEDED) or 0) == last_decision(database)


def decisions(database: Database) -> list[DecisionRow]:
    """Return all decisions, the newest first."""
    return database.records(DecisionRow, "sample_decisions ORDER BY id DESC")


# ---- samples in quarantine -----------------------------------------------------------------------

State: TypeAlias = Literal["open", "accepted", "rejected"]
_DECISIONS: dict[State, str] = {"open": "", "accepted": "accept", "rejected": "reject"}

# Of one that was rejected and accepted later, the acceptance counts.
_DECIDED = (
    "FROM quarantined_samples LEFT JOIN quarantine_decisions AS decided "
    "ON decided.sample_id = quarantined_samples.id AND decided.decision = ("
    "SELECT min(decision) FROM quarantine_decisions WHERE sample_id = quarantined_samples.id) "
)
_SELECT = (
    "SELECT sample, quarantined_samples.reason, quarantined_samples.id, "
    "quarantined_samples.batch_id, batches.name, reporter, address, imported_at_s, decided.who, "
    "decided.at_s, "
    "decided.reason, decided.batch_id "
)
_OF_BATCHES = "JOIN batches ON batches.id = quarantined_samples.batch_id "


class ReasonCount(NamedTuple):
    """The number of samples in quarantine for one kind of reason."""

    reason: str
    samples: int


class QuarantineFilter(NamedTuple):
    """A choice of samples in quarantine."""

    state: State = "open"  # those without a decision, or those that were accepted or rejected
    kind: str = ""  # only those for a kind of fault, of :data:`~probes.importers.limits.FAULTS`
    src: str = ""
    dst: str = ""
    """Only those of links from and to a region."""

    def condition(self) -> tuple[str, list[object]]:
        """Return the condition, and the values in it."""
        return matching(
            {
                "coalesce(decided.decision, '') = ?": _DECISIONS[self.state],
                "quarantined_samples.reason LIKE ?": f"%{self.kind}%" if self.kind else None,
                "src = ?": self.src or None,
                "dst = ?": self.dst or None,
            }
        )


ALL_OPEN = QuarantineFilter()


def quarantined(
    database: Database,
    wanted: QuarantineFilter = ALL_OPEN,
    *,
    limit: int,
    before_id: int | None = None,
) -> list[QuarantinedSample]:
    """Return the samples that came into quarantine last, the newest first.

    `before_id` is the last ``id`` of the page before; without it, this is the first page.
    """
    condition, values = wanted.condition()
    if before_id:
        condition, values = f"{condition} AND quarantined_samples.id < ?", [*values, before_id]
    rows = database.rows(
        f"{_SELECT}{_DECIDED}{_OF_BATCHES}WHERE {condition} "
        "ORDER BY quarantined_samples.id DESC LIMIT ?",
        [*values, limit],
    )
    return [QuarantinedSample(Sample(**json.loads(content)), *rest) for content, *rest in rows]


def to_decide(database: Database, numbers: Collection[int], *, accepting: bool) -> list[Sample]:
    """Return samples in quarantine that are to be accepted or rejected, in the order of numbers.

    Raises InputError if one is not in quarantine, or was accepted or (to be rejected) rejected
    before; or, to be accepted, is still in the future or in the store already.
    """
    wanted = sorted(set(numbers))
    rows = database.rows(
        f"SELECT id, sample, decided.decision {_DECIDED}"
        f"WHERE id IN ({', '.join('?' * len(wanted))})",
        wanted,
    )
    found = {row[0]: (Sample(**json.loads(row[1])), row[2]) for row in rows}
    for number in wanted:
        sample, decision = found.get(number, (None, None))
        problem, remedy = "", ""
        if sample is None:
            problem, remedy = "is not in quarantine", "List them again."
        elif decision == "accept":
            problem = "was accepted before"
            remedy = "`relayd data samples retract` takes samples back."
        elif not accepting:
            problem, remedy = ("was rejected before", "Leave it out.") if decision else ("", "")
        elif sample.measured_at_s > time.time():
            problem = "is still in the future"
            remedy = "Let who sent it set its clock and send its samples again."
        elif (batch := _batch_with(database, sample)) is not None:
            problem = f"is in the store already, in batch {batch}"
            remedy = (
                f"Let that one count: `relayd data samples restore --batch {batch}` if it was "
                f"retracted, else `relayd data samples confirm --batch {batch}`; reject this one."
            )
        if problem:
            raise InputError("quarantined", problem, value=number, remedy=remedy)
    return [found[number][0] for number in wanted]


def _batch_with(database: Database, sample: Sample) -> int | None:
    """Return the batch that has a sample with the same values, retracted or not; None if none."""
    stated = (sample.detail, sample.address, sample.new_level, sample.intervals)
    where = {
        "src_id = (SELECT id FROM regions WHERE name = ?)": sample.src,
        "dst_id = (SELECT id FROM regions WHERE name = ?)": sample.dst,
        "metric_id = (SELECT id FROM metrics WHERE name = ?)": sample.metric,
        "measured_at_s = ?": sample.measured_at_s + 0.0,
        "value = ?": sample.value + 0.0,
        "connections = ?": sample.connections or 0,
        "duration_s = ?": (sample.duration_s or 0) + 0.0,
        "warmed_up = ?": int(sample.warmed_up),
        "detail_digest = ?": detail_digest(*stated),
        **{f"{name} = ?": getattr(sample, name) for name in SETUP},
    }
    row = database.row(
        "SELECT samples.batch_id FROM samples JOIN setups ON setups.id = setup_id "  # noqa: S608
        f"WHERE {' AND '.join(where)}",
        list(where.values()),
    )
    return None if row is None else int(row[0])


def settle(
    database: Database,
    decision: Literal["accept", "reject"],
    numbers: Collection[int],
    *,
    who: str,
    reason: str,
    address: str = "",
) -> int | None:
    """Let samples in quarantine count as the own prober's, or never; return their batch now.

    They stay in quarantine, too, with the decision: nothing is removed. It is recorded with the
    changes; `address` is from where it was asked for. Raises as :func:`to_decide` does.
    """
    decided, batch_id = sorted(set(numbers)), None
    with database.transaction():
        samples = to_decide(database, decided, accepting=decision == "accept")
        if decision == "accept":
            options = {"trust": True, "accepted": decided}
            writer = SampleWriter(database, Batch("quarantine", "accepted", None, options))
            writer.add(samples)
            batch_id = writer.seal()
        by = (time.time(), who, reason, batch_id)
        database.insert("quarantine_decisions", [(number, decision, *by) for number in decided])
        subject = f"{len(decided)} of quarantine: {', '.join(map(str, decided))}"
        record_change(database, f"samples {decision}", subject, who=who, address=address)
    return batch_id


def quarantine_reasons(
    database: Database, wanted: QuarantineFilter = ALL_OPEN
) -> list[ReasonCount]:
    """Count the samples in quarantine by kind of fault."""
    condition, values = wanted.condition()
    count = "coalesce(sum(CASE WHEN quarantined_samples.reason LIKE ? THEN 1 ELSE 0 END), 0)"
    counts = database.row(
        f"SELECT {', '.join([count] * len(FAULTS))} {_DECIDED}WHERE {condition}",
        [*(f"%{kind}%" for kind in FAULTS), *values],
    )
    return [ReasonCount(kind, int(n)) for kind, n in zip(FAULTS, counts, strict=True) if n]
