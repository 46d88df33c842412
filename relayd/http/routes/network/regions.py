"""``/v1/regions`` and ``/v1/catalogue``: regions and their names, VM types and prices."""

from __future__ import annotations

from aiohttp import web

from planner.model.document import regions_as_json
from relayd.catalogue.loading import content_of
from relayd.http.models.network import CatalogueAnswer, Regions
from relayd.http.responses.encoding import encoded
from relayd.http.responses.json_responses import tagged_response
from relayd.http.route import RequestContext, Route
from relayd.http.server.current_state import Current


async def get_regions(context: RequestContext) -> web.Response:
    """List regions and aliases."""
    current = context.service.current
    body = current.page("regions", lambda: _regions(current))
    return tagged_response(context.request, body, current.snapshot)


def _regions(current: Current) -> bytes:
    wan = current.wan
    listed = regions_as_json(wan.regions(), wan.sites(), wan.catalogue)
    named = {alias: list(members) for alias, members in wan.catalogue.aliases.items()}
    return encoded({"snapshot": current.snapshot, "regions": listed, "aliases": named})


async def get_catalogue(context: RequestContext) -> web.Response:
    """Return regions, aliases, VM types and prices."""
    current = context.service.current
    content = {"snapshot": current.snapshot, "digest": current.catalogue.digest}
    body = current.page(
        "catalogue", lambda: encoded({**content, "catalogue": content_of(current.catalogue)})
    )
    return tagged_response(context.request, body, current.snapshot)


ROUTES = (
    Route(
        "GET",
        "/v1/regions",
        get_regions,
        "List regions and aliases",
        "read",
        answer=Regions,
        etag=True,
    ),
    Route(
        "GET",
        "/v1/catalogue",
        get_catalogue,
        "Return regions, VM types and prices",
        "read",
        "`relayd.open(url, mirror=True)` copies it together with the network.",
        answer=CatalogueAnswer,
        etag=True,
    ),
)
