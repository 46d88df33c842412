"""For operators and pages: health, metrics, the overview, tokens, events, and the dashboard."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from statistics import fmean, median
from typing import Any, Literal

import orjson
from aiohttp import hdrs, web
from pydantic import Field

from planner.model.errors import InputError
from planner.model.estimate import SECONDS_PER_DAY
from relayd.dashboard.pages import LEADS, PAGES, POLICY, SIGN_IN, Asset, Page, assets, rendered
from relayd.http.access import session_cookie
from relayd.http.answers import encoded, knowledge_bytes, relay_gains_bytes
from relayd.http.models import RequestModel, answer, model_of
from relayd.http.monitoring.metrics import estimate_errors
from relayd.http.problems import ProblemError
from relayd.http.route import (
    EVENT_STREAM,
    WRITE_TIMEOUT_S,
    RequestContext,
    Route,
    compressed,
    document_response,
    route,
    tagged_response,
)
from relayd.http.service import Current
from relayd.store import Store
from relayd.store.campaigns import Spending, campaign_totals
from relayd.store.events import Event, Events
from relayd.store.samples.ingest import source_of_token
from relayd.store.tokens import SCOPES, Scope, Token, Tokens
from relayd.times import utc_date
from relayd.transfers.register import transfer_rows
from relayd.transfers.tracked import tracked

METRICS_TYPE, HTML_TYPE, JAVASCRIPT = "text/plain", "text/html", "text/javascript"
STORE_ANSWERS_S = 5.0
"""Within which the store of a service that is ready answers."""
LEAST_FREE_BYTES = 200_000_000
"""Of the store's disk, below which there is a warning: some days of samples, or one import."""
KINDS = ("leg", "verification")
"""Of events that change what is believed; `/v1/changes` has lasting shifts."""
MOST_EVENTS = 100
MOST_GAINS = 50
HEARTBEAT_S = 15.0

HEALTH = model_of("Health", "The process answers.", status=Literal["ok"])
READINESS = answer(
    "Readiness",
    "Whether requests should be sent here.",
    status=Literal["ready", "not ready"],
    reasons=(list[str], "Why not; empty where ready."),
    warnings=(list[str], "Of failing or overdue snapshots, and a disk that is nearly full."),
    snapshot_age_s=(float | None, "Since its newest sample; null for a baseline."),
    checked_at_s=float,
    watch=(
        model_of(
            "WatchHealth",
            "How the watcher is, as far as anyone may know.",
            role=(str, "`prober`, `standby` or `stopped`."),
            last_look_age_s=(float | None, "Since the last liveness probe."),
            legs_down=int | None,
            legs_degraded=int | None,
        )
        | None,
        "How the watcher of the fleet is; null where nothing is watched.",
    ),
)
WATCH = answer(
    "Watch",
    "The watcher of the fleet.",
    watch=(dict[str, Any] | None, "Role, links, budget, campaigns; null without a watcher."),
)

TOKEN = model_of(
    "TokenSeen",
    "What is known of a token: never the secret, nor its digest.",
    Token,
    without=("id", "digest"),
    number=int,
    scopes=list[Scope],
    expires_at_s=(float | None, "Seconds since 1970 (UTC)."),
    revoked_at_s=(float | None, "Seconds since 1970 (UTC)."),
    last_used_at_s=(float | None, "Null for never; may be a minute old."),
    requests_per_s=(float | None, "0 for no limit, null for that of the service."),
    max_series=(int | None, "Metrics of links that it may report; 0 and null as above."),
    state=Literal["valid", "expired", "revoked"],
)
TOKEN_ANSWER = answer(
    "TokenAnswer",
    "The token of the caller.",
    token=(TOKEN | None, "Null where the service needs none."),
    scopes=(list[Scope], "All that the caller has; `admin` has the others."),
)


class EventsQuery(RequestModel):
    """From where on."""

    after: int | None = Field(None, ge=0, le=2**62, description="Id of the last event seen.")


class RelayGainsQuery(RequestModel):
    """The number of entries, and the reader's settings."""

    limit: int = Field(10, ge=1, le=MOST_GAINS, description="Most entries of the answer.")
    time_value_usd_per_h: float = Field(
        20.0,
        ge=0,
        allow_inf_nan=True,
        description="What an hour is worth; `inf` where time alone counts.",
    )
    vms: int = Field(1, ge=1, le=8, description="That a region may have at most.")


# ---- knowledge and measuring at one glance -----------------------------------------------------


@route("GET", "/v1/overview", "read", internal=True)
async def get_overview(context: RequestContext) -> dict[str, Any]:
    """Show the state of knowledge and of measuring.

    Age of what is known, links that are down or degraded, snapshots, probes and budget of
    today, errors of yesterday's estimates, transfers in flight, and what happened to links
    since.
    """
    service, current, now_s = context.service, context.current, time.time()
    since_s = now_s - SECONDS_PER_DAY
    settings = service.settings
    # Of many regions it takes a while, so a worker does it, once for each state of knowledge.
    knowledge = await context.ask_once("knowledge", knowledge_bytes)
    content = {
        "checked_at_s": now_s,
        "knowledge": orjson.Fragment(knowledge),
        "leg_states": list(current.network.states.values()),
        "links_health": service.watcher.links_health(current.network.states),
        **await context.read(lambda store: _stored(store, current, now_s, since_s)),
    }
    content["snapshots"]["warning"] = service.snapshots.warning(settings.snapshot_every_s)
    if service.watcher.is_on:
        content["measuring"]["budget_usd"] = settings.watch_daily_budget_usd
    return content


def _stored(store: Store, current: Current, now_s: float, since_s: float) -> dict[str, Any]:
    """Return the store's part: its snapshots, probes of today, transfers, events."""
    database, latest = store.database, store.snapshots.latest()
    midnight_s = now_s - now_s % SECONDS_PER_DAY
    totals = campaign_totals(database, midnight_s)
    liveness_usd = Spending(database).committed_usd(utc_date(now_s), "liveness")
    flying = [tracked(row, now_s) for row in transfer_rows(database, "in-flight")]
    prediction = None
    if before := store.snapshots.current_at(since_s):
        # Reading an old snapshot takes longer than all else here, and its errors change with the
        # next one.
        key = f"prediction {before.id}"
        errors = current.answer(key, lambda: _prediction(store, before.id, since_s, now_s))
        prediction = orjson.Fragment(errors)
    return {
        "snapshots": {"created_at_s": latest.created_at_s if latest else None},
        "measuring": {
            "done": totals.done,
            "failed": totals.failed,
            "usd": totals.usd + liveness_usd,
            "budget_usd": None,
        },
        "prediction": prediction,
        "transfers": {"in_flight": len(flying), **Counter(one.health for one in flying)},
        "events": Events(database).newest(KINDS, since_s, limit=MOST_EVENTS),
    }


def _prediction(store: Store, before: str, since_s: float, now_s: float) -> bytes:
    """Compare a day's samples with the snapshot of the time before it."""
    links = store.snapshots.network(before).usual
    errors = list(estimate_errors(links, store.samples.newest(since_s, now_s)))
    return encoded(
        {
            "before": before,
            "samples": len(errors),
            "median_error": median(error.ratio for error in errors) if errors else None,
            "inside_share": fmean(error.inside for error in errors) if errors else None,
        }
    )


@route("GET", "/v1/relay-gains", "read", query=RelayGainsQuery, etag=True, internal=True)
async def get_relay_gains(context: RequestContext) -> bytes:
    """List where the planner takes a single relay.

    Of 1 TB on each pair of regions without trouble, at what an hour is worth and so many VMs; with
    the price, and what an hour must be worth for the relay to pay.
    """
    query = context.query
    asked = query.limit, query.time_value_usd_per_h, query.vms
    return await context.ask_once(f"relay gains {asked}", relay_gains_bytes, *asked)


# ---- tokens ------------------------------------------------------------------------------------


@route("GET", "/v1/token", "read", TOKEN_ANSWER)
async def get_token(context: RequestContext) -> dict[str, Any]:
    """Show the caller's token.

    Its name, scopes and limits, never the token itself.
    """
    return _own_token(context)


def _own_token(context: RequestContext) -> dict[str, Any]:
    access = context.service.access
    token = access.token(context.request) if access.needs_tokens else None
    return {
        "token": token.metadata() if token else None,
        "scopes": [scope for scope in SCOPES if token is None or token.may(scope)],
    }


@route("POST", "/v1/session", "read", internal=True)
async def sign_in(context: RequestContext) -> web.Response:
    """Sign a browser in with the token of the request.

    From then on a cookie has the token: no script reads it, and pages of other sites can't send it.
    """
    response = document_response(context.snapshot, _own_token(context))
    authorization = context.request.headers.get(hdrs.AUTHORIZATION, "")
    if context.service.access.needs_tokens and authorization:
        token = authorization.partition(" ")[2].strip()
        response.headers[hdrs.SET_COOKIE] = session_cookie(context.request, token)
    return response


@route("DELETE", "/v1/session", internal=True)
async def sign_out(context: RequestContext) -> web.Response:
    """Sign a browser out: its cookie goes. The token stays valid until it is revoked."""
    response = document_response(context.snapshot, {})
    response.headers[hdrs.SET_COOKIE] = session_cookie(context.request, "")
    return response


@route("GET", "/v1/tokens", "admin", internal=True)
async def list_tokens(context: RequestContext) -> dict[str, Any]:
    """List all tokens.

    Names, scopes, limits and when they were used, never a token itself. Tokens are made and
    revoked by `relayd serve token` on the store.
    """
    service = context.service
    tokens, series = await service.store.read(
        lambda store: (Tokens(store.database).list(), store.samples.series_by_source())
    )
    used = service.access.used_at_s  # which the store has not, or not yet
    return {
        "tokens": [
            {
                **token.metadata(),
                "last_used_at_s": used.get(token.id, token.last_used_at_s),
                "series": series.get(source_of_token(token.name), 0),
            }
            for token in tokens
        ],
        "requests_per_s": service.settings.requests_per_s,
        "max_series": service.settings.max_series,
    }


# ---- server-sent events (WHATWG HTML, 9.2) -----------------------------------------------------


@route("GET", "/v1/events", "read", query=EventsQuery, media_type=EVENT_STREAM)
async def get_events(context: RequestContext) -> web.StreamResponse:
    """Stream events (server-sent events).

    New snapshots, progress of campaigns, links that fail and recover; each `data` has `id`,
    `at_s`, `kind`, `subject` and `detail`. Begins with what comes next; with `Last-Event-ID` or
    `after`, with what came after that one. Refused where that is no id (422), and where too many
    read already (503).
    """
    stream = context.service.events
    with stream.reader():
        text = context.request.headers.get("Last-Event-ID", "").strip()
        last_id = context.query.after
        if text:
            if not (text.isascii() and text.isdigit() and len(text) <= 18):
                raise InputError("Last-Event-ID", "is not the id of an event", value=text[:50])
            last_id = int(text)
        elif last_id is None:
            last_id = await stream.last_id()
        response = web.StreamResponse(
            headers={
                hdrs.CONTENT_TYPE: EVENT_STREAM,
                "X-Accel-Buffering": "no",  # nginx would hold events back
            }
        )
        # A reader who has gone says where to go on when it is back.
        with suppress(ConnectionError, TimeoutError):
            await response.prepare(context.request)
            content = b": these are events of relayd\nretry: 3000\n\n"
            while not stream.is_closed:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await response.write(content)
                events = await stream.after(last_id, HEARTBEAT_S)
                last_id = events[-1].id if events else last_id
                content = b"".join(map(_framed, events)) or b": still here\n\n"
        return response


def _framed(event: Event) -> bytes:
    # The name is a line of its own: what would break it is left out.
    name = "".join(c for c in event.kind if c.isalnum() or c in "-_.")
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.id, name.encode(), encoded(event))


# ---- the dashboard -----------------------------------------------------------------------------


async def _show(page: Page, context: RequestContext) -> web.StreamResponse:
    access = context.service.access  # a proxy may sign all its readers in
    needs_token = access.needs_tokens and access.token(context.request) is None
    return sent(context, rendered(page, needs_token=needs_token))


async def _lead(target: str, context: RequestContext) -> web.StreamResponse:
    query = context.request.rel_url.raw_query_string  # names may hold what no header may
    page, mark, part = target.partition("#")
    location = f"{page}{'?' * bool(query)}{query}{mark}{part}"
    return web.Response(status=302, headers={hdrs.LOCATION: location})


@route("GET", "/assets/{folder}/{name}", media_type=JAVASCRIPT, documented=False)
async def get_asset(context: RequestContext) -> web.StreamResponse:
    """Return a script, a style or the outline of the world."""
    asset = assets().get("{folder}/{name}".format_map(context.request.match_info))
    return sent(context, asset, "The dashboard has no such file.")


def sent(context: RequestContext, asset: Asset | None, lacking: str = "") -> web.StreamResponse:
    """Send a file of the dashboard, 304 to who has it; raises a ProblemError (404) without one."""
    if asset is None:
        raise ProblemError(404, "not-found", lacking)
    headers = {
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": POLICY,
        hdrs.CONTENT_TYPE: asset.media_type,
    }
    response = compressed(web.Response(body=asset.content, headers=headers))
    return tagged_response(context.request, response, asset.tag)


ROUTES = tuple(
    Route(
        "GET",
        path,
        handler,
        summary,
        media_type=HTML_TYPE,
        documented=False,
        operation_id="get_page",
    )
    for path, handler, summary in (
        *((page.path, partial(_show, page), page.summary) for page in (*PAGES, SIGN_IN)),
        *(
            (path, partial(_lead, target), "Lead to a page or a part of it.")
            for path, target in LEADS.items()
        ),
    )
)


# ---- health, metrics, the description ----------------------------------------------------------


@route("GET", "/healthz", unlimited=True, answer=HEALTH)
async def get_healthz(_context: RequestContext) -> bytes:
    """Check that it is alive."""
    return encoded({"status": "ok"})


@route("GET", "/readyz", unlimited=True, answer=READINESS)
async def get_readyz(context: RequestContext) -> web.Response:
    """Check that it is ready.

    503 with the reasons where not. It stays ready while snapshots fail, because it answers from
    the last one; `warnings` say since when and why.
    """
    service = context.service
    age_s, most_s = service.snapshot_age_s(), service.settings.snapshot_max_age_s
    free_bytes = service.store.free_bytes()
    is_read = await service.store.answers(STORE_ANSWERS_S)
    is_written = await service.store.takes_changes(STORE_ANSWERS_S)
    is_old = most_s and (age_s is None or age_s > most_s)
    reasons = {
        "The service is stopping.": service.stopping.is_set(),
        f"The store can't be read within {STORE_ANSWERS_S:g} s.": not is_read,
        f"The store can't be written within {STORE_ANSWERS_S:g} s.": not is_written,
        f"The newest snapshot is older than {most_s:g} s.": is_old,
    }
    warnings = [service.snapshots.warning(service.settings.snapshot_every_s)]
    if free_bytes is not None and free_bytes < LEAST_FREE_BYTES:
        left_mb = f"{free_bytes / 1e6:.0f} MB"
        warnings.append(f"The disk of the store is nearly full: {left_mb} are left.")
    is_ready = not any(reasons.values())
    content = {
        "status": "ready" if is_ready else "not ready",
        "reasons": [reason for reason, holds in reasons.items() if holds],
        "warnings": list(filter(None, warnings)),
        "snapshot_age_s": age_s,
        "checked_at_s": time.time(),
        "watch": service.watcher.health(),
    }
    return document_response(context.snapshot, content, status=200 if is_ready else 503)


@route("GET", "/v1/watch", "read", WATCH)
async def get_watch(context: RequestContext) -> dict[str, Any]:
    """Show the watcher of the fleet."""
    return {"watch": context.service.watcher.status()}


@route("GET", "/metrics", "read", media_type=METRICS_TYPE, unlimited=True)
async def get_metrics(context: RequestContext) -> web.Response:
    """Prometheus metrics."""
    body = await context.service.metrics.text(context.current.version)
    headers = {hdrs.CONTENT_TYPE: f"{METRICS_TYPE}; version=0.0.4; charset=utf-8"}
    return compressed(web.Response(body=body, headers=headers))
