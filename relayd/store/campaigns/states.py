"""Campaigns as they are shown: progress, totals, and reasons for failures."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from relayd.store.campaigns.log import Campaigns
from relayd.store.database import Database
from relayd.store.leases import is_held
from relayd.store.opening import Store

_COUNTS = ", ".join(
    f"count(CASE WHEN probes.status = '{status}' THEN 1 END)"
    for status in ("planned", "done", "failed")
)
_SUMS = "coalesce(sum(probes.sent_gb), 0.0), coalesce(sum(probes.usd), 0.0)"
_CAMPAIGN = "campaigns.id, campaigns.options, campaigns.started_at_s, campaigns.finished_at_s"
_PAGE = (
    f"SELECT {_CAMPAIGN}, {_COUNTS}, {_SUMS} "  # noqa: S608
    "FROM campaigns LEFT JOIN probes ON probes.campaign_id = campaigns.id "
    "WHERE campaigns.id >= ? AND campaigns.id < ? "
    f"GROUP BY {_CAMPAIGN} ORDER BY campaigns.id DESC LIMIT ?"
)
_STAGES = (
    f"SELECT stage, {_COUNTS}, {_SUMS} "  # noqa: S608
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
_TOTALS = (
    f"SELECT {_COUNTS}, {_SUMS} FROM probes "  # noqa: S608
    "WHERE coalesce(ended_at_s, 0) >= ?"
)
MOST_PAIRS = 20
"""Pairs that are named of each kind of failure; how many there are is counted."""
EVENTS_BACK = 20_000
"""In how many of the newest events a campaign's last one is looked for."""
_BEYOND = 2**62


class CampaignState(NamedTuple):
    """A campaign, what was asked of it, and how far it is.

    Attributes
    ----------
    planned, done, failed : int
        Numbers of probes.
    sent_gb, usd : float
        What they moved, and what that costs.
    """

    id: int
    options: dict[str, Any]
    started_at_s: float
    finished_at_s: float | None
    planned: int
    done: int
    failed: int
    sent_gb: float
    usd: float


def campaign_page(database: Database, *, before_id: int = 0, limit: int) -> list[CampaignState]:
    """Return campaigns that began before one of them, the newest first; 0 for the first page."""
    return _read(database, 0, before_id or _BEYOND, limit)


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
    found = _read(database, number, number + 1, 1)
    return found[0] if found else None


def _read(database: Database, least: int, below: int, limit: int) -> list[CampaignState]:
    return [
        CampaignState(row[0], json.loads(row[1]), *row[2:])
        for row in database.rows(_PAGE, (least, below, limit))
    ]


class CampaignTotals(NamedTuple):
    """Egress in USD and GB, and the numbers of probes that ended."""

    usd: float
    sent_gb: float
    done: int
    failed: int


def campaign_totals(database: Database, since_s: float = 0.0) -> CampaignTotals:
    """Add up all campaigns so far, or their probes that ended since a time."""
    _, done, failed, sent_gb, usd = database.row(_TOTALS, (since_s,))
    return CampaignTotals(usd, sent_gb, done, failed)


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
    """Return the reasons for failed probes of a campaign, the most frequent first."""
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
