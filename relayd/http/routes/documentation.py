"""``/docs``: the API for people; the page loads nothing from other hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import hdrs, web

from relayd.http.route import RequestContext, Route

PAGES = Path(__file__).resolve().parents[1] / "pages"
# Only own files: no inline script or style, nothing from another host.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HTML, JAVASCRIPT, CSS = "text/html", "text/javascript", "text/css"


async def get_docs(context: RequestContext) -> web.Response:
    """Return the page."""
    return _text(await asyncio.to_thread(context.service.documentation), HTML)


async def get_docs_script(context: RequestContext) -> web.Response:  # noqa: ARG001
    """Return the script by which the page sends requests."""
    return _text((PAGES / "docs.js").read_bytes(), JAVASCRIPT)


async def get_docs_style(context: RequestContext) -> web.Response:  # noqa: ARG001
    """Return the style of the page."""
    return _text((PAGES / "docs.css").read_bytes(), CSS)


def _text(content: bytes, kind: str) -> web.Response:
    headers = {
        hdrs.CONTENT_TYPE: f"{kind}; charset=utf-8",
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": POLICY,
    }
    return web.Response(body=content, headers=headers)


ROUTES = (
    Route("GET", "/docs", get_docs, "This documentation", media_type=HTML),
    Route(
        "GET", "/docs.js", get_docs_script, "Its script", media_type=JAVASCRIPT, documented=False
    ),
    Route("GET", "/docs.css", get_docs_style, "Its style", media_type=CSS, documented=False),
)
