"""``/v1/regions``: the regions of the graph, and the names they go by."""

from __future__ import annotations

from aiohttp import web

from planner.model.document import aliases_by_region, region_as_json
from relayd.http.models.network import Regions
from relayd.http.responses.responses import encoded, tagged_answer
from relayd.http.routes.table import Ask, Route
from relayd.http.server.current_state import Current


async def get_regions(ask: Ask) -> web.Response:
    """List regions and aliases."""
    current = ask.service.current
    body = current.page("regions", lambda: _regions(current))
    return tagged_answer(ask.request, body, current.snapshot)


def _regions(current: Current) -> bytes:
    wan = current.wan
    sites = wan.sites()
    aliases = aliases_by_region(wan.catalogue)
    listed = [
        region_as_json(region, sites[region.id].vm_type, aliases.get(region.id, []))
        for region in wan.regions()
    ]
    named = {alias: list(members) for alias, members in wan.catalogue.aliases.items()}
    return encoded({"snapshot": current.snapshot, "regions": listed, "aliases": named})


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
)
