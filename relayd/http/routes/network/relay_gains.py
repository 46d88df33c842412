"""``/v1/relay-gains``: the pairs of regions on which a single relay gains most."""

from __future__ import annotations

from aiohttp import web

from relayd.http.answers.relay_gains import relay_gains_bytes
from relayd.http.models.overview import RelayGains, RelayGainsQuery
from relayd.http.responses.json_responses import tagged_response
from relayd.http.route import RequestContext, Route


async def get_relay_gains(context: RequestContext) -> web.Response:
    """List where a relay gains most."""
    service, current, query = context.service, context.service.current, context.query
    key = f"relay gains {query.limit}"
    body = current.plans.get(key)
    if body is None:
        body = await service.workers.ask(current.version, relay_gains_bytes, query.limit)
        current.plans.keep(key, body)
    return tagged_response(context.request, body, current.snapshot)


ROUTES = (
    Route(
        "GET",
        "/v1/relay-gains",
        get_relay_gains,
        "List where a single relay gains most",
        "read",
        "Of all pairs of regions, with one VM a region and 64 connections; with the price, and "
        "what an hour must be worth for the relay to pay.",
        query=RelayGainsQuery,
        answer=RelayGains,
        statuses=(422,),
        etag=True,
    ),
)
