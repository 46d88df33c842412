"""``/v1/overview``: health of knowledge and measuring, and what happened since yesterday."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import orjson
from aiohttp import web

from planner.model.estimate import SECONDS_PER_DAY
from relayd.http.answers import encoded, knowledge_bytes, relay_gains_bytes
from relayd.http.current_state import Current
from relayd.http.models.common import attributes_as
from relayd.http.models.service import EVENT, OVERVIEW, RELAY_GAINS, RelayGainsQuery
from relayd.http.monitoring.estimate_errors import estimate_errors
from relayd.http.responses import document_response, tagged_response
from relayd.http.route import RequestContext, route
from relayd.store import Store
from relayd.store.campaigns.spending import Spending
from relayd.store.campaigns.states import campaign_totals
from relayd.store.events import Events
from relayd.store.transfers import Transfers, WantedTransfers
from relayd.times import utc_date
from relayd.transfers.register import MOST_LISTED
from relayd.transfers.tracked import tracked

KINDS = ("leg", "verification")
"""Of events that change what is believed; `/v1/changes` has lasting shifts."""
MOST_EVENTS = 100


@route("GET", "/v1/overview", "read", answer=OVERVIEW)
async def get_overview(context: RequestContext) -> web.Response:
    """Show the state of knowledge and of measuring.

    Age of what is known, links that are down or degraded, snapshots, probes and budget of
    today, errors of yesterday's estimates, transfers in flight, and what happened to links
    since.
    """
    service, current = context.service, context.service.current
    now_s = time.time()
    since_s = now_s - SECONDS_PER_DAY
    # Of many regions it takes a while, so a worker does it, once for each state of knowledge.
    if (knowledge := current.pages.get("knowledge")) is None:
        knowledge = await service.workers.ask(current.version, knowledge_bytes)
        current.pages["knowledge"] = knowledge
    content = {
        "checked_at_s": now_s,
        "since_s": since_s,
        "knowledge": orjson.Fragment(knowledge),
        "leg_states": list(current.network.states.values()),
        **await service.store.read(lambda store: _stored(store, current, now_s, since_s)),
    }
    content["snapshots"]["warning"] = service.snapshots.warning()
    if service.watcher.is_on:
        content["measuring"]["budget_usd"] = service.settings.watch_daily_budget_usd
    return document_response(current.snapshot, content)


def _stored(store: Store, current: Current, now_s: float, since_s: float) -> dict[str, Any]:
    """Return what the store knows: its snapshots, probes of today, events."""
    latest = store.snapshots.latest()
    today = utc_date(now_s)
    totals = campaign_totals(store.database, now_s - now_s % SECONDS_PER_DAY)
    liveness_usd = Spending(store.database).committed_usd(today, "liveness")
    events = Events(store.database).newest(KINDS, since_s, limit=MOST_EVENTS)
    return {
        "snapshots": {"created_at_s": latest.created_at_s if latest else None},
        "measuring": {
            "since_s": now_s - now_s % SECONDS_PER_DAY,
            "done": totals.done,
            "failed": totals.failed,
            "sent_gb": totals.sent_gb,
            "usd": totals.usd + liveness_usd,
            "budget_usd": None,
        },
        "prediction": _prediction(store, current, now_s, since_s),
        "transfers": _transfers(store, now_s),
        "events": [attributes_as(EVENT, event) for event in events],
    }


def _transfers(store: Store, now_s: float) -> dict[str, int]:
    rows = Transfers(store.database).page(WantedTransfers("in-flight"), limit=MOST_LISTED)
    flying = [tracked(row, now_s) for row in rows]
    return {
        "in_flight": len(flying),
        "late": sum(transfer.is_late is True for transfer in flying),
        "silent": sum(transfer.state == "silent" for transfer in flying),
    }


def _prediction(
    store: Store, current: Current, now_s: float, since_s: float
) -> dict[str, Any] | None:
    """Return how far a day's samples are from what was expected of them before it began."""
    before = store.snapshots.current_at(since_s)
    if before is None:
        return None
    # Reading an old snapshot takes longer than all else here, and its errors change with the next.
    key = f"prediction {before.id}"
    if (kept := current.pages.get(key)) is None:
        links = store.snapshots.links(before.id)
        samples = store.samples.newest(before.id, since_s, now_s)
        errors = list(estimate_errors(links, samples))
        inside = sum(error.inside for error in errors)
        kept = current.pages[key] = encoded(
            {
                "before": before.id,
                "samples": len(errors),
                "median_error": median(error.ratio for error in errors) if errors else None,
                "inside_share": inside / len(errors) if errors else None,
            }
        )
    return orjson.loads(kept)  # type: ignore[no-any-return]


@route("GET", "/v1/relay-gains", "read", query=RelayGainsQuery, answer=RELAY_GAINS, etag=True)
async def get_relay_gains(context: RequestContext) -> web.Response:
    """List where a single relay gains most.

    Of all pairs of regions, with one VM a region and 64 connections; with the price, and what
    an hour must be worth for the relay to pay.
    """
    service, current, query = context.service, context.service.current, context.query
    key = f"relay gains {query.limit}"
    body = current.plans.get(key)
    if body is None:
        body = await service.workers.ask(current.version, relay_gains_bytes, query.limit)
        current.plans.keep(key, body)
    return tagged_response(context.request, body, current.snapshot)
