"""``/v1/quarantine``: samples that nothing rests on, with the reasons."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from planner.model.errors import UnknownRegionError
from relayd.http.models.samples import Quarantine, QuarantineQuery
from relayd.http.responses.cursors import page_of, whole_position
from relayd.http.responses.json_responses import document_response
from relayd.http.route import RequestContext, Route
from relayd.questions.disputes import DisputedFigure
from relayd.sources.wan import Wan
from relayd.store.samples.quarantine import QuarantinedRow, Wanted, quarantine_reasons, quarantined


async def list_quarantine(context: RequestContext) -> web.Response:
    """List samples in quarantine, and how many there are of each kind."""
    service, query = context.service, context.query
    before_id = whole_position(query.cursor) or None
    wan = service.current.wan
    src, dst = region_meant(wan, query.src, "src"), region_meant(wan, query.dst, "dst")
    wanted = Wanted(query.state, query.reason or "", src or "", dst or "")
    rows, reasons = await service.store.read(
        lambda store: (
            quarantined(store.database, wanted, limit=query.limit + 1, before_id=before_id),
            quarantine_reasons(store.database, wanted),
        )
    )
    page, next_cursor = page_of(rows, query.limit, lambda row: (row.id,))
    current = service.current
    # Some 20,000 links take a moment, once a snapshot: others are answered meanwhile.
    disputed = await asyncio.to_thread(lambda: current.disputes)
    disputed = [figure for figure in disputed if _is_of(figure, src, dst)]
    content = {
        "disputes": [figure.sentence for figure in disputed],
        "disputed": [figure._asdict() for figure in disputed],
        "reasons": [reason._asdict() for reason in reasons],
        "samples": [_seen(row) for row in page],
        "next_cursor": next_cursor,
    }
    return document_response(current.snapshot, content)


def region_meant(wan: Wan, name: str | None, field: str) -> str | None:
    """Return the region that a name stands for, where one is given.

    An id may be of none that is known: nothing is known of those whose samples do not count.

    Raises
    ------
    UnknownRegionError, AmbiguousRegionError
        If another name stands for none or for several.
    """
    try:
        return wan.resolve(name, field).region_id if name else None
    except UnknownRegionError:
        if name and ":" in name:
            return name
        raise


def _is_of(figure: DisputedFigure, src: str | None, dst: str | None) -> bool:
    """Whether a figure is of the links from and to a region, or of a VM at their ends."""
    if figure.src == figure.dst and (src or dst):
        return figure.src in (src, dst)
    return src in (None, figure.src) and dst in (None, figure.dst)


def _seen(row: QuarantinedRow) -> dict[str, Any]:
    sample = row.sample
    return {
        "id": row.id,
        "reason": row.reason,
        "batch_id": row.batch_id,
        "batch": row.batch,
        "token": row.reporter or None,
        "arrived_at_s": row.arrived_at_s,
        "src": sample.src,
        "dst": sample.dst,
        "metric": sample.metric,
        "value": sample.value,
        "measured_at_s": sample.measured_at_s,
        "tool": sample.tool,
        "connections": sample.connections,
        "src_vm": sample.src_vm,
        "dst_vm": sample.dst_vm,
        "decided_by": row.decided_by,
        "decided_at_s": row.decided_at_s,
        "decided_because": row.decided_because,
        "accepted_in": row.accepted_in,
    }


ROUTES = (
    Route(
        "GET",
        "/v1/quarantine",
        list_quarantine,
        "List samples that nothing rests on, the newest first",
        "read",
        "Those that can't be measurements by the catalogue, with the reason and who sent them, and "
        "how many there are for each kind of reason. `reason` chooses one kind.",
        query=QuarantineQuery,
        answer=Quarantine,
        statuses=(422,),
    ),
)
