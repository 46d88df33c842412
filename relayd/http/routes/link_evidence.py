"""``/v1/links/{src}/{dst}/``: summary, events and evidence of one link."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from aiohttp import web

from planner.model.document import estimate_as_json
from planner.model.errors import DataError, InputError
from planner.model.estimate import Estimate
from planner.model.network import Snapshot
from probes.analysis.binning import bins, histogram, joined
from probes.samples import Samples
from relayd.http.answers import encoded
from relayd.http.models.common import attributes_as
from relayd.http.models.network import (
    EVIDENCE,
    EVIDENCE_SERIES,
    LEAST_FOR_SHAPE,
    LINK_EVENT,
    LINK_EVENTS,
    LINK_EVIDENCE,
    LINK_SUMMARY,
    LinkEventsQuery,
    SummaryQuery,
)
from relayd.http.problems import ProblemError
from relayd.http.responses import document_response, json_response, page_of, position
from relayd.http.route import RequestContext, route
from relayd.snapshots.link_evidence import FigureEvidence, SeriesEvidence, evidence_of
from relayd.store.links.events import NEWEST, Position, link_events
from relayd.store.links.series import link_series, metrics_seen
from relayd.store.opening import Store


@route("GET", "/v1/links/{src}/{dst}/summary", "read", query=SummaryQuery, answer=LINK_SUMMARY)
async def get_link_summary(context: RequestContext) -> web.Response:
    """Sum up the samples of a link over time.

    Medians and ranges by stretches of time, and the distribution, of one metric; and which
    metrics there are.
    """
    service, query = context.service, context.query
    src, dst = pair_of(context)
    if None not in (query.since_s, query.until_s) and query.until_s < query.since_s:
        raise InputError(
            "until_s", "is before since_s", value=query.until_s, remedy="Swap the two."
        )
    snapshot = service.current.snapshot
    body = await service.store.read(lambda store: _summary(store, snapshot, src, dst, query))
    return json_response(body, snapshot)


def _summary(store: Store, snapshot: Snapshot, src: str, dst: str, query: SummaryQuery) -> bytes:
    series = link_series(
        store.database,
        src,
        dst,
        query.metric,
        since_s=-inf if query.since_s is None else query.since_s,
        until_s=inf if query.until_s is None else query.until_s,
    )
    values, compacted = series.samples.median, int(series.compacted.samples.sum())
    listed = None
    if not compacted and len(values) <= query.list_up_to:
        listed = [
            {"at_s": at_s, "value": value, "connections": connections or None}
            for at_s, value, connections in zip(
                series.samples.begin_s.tolist(),
                values.tolist(),
                series.connections.tolist(),
                strict=True,
            )
        ]
    shares = np.linspace(0, 1, min(101, len(values)))
    content = {
        "snapshot": snapshot,
        "src": src,
        "dst": dst,
        "metric": query.metric,
        "metrics": [seen._asdict() for seen in metrics_seen(store.database, src, dst)],
        "samples": len(values) + compacted,
        "compacted": compacted,
        "bins": [
            found._asdict() for found in bins(joined(series.samples, series.compacted), query.bins)
        ],
        "points": listed,
        "histogram": [bar._asdict() for bar in histogram(values)],
        "quantiles": np.quantile(values, shares).tolist() if len(values) else [],
        "has_shape": len(values) >= LEAST_FOR_SHAPE,
    }
    return encoded(content)


@route("GET", "/v1/links/{src}/{dst}/events", "read", query=LinkEventsQuery, answer=LINK_EVENTS)
async def get_link_events(context: RequestContext) -> web.Response:
    """List what happened to a link.

    Changes of level and of its condition, the newest first.
    """
    service, query = context.service, context.query
    src, dst = pair_of(context)
    after = _event_position(query.cursor)
    found = await service.store.read(
        lambda store: link_events(store.database, src, dst, after=after, limit=query.limit + 1)
    )
    page, next_cursor = page_of(found, query.limit, lambda event: (repr(event.at_s), event.number))
    return document_response(
        service.current.snapshot,
        {
            "events": [attributes_as(LINK_EVENT, event) for event in page],
            "next_cursor": next_cursor,
        },
    )


def _event_position(text: str | None) -> Position:
    parts = position(text, 2)
    if parts is None:
        return NEWEST
    try:
        return Position(float(parts[0]), max(-9, min(int(parts[1][:19]), 2**62)))
    except ValueError:
        raise InputError("cursor", "is not one that this path gave", value=text) from None


@route("GET", "/v1/links/{src}/{dst}/evidence", "read", answer=LINK_EVIDENCE, statuses=(404,))
async def get_link_evidence(context: RequestContext) -> web.Response:
    """Show the evidence of each figure of a link.

    The samples that counted, those that were left out, and the rule.
    """
    service, current = context.service, context.service.current
    src, dst = pair_of(context)
    try:
        found = await service.store.read(
            lambda store: evidence_of(store, current.network, current.catalogue, src, dst)
        )
    except DataError as error:
        raise ProblemError(404, "data", str(error)) from None
    except InputError as error:  # the snapshot was pruned; the service takes up the newest soon
        raise ProblemError(503, "unavailable", str(error), headers={"Retry-After": "2"}) from None
    return document_response(
        current.snapshot, {"src": src, "dst": dst, "evidence": [_evidence(each) for each in found]}
    )


def _evidence(found: FigureEvidence) -> dict[str, Any]:
    return attributes_as(
        EVIDENCE,
        found.origin,
        estimate=finite_as_json(found.origin.estimate),
        series=[_series(used) for used in found.used],
        further=found.further,
    )


def _series(used: SeriesEvidence) -> dict[str, Any]:
    return attributes_as(
        EVIDENCE_SERIES,
        used.series,
        samples=samples_as_json(used.samples),
        left_out=used.left_out,
        was_read=used.was_read,
    )


def samples_as_json(samples: Samples) -> list[dict[str, Any]]:
    """Return samples with their numbers in the store."""
    columns = samples, samples.column("id"), samples.column("batch_id")
    return [
        {"id": number, "batch_id": batch_id, **sample._asdict()}
        for sample, number, batch_id in zip(*columns, strict=True)
    ]


def finite_as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate as JSON types; None for the cap of a VM of which nothing is known."""
    if estimate is None or estimate.expected == inf:
        return None
    return estimate_as_json(estimate)


def pair_of(context: RequestContext) -> tuple[str, str]:
    """Return the regions that the path names."""
    src, dst, _ = context.service.current.wan.resolve_pair(
        context.request.match_info["src"], context.request.match_info["dst"]
    )
    return src, dst
