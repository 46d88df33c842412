"""``GET /v1/events``: server-sent events (WHATWG HTML, 9.2)."""

from __future__ import annotations

import asyncio

from aiohttp import hdrs, web

from planner.model.errors import InputError
from relayd.http.answers import encoded
from relayd.http.models.service import EventsQuery
from relayd.http.route import EVENT_STREAM, RequestContext, route
from relayd.store.events import Event

HEARTBEAT_S = 15.0
WRITE_TIMEOUT_S = 30.0
"""How long a reader may leave events unread."""


@route("GET", "/v1/events", "read", query=EventsQuery, media_type=EVENT_STREAM)
async def get_events(context: RequestContext) -> web.StreamResponse:
    """Stream events (server-sent events).

    New snapshots, progress of campaigns, links that fail and recover; each `data` has `id`,
    `at_s`, `kind`, `subject` and `detail`. Begins with what comes next; with `Last-Event-ID` or
    `after`, with what came after that one.
    """
    stream = context.service.events
    with stream.reader():
        last_id = _last_seen(context)
        if last_id is None:
            last_id = await stream.last_id()
        response = web.StreamResponse(
            headers={
                hdrs.CONTENT_TYPE: EVENT_STREAM,
                "X-Accel-Buffering": "no",  # nginx would hold events back
            }
        )
        try:
            await response.prepare(context.request)
            await _write(response, b": these are events of relayd\nretry: 3000\n\n")
            while not stream.is_closed:
                events = await stream.after(last_id)
                if events:
                    last_id = events[-1].id
                    await _write(response, b"".join(_framed(event) for event in events))
                    continue
                waited = asyncio.get_running_loop().time()
                await stream.wait(last_id, HEARTBEAT_S)
                if asyncio.get_running_loop().time() - waited >= HEARTBEAT_S:
                    await _write(response, b": still here\n\n")
        except (ConnectionError, TimeoutError):
            pass  # the reader has gone; it says where to go on when it is back
        return response


async def _write(response: web.StreamResponse, content: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(content)


def _framed(event: Event) -> bytes:
    # The name is a line of its own: what would break it is left out.
    name = "".join(c for c in event.kind if c.isalnum() or c in "-_.")
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.id, name.encode(), encoded(event))


def _last_seen(context: RequestContext) -> int | None:
    text = context.request.headers.get("Last-Event-ID", "").strip()
    if not text:
        after: int | None = context.query.after
        return after
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InputError("Last-Event-ID", "is not the id of an event", value=text[:50])
    return int(text)
