"""One campaign in detail: how far each stage is, what failed and what to do about it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from relayd.store.database import Database

MOST_PAIRS = 20
"""Pairs that are named of each kind of failure; how many there are is counted."""
EVENTS_BACK = 20_000
"""In how many of the newest events a campaign's last one is looked for."""

_STAGES = (
    "SELECT stage, count(CASE WHEN status = 'planned' THEN 1 END), "
    "count(CASE WHEN status = 'done' THEN 1 END), "
    "count(CASE WHEN status = 'failed' THEN 1 END), "
    "coalesce(sum(sent_gb), 0.0), coalesce(sum(usd), 0.0) "
    "FROM probes WHERE campaign_id = ? GROUP BY stage ORDER BY min(id)"
)
_FAILED = (
    "SELECT stage, task, attempts, ended_at_s, problem FROM probes "
    "WHERE campaign_id = ? AND status = 'failed' ORDER BY id"
)
_LAST_EVENT = (
    "SELECT at_s, detail FROM events WHERE kind = 'campaign' AND subject = ? "
    "AND id > (SELECT coalesce(max(id), 0) FROM events) - ? ORDER BY id DESC LIMIT 1"
)


class StageState(NamedTuple):
    """A stage: tasks that were chosen together.

    Attributes
    ----------
    planned, done, failed : int
        Numbers of probes.
    """

    stage: str
    planned: int
    done: int
    failed: int
    sent_gb: float
    usd: float


class Failures(NamedTuple):
    """Probes that failed for the same reason.

    Attributes
    ----------
    problem, remedy : str
        What happened, and what to do about it; the remedy is ``""`` where none is known.
    stages : list of str
    probes : int
        How many.
    pairs : list of [source host, destination host]
        The first of them.
    hosts : list of str
        Those that take part in all of these probes: where to look first.
    attempts : int
        In all.
    last_at_s : float | None
        When one of them failed last.
    """

    problem: str
    remedy: str
    stages: list[str]
    probes: int
    pairs: list[list[str]]
    hosts: list[str]
    attempts: int
    last_at_s: float | None


def stages(database: Database, number: int) -> list[StageState]:
    """Return the stages of a campaign so far, in the order in which they were planned."""
    return [StageState(*row) for row in database.rows(_STAGES, (number,))]


def failures(database: Database, number: int) -> list[Failures]:
    """Return why probes of a campaign failed, the most frequent reason first."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for row in database.rows(_FAILED, (number,)):
        groups.setdefault(row[4], []).append(row)
    return sorted(
        (_failures(text, rows) for text, rows in groups.items()), key=lambda found: -found.probes
    )


def last_event(database: Database, number: int) -> dict[str, Any] | None:
    """Return the last progress event of a campaign, with its time as ``at_s``."""
    row = database.row(_LAST_EVENT, (str(number), EVENTS_BACK))
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


def _failures(text: str, rows: list[tuple[Any, ...]]) -> Failures:
    tasks = [json.loads(row[1])["pairs"] for row in rows]
    hosts = [{host for pair in task for host in pair} for task in tasks]
    pairs = dict.fromkeys((src, dst) for task in tasks for src, dst in task)
    problem, remedy = in_two(text)
    return Failures(
        problem,
        remedy,
        list(dict.fromkeys(row[0] for row in rows)),
        len(rows),
        [list(pair) for pair in pairs][:MOST_PAIRS],
        sorted(set.intersection(*hosts)),
        sum(row[2] for row in rows),
        max((row[3] for row in rows if row[3] is not None), default=None),
    )
