"""``/v1/quarantine``: samples that nothing rests on, with the reasons."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from planner.model.errors import UnknownRegionError
from relayd.http.answers import decision_effects, samples_meant
from relayd.http.models.measuring import (
    DECISION_ANSWER,
    EFFECTS_ANSWER,
    QUARANTINE,
    DecisionRequest,
    QuarantineQuery,
)
from relayd.http.problems import ProblemError
from relayd.http.responses import document_response, page_of, whole_position
from relayd.http.route import RequestContext, route
from relayd.questions.disputes import DisputedFigure
from relayd.sources.wan import Wan
from relayd.store import Store
from relayd.store.samples.decisions import Selection, decide
from relayd.store.samples.quarantine import (
    QuarantinedRow,
    QuarantineFilter,
    accept,
    quarantine_reasons,
    quarantined,
    reject,
)


@route("GET", "/v1/quarantine", "read", query=QuarantineQuery, answer=QUARANTINE)
async def list_quarantine(context: RequestContext) -> web.Response:
    """List samples that nothing rests on, the newest first.

    Those that can't be measurements by the catalogue, with the reason and who sent them, and
    how many there are for each kind of reason. `reason` chooses one kind.
    """
    service, query = context.service, context.query
    before_id = whole_position(query.cursor) or None
    wan = service.current.wan
    src, dst = region_meant(wan, query.src, "src"), region_meant(wan, query.dst, "dst")
    wanted = QuarantineFilter(query.state, query.reason or "", src or "", dst or "")
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


LIMIT_S = 300.0
"""Longest time for effects: all links are estimated twice."""


@route(
    "POST", "/v1/samples/decisions/effects", "admin", body=DecisionRequest, answer=EFFECTS_ANSWER
)
async def post_decision_effects(context: RequestContext) -> web.Response:
    """Show what a decision about samples would change.

    Estimates all links twice, from all samples: with the decision and without. Nothing is
    decided. Where that takes too long, the problem `timeout` has `samples` and `through`.
    """
    service, request = context.service, _request(context)
    workers, path = service.workers, service.store.path
    meant = await workers.ask(service.current.version, samples_meant, path, request)
    effects: dict[str, Any] = {"total": 0, "changed": []}
    if meant["samples"] and request["decision"] != "reject":
        request |= {"through": meant["through"]}
        try:
            async with service.previews.turn():
                effects = await workers.ask_apart(
                    service.current.version, decision_effects, path, request, limit_s=LIMIT_S
                )
        except ProblemError as problem:
            if problem.content["kind"] != "timeout":
                raise
            raise ProblemError(
                503,
                "timeout",
                f"Estimating all links with these samples and without takes longer than the "
                f"{LIMIT_S:g} s that it may. The decision can be made all the same.",
                **meant,
            ) from None
    return document_response(service.current.snapshot, {**meant, **effects})


@route("POST", "/v1/samples/decisions", "admin", body=DecisionRequest, answer=DECISION_ANSWER)
async def post_decision(context: RequestContext) -> web.Response:
    """Decide about samples.

    Accept or reject samples in quarantine, or confirm, retract or restore others. Nothing is
    removed: the decision is kept with who made it, when and why. The next snapshot heeds it.
    """
    service, request = context.service, _request(context)
    who = service.access.holder(context.request) or "anybody"
    address, loop = context.request.remote or "", asyncio.get_running_loop()

    # Here, in the store's thread: it is finished, too, after nobody waits for it any more.
    def write(store: Store) -> tuple[int, int | None]:
        decided = _decided(store, request, who, address)
        if decided[0]:
            loop.call_soon_threadsafe(service.snapshots.want)
        return decided

    samples, batch_id = await service.store.write(write)
    content = {"samples": samples, "batch_id": batch_id}
    return document_response(service.current.snapshot, content)


def _request(context: RequestContext) -> dict[str, Any]:
    """Return what is asked for as JSON types, with ids in place of names of regions."""
    request: dict[str, Any] = context.body.model_dump()
    if selection := request["selection"]:
        wan = context.service.current.wan
        for end in ("src", "dst"):
            selection[end] = region_meant(wan, selection[end], f"selection.{end}")
    return request


def _decided(
    store: Store, request: dict[str, Any], who: str, address: str
) -> tuple[int, int | None]:
    """Make a decision; return how many samples it was about, and the batch of those accepted."""
    database, decision, numbers = store.database, request["decision"], request["quarantined"]
    by = {"who": who, "reason": request["reason"], "address": address}
    if decision == "accept":
        return len(set(numbers)), accept(database, numbers, **by)
    if decision == "reject":
        reject(database, numbers, **by)
        return len(set(numbers)), None
    selection, through = Selection(**request["selection"]), request["through"]
    return decide(database, decision, selection, **by, through=through), None
