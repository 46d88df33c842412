"""``/v1/links`` and ``/v1/matrix``: estimates of links, their samples, events and evidence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from planner.fields.shared import DEFAULT_CONNECTIONS, MOST_CONNECTIONS
from planner.model.document import as_json, estimate_as_json
from planner.model.errors import DataError, InputError
from planner.model.estimate import Estimate, Figures, Kind, Origin, Prior, RateCut
from planner.model.link import Link, Site
from planner.model.link_states import LinkState
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, provider_of
from probes.analysis.binning import bins, histogram, joined
from probes.analysis.geodesic import propagation
from probes.metrics import Metric
from probes.samples import Sample, Samples
from relayd.http.answers import encoded, matrix_bytes, pairs_bytes
from relayd.http.models import (
    Name,
    Page,
    Period,
    RequestModel,
    answer,
    attributes_as,
    many,
    model_of,
    page,
)
from relayd.http.problems import ProblemError
from relayd.http.route import RequestContext, page_of, position, route
from relayd.snapshots.link_evidence import FigureEvidence, evidence_of
from relayd.store.links import NEWEST, LinkEvent, link_events, link_series, metrics_seen
from relayd.store.opening import Store
from relayd.tables.figures import PairKind

MatrixMetric: TypeAlias = Literal[
    "per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age"
]
MOST_BINS = 1000
MOST_LISTED = 5000
LEAST_FOR_SHAPE = 8
"""Fewer samples have no distribution worth showing."""
AGES_STAND_S = 60
"""Time for which ages of samples are answered as they were."""

ESTIMATED = model_of(
    "Estimated",
    "What every estimate has.",
    source=Kind,
    measured_at_s=(float | None, "Of the newest sample, seconds since 1970 (UTC)."),
    samples=(int, "How many samples of this very quantity it rests on."),
    basis=(str, "In words, for people, what it was made from."),
    prior=(model_of("EstimatePrior", Prior) | None, "Null where it fades around itself, or never."),
    origin=model_of(
        "EstimateOrigin",
        "From what an estimate was made; keys that are missing are null or 0.",
        Origin,
        sparse=True,
        figures=model_of(
            "EstimateFigures",
            "The figures that an estimate was made with; those that its method has none of "
            "are missing.",
            Figures,
            sparse=True,
            rate_cut=model_of("RateCut", RateCut) | None,
        )
        | None,
    ),
)
ESTIMATE = model_of(
    "Estimate",
    "What is believed of one quantity; nine of ten later tests lie between low and high.",
    base=ESTIMATED,
    low=float,
    expected=float,
    high=float,
)
CAP = model_of(
    "Cap",
    "What one VM can do at most; null where nothing is known of its type.",
    base=ESTIMATED,
    low=float | None,
    expected=float | None,
    high=float | None,
)

SITE = model_of(
    "Site",
    Site,
    without=("vms", "quotas"),
    egress_gbps=CAP,
    ingress_gbps=CAP,
    window_mb=ESTIMATE,
    private_egress_gbps=(ESTIMATE | None, "Over private addresses; null for no difference."),
    private_ingress_gbps=ESTIMATE | None,
)

LINK = model_of("Link", Link, rtt_ms=ESTIMATE, per_flow_mbps=ESTIMATE, aggregate_gbps=ESTIMATE)


class LinksQuery(Page):
    """Which links."""

    src: Name | None = Field(None, description="Only links out of this region or alias.")
    dst: Name | None = Field(None, description="Only links into this region or alias.")
    provider: Name | None = Field(None, description="Only links with an end at this provider.")
    source: Kind | None = Field(None, description="Only throughput of this source.")


LINKS = page("Links", "A page of links.", links=many(LINK))
CAPS = model_of(
    "Caps",
    "The VM at one end of a link.",
    region=str,
    vm_type=(str, "As `provider:type`; empty where none is known."),
    egress_gbps=(ESTIMATE | None, "Over the link's kind of address; null for unknown."),
    ingress_gbps=ESTIMATE | None,
    window_mb=ESTIMATE,
)
LINK_ANSWER = answer(
    "LinkAnswer",
    "One link, the VMs at its ends, and what it costs.",
    link=LINK,
    sender=CAPS,
    receiver=CAPS,
    usd_per_gb=(float | None, "First-tier egress; null without prices."),
    light=(
        model_of(
            "Light",
            "A link's round-trip time against light on the shortest way over the globe.",
            distance_km=(float, "Along the great circle."),
            vacuum_ms=(float, "There and back at the speed of light: the bound."),
            fibre_ms=(float, "The same in a straight fibre (1.468 times as long)."),
            stretch=(float | None, "Round-trip time over that of the fibre; null for no distance."),
            possible=(bool, "False where the time is below the bound."),
        )
        | None,
        "Null where a place is not known.",
    ),
    state=(LinkState | None, "Where it is down or degraded now."),
)


class HistoryQuery(Page):
    """Which samples of a link."""

    metric: Metric | None = Field(None, description="Only this metric.")


SAMPLE = model_of(
    "SampleSeen",
    Sample,
    id=int,
    batch_id=int,
    value=(float, "In the unit that the metric's name ends in."),
    detail=(str, "JSON object with further output of the tool, or empty."),
)
HISTORY = page("History", "A page of samples, the oldest first.", samples=many(SAMPLE))


class SummaryQuery(Period):
    """Of what to sum up the samples of a link."""

    metric: Metric = "rtt_ms"
    bins: int = Field(200, ge=1, le=MOST_BINS, description="Into how many stretches of time.")
    list_up_to: int = Field(0, ge=0, le=MOST_LISTED, description="List so many samples, too.")


class MatrixQuery(RequestModel):
    """Which figure for all pairs."""

    metric: MatrixMetric = "aggregate"
    connections: int = Field(
        DEFAULT_CONNECTIONS,
        ge=1,
        le=MOST_CONNECTIONS,
        description="For `relay-gain`: TCP connections that a VM opens.",
    )
    measured_only: bool = Field(False, description="Leave out regions without measurements.")
    digits: int | None = Field(None, ge=1, le=15, description="Round to so many; null for all.")


MATRIX_ANSWER = answer(
    "MatrixAnswer",
    "One figure for every pair of regions, row to column.",
    metric=MatrixMetric,
    unit=str,
    regions=list[str],
    values=(list[list[float | None]], "Null where nothing is known."),
    sources=(list[list[Kind | None]] | None, "Of each value; null for what is no estimate."),
)


class PairsQuery(RequestModel):
    """Which pairs of regions."""

    kind: PairKind = Field(
        description="`relayed`: 1 TB may go better by a relay than direct, one VM a region, an "
        "hour at 20 USD; `unmeasured`: throughput was never measured; `unsampled`: nothing was; "
        "`old`: throughput was, too long ago to rely on; `disputed`: a figure is in dispute."
    )


@route("GET", "/v1/links", "read", LINKS, query=LinksQuery, etag=True)
async def get_links(context: RequestContext) -> bytes:
    """List links with their estimates.

    By source and destination. Bounds are widened for age.
    """
    current, query = context.current, context.query
    src, dst = (
        current.wan.resolve(name, end).region_id if name else None
        for name, end in ((query.src, "src"), (query.dst, "dst"))
    )
    after = tuple(position(query.cursor, str, str) or ("", ""))
    links = _links_after(after, current.wan.network, src, dst, query)
    # Among many regions it may take a while to find a page: others are answered meanwhile.
    found = await asyncio.to_thread(lambda: list(islice(links, query.limit + 1)))
    page = page_of("links", found, query.limit, lambda link: (link.src, link.dst), as_json)
    return encoded({"snapshot": current.snapshot, **page})


def _links_after(
    after: tuple[str, ...], network: Network, src: str | None, dst: str | None, query: LinksQuery
) -> Iterator[Link]:
    """Yield the links that are asked for, by source and destination."""
    links = network.links
    for source in sorted(network.sites) if src is None else [src]:
        if source not in links or source < after[0]:
            continue
        for link in sorted(links.out_of(source), key=attrgetter("dst")):
            providers = provider_of(source), provider_of(link.dst)
            if (
                (source, link.dst) > after
                and dst in (None, link.dst)
                and query.provider in (None, *providers)
                and query.source in (None, "", link.aggregate_gbps.source)
            ):
                yield link


@route("GET", "/v1/links/{src}/{dst}", "read", LINK_ANSWER, etag=True)
async def get_link(context: RequestContext) -> dict[str, Any]:
    """Show one link.

    Refused (404) where nothing is known of it.
    """
    catalogue, network = context.current.catalogue, context.current.wan.network
    try:
        link = network.link(*pair_of(context))
    except DataError as error:
        raise ProblemError(404, "data", str(error)) from None
    usd_per_gb = None
    with suppress(DataError):  # a provider without prices
        prices = CataloguePrices(catalogue, network)
        usd_per_gb = prices.egress_usd_per_gb(link.src, link.dst, 1.0)
    return {
        "link": as_json(link),
        "sender": _caps(network.sites[link.src], link),
        "receiver": _caps(network.sites[link.dst], link),
        "usd_per_gb": usd_per_gb,
        "light": propagation(
            catalogue.region(link.src), catalogue.region(link.dst), link.rtt_ms.expected
        ),
        "state": network.states.get((link.src, link.dst)),
    }


@route("GET", "/v1/links/{src}/{dst}/history", "read", HISTORY, query=HistoryQuery)
async def get_link_history(context: RequestContext) -> dict[str, Any]:
    """List the samples of a link.

    In the order in which they arrived.
    """
    query, ends = context.query, pair_of(context)
    after = position(query.cursor, int) or 0
    rows = await context.read(
        lambda store: _samples(
            store.samples.page(*ends, query.metric, after_id=after, limit=query.limit + 1)
        )
    )
    return page_of("samples", rows, query.limit, lambda row: (row["id"],))


@route("GET", "/v1/matrix", "read", MATRIX_ANSWER, query=MatrixQuery, etag=True)
async def get_matrix(context: RequestContext) -> bytes:
    """Return one figure for all pairs."""
    query = context.query
    # The number of connections matters to one figure only.
    connections = query.connections if query.metric == "relay-gain" else 64
    asked = query.metric, connections, query.measured_only, query.digits
    key = f"matrix {asked}"
    if query.metric == "age":
        key += f" {time.time() // AGES_STAND_S:.0f}"
    return await context.ask_once(key, matrix_bytes, *asked)


@route("GET", "/v1/pairs", "read", query=PairsQuery, etag=True, internal=True)
async def get_pairs(context: RequestContext) -> bytes:
    """List pairs of regions that deserve a look."""
    kind = context.query.kind
    key = f"pairs {kind}" + (f" {time.time() // AGES_STAND_S:.0f}" if kind == "old" else "")
    return await context.ask_once(key, pairs_bytes, kind)


def _caps(site: Site, link: Link) -> dict[str, Any]:
    return attributes_as(
        CAPS,
        site,
        egress_gbps=_finite_as_json(site.egress(link.address)),
        ingress_gbps=_finite_as_json(site.ingress(link.address)),
        window_mb=estimate_as_json(site.window_mb),
    )


# ---- what is behind a link ---------------------------------------------------------------------


@route("GET", "/v1/links/{src}/{dst}/summary", "read", query=SummaryQuery, internal=True)
async def get_link_summary(context: RequestContext) -> dict[str, Any]:
    """Sum up the samples of a link over time.

    Medians and ranges by stretches of time, and the distribution, of one metric; and which
    metrics there are. Refused (422) where `until_s` is before `since_s`.
    """
    query, (src, dst) = context.query, pair_of(context)
    query.check()
    return await context.read(lambda store: _summary(store, src, dst, query))


def _summary(store: Store, src: str, dst: str, query: SummaryQuery) -> dict[str, Any]:
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
        columns = series.samples.begin_s.tolist(), values.tolist(), series.connections.tolist()
        listed = [
            {"at_s": at_s, "value": value, "connections": connections or None}
            for at_s, value, connections in zip(*columns, strict=True)
        ]
    shares = np.linspace(0, 1, min(101, len(values)))
    return {
        "src": src,
        "dst": dst,
        "metric": query.metric,
        "metrics": metrics_seen(store.database, src, dst),
        "samples": len(values) + compacted,
        "compacted": compacted,
        "bins": list(bins(joined(series.samples, series.compacted), query.bins)),
        "points": listed,
        "histogram": list(histogram(values)),
        "quantiles": np.quantile(values, shares).tolist() if len(values) else [],
        "has_shape": len(values) >= LEAST_FOR_SHAPE,
    }


@route("GET", "/v1/links/{src}/{dst}/events", "read", query=Page, internal=True)
async def get_link_events(context: RequestContext) -> dict[str, Any]:
    """List what happened to a link.

    Changes of level and of its condition, the newest first.
    """
    query, ends = context.query, pair_of(context)
    at_s, number = position(query.cursor, float, int) or NEWEST
    found = await context.read(
        lambda store: link_events(
            store.database, *ends, after=(at_s, number), limit=query.limit + 1
        )
    )
    return page_of("events", found, query.limit, attrgetter("position"), _event)


def _event(event: LinkEvent) -> dict[str, Any]:
    """Return an event without its number, which orders those of one time."""
    shown = asdict(event)
    del shown["number"]
    return shown


@route("GET", "/v1/links/{src}/{dst}/evidence", "read", internal=True)
async def get_link_evidence(context: RequestContext) -> dict[str, Any]:
    """Show the evidence of each figure of a link.

    The samples that counted, those that were left out, and the rule. Refused where nothing is
    known of the link (404), and while a snapshot that was pruned is replaced (503).
    """
    current, (src, dst) = context.current, pair_of(context)
    try:
        found = await context.read(
            lambda store: evidence_of(store, current.network, current.catalogue, src, dst)
        )
    except DataError as error:
        raise ProblemError(404, "data", str(error)) from None
    except InputError as error:  # the snapshot was pruned; the service takes up the newest soon
        raise ProblemError(503, "unavailable", str(error), retry_s=2) from None
    return {"src": src, "dst": dst, "evidence": [_evidence(each) for each in found]}


def _evidence(found: FigureEvidence) -> dict[str, Any]:
    series = [
        {
            **{name: getattr(used.series, name) for name in ("src", "dst", "metric")},
            "samples": _samples(used.samples),
            "left_out": used.left_out,
            "was_read": used.was_read,
        }
        for used in found.used
    ]
    shown = {name: getattr(found.origin, name) for name in found.origin.__slots__}
    estimate = _finite_as_json(found.origin.estimate)
    return shown | {"estimate": estimate, "series": series, "further": found.further}


def _samples(samples: Samples) -> list[dict[str, Any]]:
    """Return samples with their numbers in the store."""
    columns = samples, samples.column("id"), samples.column("batch_id")
    return [
        {"id": number, "batch_id": batch_id, **sample._asdict()}
        for sample, number, batch_id in zip(*columns, strict=True)
    ]


def _finite_as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate as JSON types; None for the cap of a VM of which nothing is known."""
    if estimate is None or estimate.expected == inf:
        return None
    return estimate_as_json(estimate)


def pair_of(context: RequestContext) -> tuple[str, str]:
    """Return the regions that the path names."""
    ends = context.request.match_info
    src, dst, _ = context.current.wan.resolve_pair(ends["src"], ends["dst"])
    return src, dst
