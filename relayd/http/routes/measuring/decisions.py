"""``/v1/samples/decisions``: whether samples are to count, and what that does to estimates."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from relayd.http.answers.decisions import decision_effects, samples_meant
from relayd.http.models.samples import DecisionAnswer, DecisionRequest, EffectsAnswer
from relayd.http.responses.json_responses import document_response
from relayd.http.responses.problems import ProblemError
from relayd.http.route import RequestContext, Route
from relayd.http.routes.measuring.quarantine import region_meant
from relayd.store import Store
from relayd.store.samples.decisions import Selection, decide
from relayd.store.samples.quarantine import accept, reject

LIMIT_S = 300.0
"""Longest time for effects: all links are estimated twice."""


async def post_decision_effects(context: RequestContext) -> web.Response:
    """Show what a decision about samples would do to estimates; nothing is decided."""
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


async def post_decision(context: RequestContext) -> web.Response:
    """Decide about samples."""
    service, request = context.service, _request(context)
    who = service.access.holder(context.request) or "anybody"
    address, loop = context.request.remote or "", asyncio.get_running_loop()

    # Here, in the store's thread: it is finished, too, after nobody waits for it any more.
    def write(store: Store) -> tuple[int, int | None]:
        decided = _decided(store, request, who, address)
        if decided[0]:
            loop.call_soon_threadsafe(service.has_new_samples)
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


ROUTES = (
    Route(
        "POST",
        "/v1/samples/decisions/effects",
        post_decision_effects,
        "Show what a decision about samples would change",
        "admin",
        "Estimates all links twice, from all samples: with the decision and without. Nothing is "
        "decided. Where that takes too long, the problem `timeout` has `samples` and `through`.",
        body=DecisionRequest,
        answer=EffectsAnswer,
        statuses=(422,),
    ),
    Route(
        "POST",
        "/v1/samples/decisions",
        post_decision,
        "Decide about samples",
        "admin",
        "Accept or reject samples in quarantine, or confirm, retract or restore others. Nothing is "
        "removed: the decision is kept with who made it, when and why. The next snapshot heeds it.",
        body=DecisionRequest,
        answer=DecisionAnswer,
        statuses=(422,),
    ),
)
