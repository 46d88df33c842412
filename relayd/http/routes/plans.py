"""``/v1/plans``: what to do with one transfer, or with each of many."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from aiohttp import web

from planner.model.errors import InputError
from planner.transfer.plan import Plan
from planner.transfer.request import DEFAULT_CANDIDATES
from relayd.http.models.plans import BatchAnswer, PlanBatch, PlanQuery, PlanRequest
from relayd.http.responses.answering import batch_items, plan_bytes
from relayd.http.responses.responses import encoded, json_answer
from relayd.http.routes.table import Ask, Route

if TYPE_CHECKING:
    from relayd.http.server.current_state import Current
    from relayd.http.server.service import Service

# A plan over few VMs takes some 0.35 ms, and handing it to another process and back takes longer:
# it is made where it is asked. With more VMs, or several under a limit, the search may
# take a hundred times as long, and that goes to another core.
MOST_VMS_HERE = 8


def known_plan(service: Service, request: web.Request) -> web.Response | None:
    """Answer a query that was answered before, word for word."""
    current = service.current
    body = current.plans.get(request.raw_path)
    if body is None:
        return None
    service.metrics.cached()
    return web.Response(body=body, headers=current.headers.copy())


async def get_plan(ask: Ask) -> web.Response:
    """Answer a question in a query string."""
    asked = PlanRequest.model_construct(_fields_set=ask.query.model_fields_set, **dict(ask.query))
    current = ask.service.current
    body = await _plan(ask.service, current, asked)
    if ask.request.method == "GET":
        current.plans.keep(ask.request.raw_path, body)
    return json_answer(body, current.snapshot)


async def post_plan(ask: Ask) -> web.Response:
    """Answer a question in a body."""
    current = ask.service.current
    return json_answer(await _plan(ask.service, current, ask.body), current.snapshot)


async def post_plans_batch(ask: Ask) -> web.Response:
    """Answer many questions, each by itself."""
    service, current = ask.service, ask.service.current
    questions = ask.body.plans
    if len(questions) > service.settings.batch_items:
        raise InputError(
            "plans",
            f"are more than {service.settings.batch_items}",
            value=len(questions),
            remedy="Ask in several batches.",
        )
    items = await service.workers.ask_in_parts(
        current.version, batch_items, questions, ask.request_id
    )
    service.metrics.batched(len(items))
    body = b'{"snapshot":%b,"results":[%b]}' % (encoded(current.snapshot), b",".join(items))
    return json_answer(body, current.snapshot)


async def _plan(service: Service, current: Current, asked: PlanRequest) -> bytes:
    key = _key(asked)
    body = current.plans.get(key)
    if body is not None:
        service.metrics.cached()
        return body
    began_s = time.perf_counter()
    if _is_quick(asked):
        body = plan_bytes(current.wan, asked)
    else:
        body = await service.workers.ask(current.version, plan_bytes, asked)
    service.metrics.planned(time.perf_counter() - began_s)
    current.plans.keep(key, body)
    return body


def _key(asked: PlanRequest) -> str:
    """Return the question without what it leaves at its default, in one spelling."""
    said: list[tuple[str, Any]] = sorted(asked.model_dump(exclude_defaults=True).items())
    return repr(said)


def _is_quick(asked: PlanRequest) -> bool:
    if asked.vms > MOST_VMS_HERE or asked.vms_in or asked.vm_types or asked.frontier:
        return False
    if asked.candidates > DEFAULT_CANDIDATES:
        return False
    limits = (asked.budget_usd, asked.deadline_s, asked.min_throughput_gbps)
    return asked.vms == 1 or limits == (None, None, None)


ROUTES = (
    Route(
        "GET",
        "/v1/plans",
        get_plan,
        "Recommend how to move a volume",
        "plan",
        "Answers the same question faster the second time, until a new snapshot.",
        query=PlanQuery,
        answer=Plan,
        statuses=(409, 422),
        quick=known_plan,
    ),
    Route(
        "POST",
        "/v1/plans",
        post_plan,
        "Recommend how to move a volume",
        "plan",
        "Takes what a query string can't say: figures by region.",
        body=PlanRequest,
        answer=Plan,
        statuses=(409, 422),
    ),
    Route(
        "POST",
        "/v1/plans/batch",
        post_plans_batch,
        "Recommend for many transfers at once",
        "plan",
        "Each is answered by itself: a wrong one gets a problem in its place.",
        body=PlanBatch,
        answer=BatchAnswer,
        statuses=(422,),
    ),
)
