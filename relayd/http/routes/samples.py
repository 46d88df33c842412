"""``POST /v1/samples``: measurements from elsewhere, each kept once."""

from __future__ import annotations

import asyncio

from aiohttp import web
from pydantic import ValidationError

from planner.model.errors import InputError
from relayd.http.models.measuring import INGEST_ANSWER, SampleGiven, SamplesGiven
from relayd.http.problems import ProblemError, invalid
from relayd.http.reading import check_media_type, read_bytes, read_json, read_parts
from relayd.http.responses import JSON, document_response
from relayd.http.route import NDJSON, RequestContext, route
from relayd.http.routes.sample_rows import SampleRows
from relayd.http.settings import ServiceSettings
from relayd.store.samples.ingest import Batch, Limits, ingest
from relayd.store.tokens import Token

ORIGIN = "service"


@route(
    "POST",
    "/v1/samples",
    "ingest",
    body=SamplesGiven,
    example={
        "samples": [
            {
                "src": "aws:us-east-1",
                "dst": "aws:sa-east-1",
                "metric": "rtt_ms",
                "value": 114.2,
                "measured_at_s": 1700000000,
            }
        ]
    },
    raw_body=True,
    body_types=(JSON, NDJSON),
    answer=INGEST_ANSWER,
    also_schemas=(SampleGiven,),
)
async def post_samples(context: RequestContext) -> web.Response:
    """Send measurements.

    Samples in one JSON document, or one a line (NDJSON) as a stream. A sample that is there
    already is a duplicate, so sending again after a lost answer is safe. All samples of a
    request are stored together; wrong ones, and those of regions that the operator has not
    declared, are rejected with their reasons. Those that can't be measurements (above the
    network card of a VM type, faster than light, in the future) are kept in quarantine, and
    nothing rests on them. A request with which its token would report more series (metrics of
    links) than it may is refused whole.
    """
    service = context.service
    rows = await _rows(context)
    accepted = duplicates = 0
    batch_id = None
    if rows.samples or rows.apart:
        token = service.access.token(context.request)
        limits = _limits(service.settings, token)
        batch = Batch(
            ORIGIN,
            "live",
            reporter=token.name if token else "",
            address=context.request.remote or "",
        )
        try:
            report = await service.store.write(
                lambda store: ingest(store, batch, [*rows.samples, *rows.apart], limits=limits)
            )
        except InputError:
            service.metrics.ingested(over_limit=len(rows.samples) + len(rows.apart))
            raise
        accepted, duplicates, batch_id = report.accepted, report.duplicates, report.batch_id
    service.metrics.ingested(
        accepted=accepted, duplicate=duplicates, rejected=rows.rejected, quarantined=len(rows.apart)
    )
    if accepted:
        service.snapshots.want()
    if rows.rejected and not (rows.samples or rows.apart):
        raise ProblemError(
            422,
            "input",
            f"None of the {rows.rejected} samples can be used; the first: "
            f"{rows.rejections[0]['reason']}",
            rejections=rows.rejections,
        )
    content = {
        "accepted": accepted,
        "duplicates": duplicates,
        "rejected": rows.rejected,
        "rejections": rows.rejections,
        "quarantined": len(rows.apart),
        "quarantine": rows.quarantine,
        "batch_id": batch_id,
    }
    return document_response(service.current.snapshot, content)


def _limits(settings: ServiceSettings, token: Token | None) -> Limits:
    series = settings.max_series
    if token and token.max_series is not None:
        series = token.max_series
    return Limits(settings.max_regions, settings.max_setups, series)


async def _rows(context: RequestContext) -> SampleRows:
    settings, request = context.service.settings, context.request
    # The first one of a catalogue takes a tenth of a second: others are answered meanwhile.
    gate = await asyncio.to_thread(lambda: context.service.current.gate)
    rows = SampleRows(context.service.is_declared, gate.fault)
    if check_media_type(request, (JSON, NDJSON)) == JSON:
        content = await read_bytes(request, int(settings.body_mb * 1e6), settings.read_timeout_s)
        await asyncio.to_thread(_read_document, content, rows)
        return rows
    left = b""
    async for part in read_parts(
        request, int(settings.samples_mb * 1e6), settings.stream_timeout_s
    ):
        *lines, left = (left + part).split(b"\n")
        if lines:
            # Some hundred lines take milliseconds: others are answered meanwhile.
            await asyncio.to_thread(rows.add_lines, lines)
    rows.add_lines([left] if left else [])
    return rows


def _read_document(content: bytes, rows: SampleRows) -> None:
    try:
        given = SamplesGiven.model_validate(read_json(content), strict=True)
    except ValidationError as error:
        raise invalid(error) from None
    rows.add(given.samples)
