"""For operators: is it alive, is it ready, what does it do; and the documentation."""

from __future__ import annotations

import time

from aiohttp import hdrs, web

from planner.model.errors import StoreError
from relayd.http.models.operations import Health, Readiness, Watch
from relayd.http.responses.problems import ProblemError
from relayd.http.responses.responses import encoded, json_answer
from relayd.http.routes.table import Ask, Route

METRICS_TYPE = "text/plain"


async def get_healthz(ask: Ask) -> web.Response:
    """Say that the process answers."""
    return json_answer(encoded({"status": "ok"}), ask.service.current.snapshot)


async def get_readyz(ask: Ask) -> web.Response:
    """Say whether requests should be sent here, with the reason where not."""
    service = ask.service
    current = service.current
    reasons = []
    if service.is_stopping:
        reasons.append("The service is stopping.")
    try:
        await service.store.read(lambda store: store.snapshots.latest())
    except (StoreError, ProblemError):
        reasons.append("The store can't be read.")
    age_s = service.snapshot_age_s()
    most_s = service.settings.snapshot_max_age_s
    if most_s and (age_s is None or age_s > most_s):
        reasons.append(f"The newest snapshot is older than {most_s:g} s.")
    content = {
        "status": "not ready" if reasons else "ready",
        "reasons": reasons,
        "snapshot": current.snapshot,
        "snapshot_age_s": age_s,
        "checked_at_s": time.time(),
        "watch": service.watching.health(),
    }
    return json_answer(encoded(content), current.snapshot, status=503 if reasons else 200)


async def get_watch(ask: Ask) -> web.Response:
    """Say how the fleet is watched, with hosts and money."""
    current = ask.service.current
    content = {"snapshot": current.snapshot, "watch": ask.service.watching.status()}
    return json_answer(encoded(content), current.snapshot)


async def get_metrics(ask: Ask) -> web.Response:
    """Return counters and gauges as Prometheus reads them."""
    return web.Response(
        body=ask.service.metrics.text(),
        headers={hdrs.CONTENT_TYPE: "text/plain; version=0.0.4; charset=utf-8"},
    )


async def get_openapi(ask: Ask) -> web.Response:
    """Return the description of all of this."""
    return web.Response(
        body=ask.service.openapi,
        headers={hdrs.CONTENT_TYPE: "application/json", hdrs.CACHE_CONTROL: "no-cache"},
    )


ROUTES = (
    Route("GET", "/healthz", get_healthz, "Is the process alive?", answer=Health, unlimited=True),
    Route(
        "GET",
        "/readyz",
        get_readyz,
        "Should requests be sent here?",
        description="503 with the reasons where not.",
        answer=Readiness,
        unlimited=True,
    ),
    Route("GET", "/v1/watch", get_watch, "How the fleet is watched", "read", answer=Watch),
    Route(
        "GET",
        "/metrics",
        get_metrics,
        "Prometheus metrics",
        "read",
        media_type=METRICS_TYPE,
        unlimited=True,
    ),
    Route("GET", "/openapi.json", get_openapi, "This description (OpenAPI 3.1)"),
)
