"""``/v1/snapshots``: whole networks, for clients that decide by themselves."""

from __future__ import annotations

import asyncio
import time

from aiohttp import web

from planner.model.document import document_of
from planner.model.errors import InputError
from relayd.http.models.common import attributes_as
from relayd.http.models.network import Graph, Snapshots, SnapshotSeen, SnapshotsQuery
from relayd.http.responses.cursors import page_of, position
from relayd.http.responses.json_responses import document_response, encoded, tagged_response
from relayd.http.route import RequestContext, Route
from relayd.http.server.current_state import Current
from relayd.store import SnapshotRow
from relayd.times import utc_text


async def get_current_snapshot(context: RequestContext) -> web.Response:
    """Return the whole graph that answers rest on."""
    current = context.service.current
    # A few megabytes: made in a thread, once.
    body = await asyncio.to_thread(current.page, "graph", lambda: _graph(current))
    return tagged_response(context.request, body, current.snapshot)


async def list_snapshots(context: RequestContext) -> web.Response:
    """List the snapshots that are kept."""
    service, query = context.service, context.query
    most_s = time.time() - query.older_than_s
    rows = await service.store.read(lambda store: list(store.snapshots.list()))
    rows = [row for row in rows if row.created_at_s <= most_s] if query.older_than_s else rows
    if after := position(query.cursor, 1):
        ids = [row.id for row in rows]
        if after[0] not in ids:
            raise InputError("cursor", "is of a snapshot that was pruned", value=query.cursor)
        rows = rows[ids.index(after[0]) + 1 :]
    page, next_cursor = page_of(rows, query.limit, lambda row: (row.id,))
    return document_response(
        service.current.snapshot,
        {"snapshots": [snapshot_seen(row) for row in page], "next_cursor": next_cursor},
    )


def _graph(current: Current) -> bytes:
    return encoded(document_of(current.network))


def snapshot_seen(row: SnapshotRow) -> dict[str, object]:
    """Return a snapshot without its links and sites, as lists show it."""
    return attributes_as(SnapshotSeen, row, as_of=utc_text(row.as_of_s))


ROUTES = (
    Route(
        "GET",
        "/v1/snapshots/current",
        get_current_snapshot,
        "Return the whole network",
        "read",
        "Enough to decide without asking again. Bounds are as of the measurements: who keeps it "
        "widens them for age.",
        answer=Graph,
        etag=True,
    ),
    Route(
        "GET",
        "/v1/snapshots",
        list_snapshots,
        "List snapshots, the newest first",
        "read",
        query=SnapshotsQuery,
        answer=Snapshots,
        statuses=(422,),
    ),
)
