"""``/docs``: the API for people; the page loads nothing from other hosts."""

from __future__ import annotations

import asyncio

from aiohttp import hdrs, web

from relayd.dashboard.pages import HTML, POLICY
from relayd.http.route import RequestContext, Route


async def get_docs(context: RequestContext) -> web.Response:
    """Return the page."""
    headers = {
        hdrs.CONTENT_TYPE: HTML,
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": POLICY,
    }
    content = await asyncio.to_thread(context.service.documentation)
    return web.Response(body=content, headers=headers)


ROUTES = (Route("GET", "/docs", get_docs, "This documentation", media_type="text/html"),)
