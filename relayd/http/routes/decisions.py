"""``/v1/samples/decisions``: whether samples are to count, and what that does to estimates."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from relayd.http.models.samples import DecisionAnswer, DecisionRequest, EffectsAnswer
from relayd.http.responses.json_responses import document_response
from relayd.http.route import RequestContext, Route
from relayd.sources.wan import Wan
from relayd.store import Location, Store, open_store
from relayd.store.samples.decisions import Selection, decide, selected
from relayd.store.samples.quarantine import accept, reject, to_decide

MOST_EFFECTS = 100


async def post_decision_effects(context: RequestContext) -> web.Response:
    """Show what a decision about samples would do to estimates; nothing is decided."""
    service = context.service
    found = await service.workers.ask(
        service.current.version, decision_effects, service.store.path, context.body.model_dump()
    )
    return document_response(service.current.snapshot, found)


async def post_decision(context: RequestContext) -> web.Response:
    """Decide about samples."""
    service, body = context.service, context.body
    who = service.access.holder(context.request) or "anybody"
    address, loop = context.request.remote or "", asyncio.get_running_loop()

    # Here, in the store's thread: it is finished, too, after nobody waits for it any more.
    def write(store: Store) -> tuple[int, int | None]:
        decided = _decided(store, body.model_dump(), who, address)
        if decided[0]:
            loop.call_soon_threadsafe(service.has_new_samples)
        return decided

    samples, batch_id = await service.store.write(write)
    content = {"samples": samples, "batch_id": batch_id}
    return document_response(service.current.snapshot, content)


def decision_effects(wan: Wan, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return what a decision would do, as JSON types; in a worker, because it takes a while.

    Raises
    ------
    InputError
        If it can't be made.
    """
    from relayd.snapshots.effects import effects_of

    decision = request["decision"]
    with open_store(location, mode="read") as store:
        if decision in ("accept", "reject"):
            accepting = decision == "accept"
            samples = to_decide(store.database, request["quarantined"], accepting=accepting)
            count = len(samples)
            changed = effects_of(store, wan.catalogue, accepted=samples) if accepting else []
        else:
            selection = Selection(**request["selection"])
            ids = frozenset(selected(store.database, decision, selection))
            count = len(ids)
            changed = effects_of(store, wan.catalogue, change=(decision, ids)) if ids else []
    shown = [effect._asdict() for effect in changed[:MOST_EFFECTS]]
    return {"samples": count, "total": len(changed), "changed": shown}


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
    return decide(database, decision, Selection(**request["selection"]), **by), None


ROUTES = (
    Route(
        "POST",
        "/v1/samples/decisions/effects",
        post_decision_effects,
        "Show what a decision about samples would change",
        "admin",
        "Estimates all links twice, from all samples: with the decision and without. Nothing is "
        "decided.",
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
