"""``/v1/fleet`` and ``/v1/sites``: hosts, and caps of VMs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web

from planner.model.catalogue import Catalogue
from planner.model.document import site_as_json
from probes.fleet.hosts import Host
from relayd.campaigns.caps import cap_json, measured_caps
from relayd.http.answers import encoded
from relayd.http.campaigns.supervisor import fleet_of
from relayd.http.current_state import Current
from relayd.http.models.common import attributes_as
from relayd.http.models.measuring import FLEET_ANSWER, FLEET_HOST, REFERENCE_CAPS, SITES
from relayd.http.problems import ProblemError
from relayd.http.responses import document_response, tagged_response
from relayd.http.route import RequestContext, route
from relayd.store.links.states import LinkStates


@route("GET", "/v1/fleet", "read", answer=FLEET_ANSWER)
async def get_fleet(context: RequestContext) -> web.Response:
    """List the hosts of the fleet, and problems.

    Hosts of the fleet file without what logging in takes; measured caps of single VMs; links
    that are down or degraded.
    """
    service = context.service
    current = service.current
    path = service.settings.fleet
    fleet: Iterable[Host] = ()
    problem = ""
    if path is not None:
        try:
            fleet = await asyncio.to_thread(fleet_of, path)
        except ProblemError as error:  # the rest is answered all the same
            problem = str(error)
    watch = service.watcher.status() or {}
    caps, states = await service.store.read(
        lambda store: (
            measured_caps(store, current.catalogue),
            LinkStates(store.database).now(time.time()),
        )
    )
    why_not = service.campaigns.refusal()
    if not why_not and not service.access.may(context.request, "probe"):
        why_not = "This needs a token with the scope 'probe'."
    content = {
        "configured": path is not None,
        "problem": problem,
        "hosts": [_host(host, watch) for host in fleet],
        "vm_caps": [cap_json(cap) for cap in caps],
        "leg_states": list(states.values()),
        "may_start_campaigns": not why_not,
        "why_not": why_not,
    }
    return document_response(current.snapshot, content)


def _host(host: Host, watch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host without what logging in takes; the watcher speaks of regions."""
    return attributes_as(
        FLEET_HOST,
        host,
        unreachable=watch.get("unreachable", {}).get(host.region),
        remedy=watch.get("remedies", {}).get(host.region) or None,
    )


@route("GET", "/v1/sites", "read", answer=SITES, etag=True)
async def get_sites(context: RequestContext) -> web.Response:
    """List the caps of all regions.

    Of one VM in each region, beside what the catalogue says of its type. Bounds are widened for
    age.
    """
    current = context.service.current
    body = current.page("sites", lambda: _sites(current))
    return tagged_response(context.request, body, current.snapshot)


def _sites(current: Current) -> bytes:
    sites = [
        {**site_as_json(site), "reference": _reference(current.catalogue, site.vm_type)}
        for site in current.wan.network.sites.values()
    ]
    return encoded({"snapshot": current.snapshot, "sites": sites})


def _reference(catalogue: Catalogue, vm_type: str) -> dict[str, object] | None:
    known = catalogue.vm_types.get(vm_type)
    return None if known is None else attributes_as(REFERENCE_CAPS, known)
