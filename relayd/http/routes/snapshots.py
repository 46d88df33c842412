"""``/v1/snapshots``, ``/v1/regions``, ``/v1/catalogue``, ``/v1/changes``: whole networks.

For clients that decide by themselves; and what changed between two of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from hashlib import blake2b
from typing import Any, Literal

from aiohttp import hdrs, web
from pydantic import AwareDatetime, Field

from planner.model.catalogue import Region
from planner.model.document import (
    NETWORK_COLUMNS,
    estimate_as_json,
    members_of,
    network_columns,
    regions_as_json,
)
from planner.model.errors import InputError
from planner.model.estimate import SECONDS_PER_DAY, Kind
from planner.model.link_states import LinkState
from planner.model.network import Network, NewerSamples
from planner.model.verification import Verified
from probes.estimation.current_samples import LinkShift
from probes.metrics import Metric
from relayd.catalogue.loading import content_of
from relayd.http.answers import encoded
from relayd.http.models import Page, answer, attributes_as, many, model_of, page
from relayd.http.route import (
    JSON,
    VARY,
    RequestContext,
    cursor,
    json_parts,
    page_of,
    position,
    route,
    snapshot_headers,
    streamed_response,
    tagged_response,
)
from relayd.http.routes.links import ESTIMATE, LINK, SITE
from relayd.snapshots.changes import EstimateChange, changes
from relayd.store import SnapshotRow, Store
from relayd.store.links import LevelShifts
from relayd.times import utc_text

MOST_S = 100 * 366 * SECONDS_PER_DAY

REGIONS = answer(
    "Regions",
    "All regions that can be planned between, and all aliases.",
    regions=many(
        model_of(
            "Region",
            Region,
            without=("area", "baseline", "private_network"),
            provider=str,
            in_graph=(bool, "Whether links, matrices and relays include it."),
            vm_type=(str, "VM type in use there, as `provider:type`."),
            aliases=list[str],
        )
    ),
    aliases=(dict[str, list[str]], "Alias to regions, the preferred first."),
)
CATALOGUE_ANSWER = answer(
    "CatalogueAnswer",
    "Regions, VM types and prices.",
    digest=(str, "Identifies the content."),
    catalogue=(dict[str, Any], "Regions, aliases, VM types, defaults, prices, as rows."),
)
GRAPH = answer(
    "Graph",
    "A whole snapshot: enough to plan without asking again.",
    aged_to_s=(float | None, "Unix time that bounds are widened for; null for those as measured."),
    sites=many(SITE),
    links=many(LINK),
    other_links=(many(LINK), "Over the kind of address that is not in use."),
    leg_states=(list[LinkState], "Down or degraded now; to be laid over the links."),
    verifications=(list[Verified], "What runs of plans have shown."),
    newer_samples=(NewerSamples | None, "What has long waited for a snapshot."),
)
SNAPSHOT = model_of(
    "SnapshotSeen",
    "A snapshot that is kept.",
    SnapshotRow,
    without=("as_of_s", "catalogue_digest"),
    id=(str, "As plans name it; unique for ever, also after it was pruned."),
    created_at_s=(
        float,
        "Up to when measurements count, and when it was made; seconds since 1970 (UTC).",
    ),
    source=(str, "`measured`, `baseline` or `mixed`."),
    samples_through=(int, "Id of the newest sample that it takes into account; 0 for none."),
    links=(int, "How many; filled in by the store."),
    sites=(int, "How many; filled in by the store."),
    as_of=(str, "Time of its newest sample, RFC 3339."),
)


class SnapshotsQuery(Page):
    """Which snapshots."""

    older_than_s: float = Field(0.0, ge=0, allow_inf_nan=False, description="Only older ones.")


SNAPSHOTS = page("Snapshots", "Snapshots, the newest first.", snapshots=many(SNAPSHOT))


class ChangesQuery(Page):
    """Since when."""

    since_s: float = Field(SECONDS_PER_DAY, gt=0, le=MOST_S, description="Seconds ago.")
    since: AwareDatetime | None = Field(
        None, description="In place of `since_s`, a time: RFC 3339, such as 2026-05-01T08:00:00Z."
    )
    source: Kind | None = Field(None, description="Of the new estimate.")


CHANGE = model_of(
    "ChangeSeen",
    EstimateChange,
    src=(str, "Source of a link, or the region whose VMs' cap it is."),
    dst=(str | None, "Destination of a link; None for a cap."),
    ratio=(float | None, "Expected now over expected then; None where that was zero."),
    metric=Literal[
        "aggregate_gbps", "per_flow_mbps", "rtt_ms", "egress_gbps", "ingress_gbps", "window_mb"
    ],
    before=(ESTIMATE, "As it was then, with bounds widened for age."),
    after=ESTIMATE,
)
CHANGES = page(
    "Changes",
    "What has changed, the largest ratio first.",
    since_s=(float, "The time that was asked for, seconds since 1970 (UTC)."),
    before=(SNAPSHOT | None, "The newest then; null where none as old is kept."),
    oldest=(SNAPSHOT | None, "The oldest that is kept."),
    changes=many(CHANGE),
    total=(int, "Of these changes, on all pages."),
    total_by_source=(dict[Kind, int], "Of all changes, by the source of the new estimate."),
    new_regions=list[str],
    lost_regions=list[str],
    shifts=(
        many(model_of("ShiftSeen", LinkShift, metric=Metric)),
        "Found since then, the newest first.",
    ),
)


@route("GET", "/v1/snapshots/current", "read", GRAPH, etag=True)
async def get_current_snapshot(context: RequestContext) -> web.StreamResponse:
    """Return the whole network.

    Enough to decide without asking again. Bounds are as of the measurements: who keeps it widens
    them for age. Sent as it is made. Who accepts `application/vnd.relayd.network-columns.v2`, as
    relayd's own clients do, gets the columns in which links are stored, some 100 bytes a link.
    """
    request, current = context.request, context.current
    network = current.network
    as_columns = NETWORK_COLUMNS in request.headers.get(hdrs.ACCEPT, "")
    digest = (await asyncio.to_thread(current.answer, "digest", lambda: _digest(network))).decode()
    tag = f"{digest}-columns" if as_columns else digest
    headers = {
        **snapshot_headers(context.snapshot),
        hdrs.CACHE_CONTROL: "private, no-cache",
        hdrs.VARY: f"{VARY}, {hdrs.ACCEPT}",
        hdrs.CONTENT_TYPE: NETWORK_COLUMNS if as_columns else JSON,
    }
    response = tagged_response(request, web.StreamResponse(headers=headers), tag)
    if response.status == 304:
        return response
    if as_columns:
        return await streamed_response(request, network_columns(network), response)
    response.enable_compression()
    return await streamed_response(request, json_parts(members_of(network)), response)


@route("GET", "/v1/snapshots", "read", SNAPSHOTS, query=SnapshotsQuery)
async def list_snapshots(context: RequestContext) -> dict[str, Any]:
    """List snapshots, the newest first.

    Refused (422) where the cursor is of a snapshot that was pruned.
    """
    query = context.query
    most_s = time.time() - query.older_than_s
    rows = await context.read(lambda store: list(store.snapshots.list()))
    rows = [row for row in rows if row.created_at_s <= most_s] if query.older_than_s else rows
    if (after := position(query.cursor, str)) is not None:
        ids = [row.id for row in rows]
        if after not in ids:
            raise InputError("cursor", "is of a snapshot that was pruned", value=query.cursor)
        rows = rows[ids.index(after) + 1 :]
    return page_of("snapshots", rows, query.limit, lambda row: (row.id,), _snapshot)


def _digest(network: Network) -> bytes:
    """Return a digest of all that a network holds, whichever way it is sent."""
    found = blake2b(digest_size=12)
    for part in network_columns(network):
        found.update(part)
    return found.hexdigest().encode()


def _snapshot(row: SnapshotRow | None) -> dict[str, object] | None:
    """Return a snapshot without its links and sites, as lists show it."""
    return row and attributes_as(SNAPSHOT, row, as_of=utc_text(row.as_of_s))


@route("GET", "/v1/regions", "read", REGIONS, etag=True)
async def get_regions(context: RequestContext) -> bytes:
    """List regions and aliases."""
    current, wan = context.current, context.current.wan

    def made() -> bytes:
        listed = regions_as_json(wan.regions(), wan.sites(), wan.catalogue)
        named = {alias: list(members) for alias, members in wan.catalogue.aliases.items()}
        return encoded({"snapshot": current.snapshot, "regions": listed, "aliases": named})

    return current.answer("regions", made)


@route("GET", "/v1/catalogue", "read", CATALOGUE_ANSWER, etag=True)
async def get_catalogue(context: RequestContext) -> bytes:
    """Return regions, VM types and prices.

    `relayd.open(url, mirror=True)` copies it together with the network.
    """
    current = context.current
    content = {"snapshot": current.snapshot, "digest": current.catalogue.digest}
    return current.answer(
        "catalogue", lambda: encoded({**content, "catalogue": content_of(current.catalogue)})
    )


@route("GET", "/v1/changes", "read", CHANGES, query=ChangesQuery)
async def get_changes(context: RequestContext) -> dict[str, Any]:
    """List what has changed.

    Links and caps whose estimate is now outside of the bounds that it had in the snapshot that
    was the newest then, the largest ratio first; regions that have come or gone; lasting
    changes of level that were found since.
    """
    query, network, now_s = context.query, context.current.network, time.time()
    since_s = query.since.timestamp() if query.since else now_s - query.since_s
    start = position(query.cursor, int) or 0
    found = await context.read(lambda store: _read(store, network, since_s, now_s))
    every = found.pop("all")
    wanted = [each for each in every if query.source in (None, each.after.source)]
    end = start + query.limit
    return {
        "since_s": since_s,
        **found,
        "changes": [_change(each) for each in wanted[start:end]],
        "total": len(wanted),
        "total_by_source": Counter(each.after.source for each in every),
        "next_cursor": cursor(end) if end < len(wanted) else None,
    }


def _read(store: Store, now: Network, since_s: float, now_s: float) -> dict[str, Any]:
    old = store.snapshots.current_at(since_s)
    before = now
    if old is not None and old.id != now.snapshot.id:
        before = store.snapshots.network(old.id)
    return {
        "before": _snapshot(old),
        "oldest": _snapshot(store.snapshots.oldest()),
        "all": [] if before is now else changes(before, now, now_s),
        "new_regions": sorted(now.sites - before.sites.keys()),
        "lost_regions": sorted(before.sites.keys() - now.sites),
        "shifts": list(LevelShifts(store.database).found_since(since_s)),
    }


def _change(found: EstimateChange) -> dict[str, object]:
    before, after = estimate_as_json(found.before), estimate_as_json(found.after)
    return attributes_as(CHANGE, found, before=before, after=after)
