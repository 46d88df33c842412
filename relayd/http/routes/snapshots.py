"""``/v1/snapshots``: whole networks, for clients that decide by themselves."""

from __future__ import annotations

import asyncio
import time
from hashlib import blake2b

from aiohttp import ETag, hdrs, web

from planner.model.document import members_of, regions_as_json
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.network_bytes import NETWORK_COLUMNS, network_columns
from relayd.catalogue.loading import content_of
from relayd.http.answers import encoded
from relayd.http.current_state import Current
from relayd.http.models.common import attributes_as
from relayd.http.models.network import (
    CATALOGUE_ANSWER,
    GRAPH,
    REGIONS,
    SNAPSHOT,
    SNAPSHOTS,
    SnapshotsQuery,
)
from relayd.http.responses import (
    JSON,
    document_response,
    json_parts,
    known_response,
    page_of,
    position,
    snapshot_headers,
    streamed_response,
    tagged_response,
)
from relayd.http.route import RequestContext, route
from relayd.store import SnapshotRow
from relayd.times import utc_text


@route("GET", "/v1/snapshots/current", "read", answer=GRAPH, etag=True)
async def get_current_snapshot(context: RequestContext) -> web.StreamResponse:
    """Return the whole network.

    Enough to decide without asking again. Bounds are as of the measurements: who keeps it widens
    them for age. Sent as it is made. Who accepts `application/vnd.relayd.network-columns.v2`, as
    relayd's own clients do, gets the columns in which links are stored, some 100 bytes a link.
    """
    request, current = context.request, context.service.current
    network, snapshot = current.network, current.snapshot
    as_columns = NETWORK_COLUMNS in request.headers.get(hdrs.ACCEPT, "")
    digest = (await asyncio.to_thread(current.page, "digest", lambda: _digest(network))).decode()
    tag = f"{digest}-columns" if as_columns else digest
    headers = {
        **snapshot_headers(snapshot),
        hdrs.CACHE_CONTROL: "private, no-cache",
        hdrs.VARY: f"{hdrs.AUTHORIZATION}, {hdrs.ACCEPT}, {hdrs.ACCEPT_ENCODING}",
    }
    if known := known_response(request, tag, headers):
        return known
    headers[hdrs.CONTENT_TYPE] = NETWORK_COLUMNS if as_columns else JSON
    response = web.StreamResponse(headers=headers)
    response.etag = ETag(tag, is_weak=True)
    if as_columns:
        return await streamed_response(request, network_columns(network), response)
    response.enable_compression()
    return await streamed_response(request, json_parts(members_of(network)), response)


@route("GET", "/v1/snapshots", "read", query=SnapshotsQuery, answer=SNAPSHOTS)
async def list_snapshots(context: RequestContext) -> web.Response:
    """List snapshots, the newest first."""
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
    return attributes_as(SNAPSHOT, row, as_of=utc_text(row.as_of_s))


@route("GET", "/v1/regions", "read", answer=REGIONS, etag=True)
async def get_regions(context: RequestContext) -> web.Response:
    """List regions and aliases."""
    current = context.service.current
    body = current.page("regions", lambda: _regions(current))
    return tagged_response(context.request, body, current.snapshot)


def _regions(current: Current) -> bytes:
    wan = current.wan
    listed = regions_as_json(wan.regions(), wan.sites(), wan.catalogue)
    named = {alias: list(members) for alias, members in wan.catalogue.aliases.items()}
    return encoded({"snapshot": current.snapshot, "regions": listed, "aliases": named})


@route("GET", "/v1/catalogue", "read", answer=CATALOGUE_ANSWER, etag=True)
async def get_catalogue(context: RequestContext) -> web.Response:
    """Return regions, VM types and prices.

    `relayd.open(url, mirror=True)` copies it together with the network.
    """
    current = context.service.current
    content = {"snapshot": current.snapshot, "digest": current.catalogue.digest}
    body = current.page(
        "catalogue", lambda: encoded({**content, "catalogue": content_of(current.catalogue)})
    )
    return tagged_response(context.request, body, current.snapshot)
