"""Campaigns with how far they are, a page at a time."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from relayd.store.campaigns.log import Campaigns
from relayd.store.database import Database
from relayd.store.leases import is_held
from relayd.store.opening import Store

_PAGE = (
    "SELECT campaigns.id, campaigns.options, campaigns.started_at_s, campaigns.finished_at_s, "
    "count(CASE WHEN probes.status = 'planned' THEN 1 END), "
    "count(CASE WHEN probes.status = 'done' THEN 1 END), "
    "count(CASE WHEN probes.status = 'failed' THEN 1 END), "
    "coalesce(sum(probes.sent_gb), 0.0), coalesce(sum(probes.usd), 0.0) "
    "FROM campaigns LEFT JOIN probes ON probes.campaign_id = campaigns.id "
    "WHERE campaigns.id >= ? AND campaigns.id < ? "
    "GROUP BY campaigns.id, campaigns.options, campaigns.started_at_s, campaigns.finished_at_s "
    "ORDER BY campaigns.id DESC LIMIT ?"
)
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


class Running(NamedTuple):
    """The campaign that some process is running now, and whether that is the watcher."""

    id: int
    by_watcher: bool


def running(store: Store) -> Running | None:
    """Return the campaign that some process is running now."""
    if not is_held(store.database, "campaign"):
        return None
    row = store.database.row("SELECT id FROM campaigns ORDER BY id DESC LIMIT 1")
    return None if row is None else Running(int(row[0]), Campaigns(store).is_run_by_watcher())


def campaign(database: Database, number: int) -> CampaignState | None:
    """Return one campaign; None if there is none of this number."""
    found = _read(database, number, number + 1, 1)
    return found[0] if found else None


def _read(database: Database, least: int, below: int, limit: int) -> list[CampaignState]:
    return [
        CampaignState(row[0], json.loads(row[1]), *row[2:])
        for row in database.rows(_PAGE, (least, below, limit))
    ]
