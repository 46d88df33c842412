"""For operators: health, readiness, metrics, the watcher's status and the API's description."""

from __future__ import annotations

import asyncio
import time

from aiohttp import hdrs, web

from relayd.http.answers import encoded
from relayd.http.models.service import HEALTH, READINESS, WATCH
from relayd.http.responses import compressed, document_response, json_response
from relayd.http.route import RequestContext, route

METRICS_TYPE = "text/plain"
STORE_ANSWERS_S = 5.0
"""Within which the store of a service that is ready answers."""
LEAST_FREE_BYTES = 200_000_000
"""Of the store's disk, below which there is a warning: some days of samples, or one import."""


@route("GET", "/healthz", answer=HEALTH, unlimited=True)
async def get_healthz(context: RequestContext) -> web.Response:
    """Check that it is alive."""
    return json_response(encoded({"status": "ok"}), context.service.current.snapshot)


@route("GET", "/readyz", answer=READINESS, unlimited=True)
async def get_readyz(context: RequestContext) -> web.Response:
    """Check that it is ready.

    503 with the reasons where not. It stays ready while snapshots fail, because it answers from
    the last one; `warnings` say since when and why.
    """
    service = context.service
    current = service.current
    reasons = []
    if service.is_stopping:
        reasons.append("The service is stopping.")
    if not await service.store.answers(STORE_ANSWERS_S):
        reasons.append(f"The store can't be read within {STORE_ANSWERS_S:g} s.")
    age_s = service.snapshot_age_s()
    most_s = service.settings.snapshot_max_age_s
    if most_s and (age_s is None or age_s > most_s):
        reasons.append(f"The newest snapshot is older than {most_s:g} s.")
    warning = service.snapshots.warning()
    warnings = [warning] if warning else []
    free_bytes = service.store.free_bytes()
    if free_bytes is not None and free_bytes < LEAST_FREE_BYTES:
        warnings.append(
            f"The disk of the store is nearly full: {free_bytes / 1e6:.0f} MB are left."
        )
    content = {
        "status": "not ready" if reasons else "ready",
        "reasons": reasons,
        "warnings": warnings,
        "snapshot_age_s": age_s,
        "checked_at_s": time.time(),
        "watch": service.watcher.health(),
    }
    return document_response(current.snapshot, content, status=503 if reasons else 200)


@route("GET", "/v1/watch", "read", answer=WATCH)
async def get_watch(context: RequestContext) -> web.Response:
    """Show the watcher of the fleet."""
    service = context.service
    return document_response(service.current.snapshot, {"watch": service.watcher.status()})


@route("GET", "/metrics", "read", media_type=METRICS_TYPE, unlimited=True)
async def get_metrics(context: RequestContext) -> web.Response:
    """Prometheus metrics."""
    body = await context.service.exposition.text()
    headers = {hdrs.CONTENT_TYPE: f"{METRICS_TYPE}; version=0.0.4; charset=utf-8"}
    return compressed(web.Response(body=body, headers=headers))


@route("GET", "/openapi.json")
async def get_openapi(context: RequestContext) -> web.Response:
    """Describe all of this (OpenAPI 3.1)."""
    return web.Response(
        body=await asyncio.to_thread(context.service.openapi),
        headers={hdrs.CONTENT_TYPE: "application/json", hdrs.CACHE_CONTROL: "no-cache"},
    )
