"""``/v1/snapshots``: whole networks, for clients that decide by themselves."""

from __future__ import annotations

import asyncio
import time
from hashlib import blake2b

from aiohttp import hdrs, web

from planner.model.columns.network import NETWORK_COLUMNS, network_columns
from planner.model.document import members_of
from planner.model.errors import InputError
from planner.model.network import Network
from relayd.http.models.common import attributes_as
from relayd.http.models.network import Graph, Snapshots, SnapshotSeen, SnapshotsQuery
from relayd.http.responses.compression import accepts_gzip, is_known, tag_of
from relayd.http.responses.cursors import page_of, position
from relayd.http.responses.json_responses import (
    JSON,
    SNAPSHOT_AS_OF,
    SNAPSHOT_ID,
    document_response,
    json_parts,
)
from relayd.http.responses.streamed_response import StreamedResponse
from relayd.http.route import RequestContext, Route
from relayd.store import SnapshotRow
from relayd.times import utc_text


async def get_current_snapshot(context: RequestContext) -> web.StreamResponse:
    """Return the whole graph that answers rest on, as JSON or as columns."""
    request, current = context.request, context.service.current
    network, snapshot = current.network, current.snapshot
    as_columns = NETWORK_COLUMNS in request.headers.get(hdrs.ACCEPT, "")
    compressed = not as_columns and accepts_gzip(request.headers.get(hdrs.ACCEPT_ENCODING))
    digest = (await asyncio.to_thread(current.page, "digest", lambda: _digest(network))).decode()
    plain_tag = f'"{digest}-columns"' if as_columns else f'"{digest}"'
    headers = {
        SNAPSHOT_ID: snapshot.id,
        SNAPSHOT_AS_OF: snapshot.as_of,
        hdrs.ETAG: tag_of(plain_tag, compressed=compressed),
        hdrs.CACHE_CONTROL: "private, no-cache",
        hdrs.VARY: f"{hdrs.ACCEPT}, {hdrs.ACCEPT_ENCODING}",
    }
    if is_known(request.headers.get(hdrs.IF_NONE_MATCH), plain_tag):
        return web.Response(status=304, headers=headers)
    headers[hdrs.CONTENT_TYPE] = NETWORK_COLUMNS if as_columns else JSON
    parts = network_columns(network) if as_columns else json_parts(members_of(network))
    return StreamedResponse(parts, headers, compressed=compressed)


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


def _digest(network: Network) -> bytes:
    """Return a digest of all that a network holds, whichever way it is sent."""
    found = blake2b(digest_size=12)
    for part in network_columns(network):
        found.update(part)
    return found.hexdigest().encode()


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
        "widens them for age. Sent as it is made. Who accepts "
        f"`{NETWORK_COLUMNS}`, as relayd's own clients do, gets the columns in which links are "
        "stored, some 100 bytes a link.",
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
