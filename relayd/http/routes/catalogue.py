"""``/v1/catalogue``: what is known without measuring, for clients that decide by themselves."""

from __future__ import annotations

from aiohttp import web

from relayd.catalogue.loading import content_of
from relayd.http.models.network import CatalogueAnswer
from relayd.http.responses.responses import encoded, tagged_answer
from relayd.http.routes.table import Ask, Route


async def get_catalogue(ask: Ask) -> web.Response:
    """Return regions, aliases, VM types and prices."""
    current = ask.service.current
    content = {"snapshot": current.snapshot, "digest": current.catalogue.digest}
    body = current.page(
        "catalogue", lambda: encoded({**content, "catalogue": content_of(current.catalogue)})
    )
    return tagged_answer(ask.request, body, current.snapshot)


ROUTES = (
    Route(
        "GET",
        "/v1/catalogue",
        get_catalogue,
        "Return regions, VM types and prices",
        "read",
        "What `relayd.open(url, mirror=True)` copies beside the graph.",
        answer=CatalogueAnswer,
        etag=True,
    ),
)
