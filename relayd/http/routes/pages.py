"""The pages of the dashboard and the files that they load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from relayd.dashboard.assets import Asset, assets, charts
from relayd.dashboard.pages import HTML, PAGES, POLICY, SIGN_IN, Page, rendered
from relayd.http.problems import ProblemError
from relayd.http.responses import compressed, known_response
from relayd.http.route import RequestContext, Route, route

HTML_TYPE, JAVASCRIPT = "text/html", "text/javascript"


def _shows(page: Page) -> Callable[[RequestContext], Awaitable[web.Response]]:
    async def get_page(context: RequestContext) -> web.Response:
        """Return a page; its script asks for figures with the reader's token."""
        return _sent(context, rendered(page))

    return get_page


@route("GET", "/assets/{folder}/{name}", media_type=JAVASCRIPT, documented=False)
async def get_asset(context: RequestContext) -> web.Response:
    """Return a script, a style or the outline of the world."""
    known = assets().get("{folder}/{name}".format_map(context.request.match_info))
    if known is None:
        raise ProblemError(404, "not-found", "The dashboard has no such file.")
    return _sent(context, known)


@route("GET", "/assets/charts.js", media_type=JAVASCRIPT, documented=False)
async def get_charts(context: RequestContext) -> web.Response:
    """Return what draws charts."""
    known = await asyncio.to_thread(charts)
    if known is None:
        raise ProblemError(
            404, "not-found", "Charts need the extra `report`: pip install 'relayd[report]'."
        )
    return _sent(context, known)


@route("GET", "/docs", media_type=HTML_TYPE)
async def get_docs(context: RequestContext) -> web.Response:
    """Describe the API to people."""
    headers = {
        hdrs.CONTENT_TYPE: HTML,
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": POLICY,
    }
    content = await asyncio.to_thread(context.service.documentation)
    return web.Response(body=content, headers=headers)


def _sent(context: RequestContext, found: Asset) -> web.Response:
    headers = {hdrs.CACHE_CONTROL: "no-cache", "Content-Security-Policy": POLICY}
    if known := known_response(context.request, found.tag, headers):
        return known
    headers[hdrs.CONTENT_TYPE] = found.media_type
    return compressed(web.Response(body=found.content, headers=headers), found.tag)


ROUTES = (
    *(
        Route(
            "GET",
            page.path,
            _shows(page),
            page.summary,
            media_type=HTML_TYPE,
            operation_id=f"get_{page.name}_page",
            documented=False,
        )
        for page in (*PAGES, SIGN_IN)
    ),
)
