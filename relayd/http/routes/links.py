"""``/v1/links`` and ``/v1/matrix``: estimates and samples of links."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Any

from aiohttp import web

from planner.model.catalogue import Region
from planner.model.document import estimate_as_json, link_as_json
from planner.model.errors import DataError
from planner.model.link import Link, Site
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from probes.analysis.geodesic import GLASS, propagation
from relayd.http.answers import encoded, matrix_bytes
from relayd.http.current_state import Current
from relayd.http.models.common import attributes_as
from relayd.http.models.network import (
    CAPS,
    HISTORY,
    LINK_ANSWER,
    LINKS,
    MATRIX_ANSWER,
    HistoryQuery,
    LinksQuery,
    MatrixQuery,
)
from relayd.http.problems import ProblemError
from relayd.http.responses import (
    document_response,
    page_of,
    position,
    tagged_response,
    whole_position,
)
from relayd.http.route import RequestContext, route
from relayd.http.routes.link_evidence import finite_as_json, pair_of, samples_as_json

# How long ages of samples are answered as they were.
AGES_STAND_S = 60


@route("GET", "/v1/links", "read", query=LinksQuery, answer=LINKS, etag=True)
async def get_links(context: RequestContext) -> web.Response:
    """List links with their estimates.

    By source and destination. Bounds are widened for age.
    """
    current, query = context.service.current, context.query
    src = current.wan.resolve(query.src, "src").region_id if query.src else None
    dst = current.wan.resolve(query.dst, "dst").region_id if query.dst else None
    after = position(query.cursor, 2)
    links = _links_after(
        (after[0], after[1]) if after else None, current.wan.network, src, dst, query
    )
    # Among many regions it may take a while to find a page: others are answered meanwhile.
    page = await asyncio.to_thread(lambda: list(islice(links, query.limit + 1)))
    page, next_cursor = page_of(page, query.limit, _ends)
    content = {
        "snapshot": current.snapshot,
        "links": [link_as_json(link) for link in page],
        "next_cursor": next_cursor,
    }
    return tagged_response(context.request, encoded(content), current.snapshot)


@route("GET", "/v1/links/{src}/{dst}", "read", answer=LINK_ANSWER, statuses=(404,), etag=True)
async def get_link(context: RequestContext) -> web.Response:
    """Show one link."""
    current = context.service.current
    link = _link(context)
    catalogue, network = current.catalogue, current.wan.network
    body = encoded(
        {
            "snapshot": current.snapshot,
            "link": link_as_json(link),
            "sender": _caps(network.sites[link.src], link),
            "receiver": _caps(network.sites[link.dst], link),
            "usd_per_gb": _usd_per_gb(current, link),
            "light": _light(catalogue.region(link.src), catalogue.region(link.dst), link),
            "state": network.states.get((link.src, link.dst)),
        }
    )
    return tagged_response(context.request, body, current.snapshot)


@route("GET", "/v1/links/{src}/{dst}/history", "read", query=HistoryQuery, answer=HISTORY)
async def get_link_history(context: RequestContext) -> web.Response:
    """List the samples of a link.

    In the order in which they arrived.
    """
    service, query = context.service, context.query
    src, dst = pair_of(context)
    after = whole_position(query.cursor)
    rows = await service.store.read(
        lambda store: samples_as_json(
            store.samples.page(src, dst, query.metric, after_id=after, limit=query.limit + 1)
        )
    )
    page, next_cursor = page_of(rows, query.limit, lambda row: (row["id"],))
    return document_response(
        service.current.snapshot, {"samples": page, "next_cursor": next_cursor}
    )


@route("GET", "/v1/matrix", "read", query=MatrixQuery, answer=MATRIX_ANSWER, etag=True)
async def get_matrix(context: RequestContext) -> web.Response:
    """Return one figure for all pairs."""
    current, query = context.service.current, context.query
    # The number of connections matters to one figure only.
    connections = query.connections if query.metric == "relay-gain" else 64
    key = f"matrix {query.metric} {connections} {query.measured_only} {query.digits}"
    if query.metric == "age":
        key += f" {time.time() // AGES_STAND_S:.0f}"
    body = current.plans.get(key)
    if body is None:
        body = await context.service.workers.ask(
            current.version,
            matrix_bytes,
            query.metric,
            connections,
            query.measured_only,
            query.digits,
        )
        current.plans.keep(key, body)
    return tagged_response(context.request, body, current.snapshot)


def _link(context: RequestContext) -> Link:
    src, dst = pair_of(context)
    try:
        return context.service.current.wan.network.link(src, dst)
    except DataError as error:
        raise ProblemError(404, "data", str(error)) from None


def _caps(site: Site, link: Link) -> dict[str, Any]:
    return attributes_as(
        CAPS,
        site,
        egress_gbps=finite_as_json(site.egress(link.address)),
        ingress_gbps=finite_as_json(site.ingress(link.address)),
        window_mb=estimate_as_json(site.window_mb),
    )


def _usd_per_gb(current: Current, link: Link) -> float | None:
    prices = CataloguePrices(current.catalogue, current.wan.network)
    try:
        return prices.egress_usd_per_gb(link.src, link.dst, 1.0)
    except DataError:
        return None  # a provider without prices


def _light(src: Region, dst: Region, link: Link) -> dict[str, Any] | None:
    found = propagation(src, dst, link.rtt_ms.expected)
    if found is None:
        return None
    return {
        "distance_km": found.distance_km,
        "vacuum_ms": found.bound_ms,
        "fibre_ms": found.bound_ms * GLASS,
        "stretch": found.stretch if found.stretch < inf else None,
        "possible": found.possible,
    }


def _links_after(
    after: tuple[str, str] | None,
    network: Network,
    src: str | None,
    dst: str | None,
    query: LinksQuery,
) -> Iterator[Link]:
    """Yield the links that are asked for, by source and destination."""
    targets = sorted(network.sites) if dst is None else [dst]
    links = network.links
    for source in sorted(network.sites) if src is None else [src]:
        if source not in links or (after and source < after[0]):
            continue
        wanted = targets
        if query.provider and query.provider != provider_of(source):
            wanted = [target for target in wanted if provider_of(target) == query.provider]
        if after and source == after[0]:
            wanted = [target for target in wanted if target > after[1]]
        found = {link.dst: link for link in links.out_of(source)}
        for target in wanted:
            link = found.get(target)
            if link and query.source in (None, "", link.aggregate_gbps.source):
                yield link


def _ends(link: Link) -> tuple[str, str]:
    return link.src, link.dst
