"""``/v1/changes``: estimates that left their bounds, regions that came or went."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import Any

from aiohttp import web

from planner.model.document import estimate_as_json
from planner.model.errors import InputError
from planner.model.network import Network
from relayd.http.models.common import attributes_as
from relayd.http.models.network import CHANGE, CHANGES, ChangesQuery
from relayd.http.responses import cursor, document_response, whole_position
from relayd.http.route import RequestContext, route
from relayd.http.routes.snapshots import snapshot_seen
from relayd.snapshots.changes import EstimateChange, changes, regions_between
from relayd.store import SnapshotRow, Store
from relayd.store.links.level_shifts import LevelShifts


@route("GET", "/v1/changes", "read", query=ChangesQuery, answer=CHANGES)
async def get_changes(context: RequestContext) -> web.Response:
    """List what has changed.

    Links and caps whose estimate is now outside of the bounds that it had in the snapshot that
    was the newest then, the largest ratio first; regions that have come or gone; lasting
    changes of level that were found since.
    """
    service, query = context.service, context.query
    current = service.current
    now_s = time.time()
    since_s = now_s - query.since_s if query.since is None else _time_of(query.since)
    start = whole_position(query.cursor)
    found = await service.store.read(lambda store: _read(store, current.network, since_s, now_s))
    every = found.pop("all")
    wanted = [each for each in every if query.source in (None, each.after.source)]
    page = wanted[start : start + query.limit]
    more = start + len(page) < len(wanted)
    content = {
        "since_s": since_s,
        **found,
        "changes": [_change(each) for each in page],
        "total": len(wanted),
        "total_by_source": Counter(each.after.source for each in every),
        "next_cursor": cursor(start + len(page)) if more else None,
    }
    return document_response(current.snapshot, content)


def _read(store: Store, now: Network, since_s: float, now_s: float) -> dict[str, Any]:
    old = store.snapshots.current_at(since_s)
    oldest = store.snapshots.oldest()
    found: list[EstimateChange] = []
    new: list[str] = []
    lost: list[str] = []
    if old is not None and old.id != now.snapshot.id:
        sites = store.snapshots.sites(old.id)
        found = changes(store.snapshots.links(old.id).all_links(), sites, now, now_s)
        new, lost = regions_between(sites, now.sites)
    shifts = LevelShifts(store.database).found_since(since_s)
    return {
        "before": _seen(old),
        "oldest": _seen(oldest),
        "all": found,
        "new_regions": new,
        "lost_regions": lost,
        "shifts": [shift._asdict() for shift in shifts],
    }


def _change(found: EstimateChange) -> dict[str, object]:
    before, after = estimate_as_json(found.before), estimate_as_json(found.after)
    return attributes_as(CHANGE, found, before=before, after=after)


def _seen(row: SnapshotRow | None) -> dict[str, object] | None:
    return None if row is None else snapshot_seen(row)


def _time_of(text: str) -> float:
    """Return an RFC 3339 time in seconds since 1970."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.timestamp()
    except (ValueError, OverflowError):
        pass
    raise InputError(
        "since",
        "is not a time with its zone",
        value=text,
        remedy="Write RFC 3339, such as 2026-05-01T08:00:00Z.",
    )
