"""``/v1/plans``: what to do with one transfer, or with each of many."""

from __future__ import annotations

import time
from typing import Any

import orjson
from aiohttp import web
from pydantic import ValidationError

from planner.model.answer import Answer
from planner.model.errors import InputError, RelaydError
from planner.transfer.plan import Plan
from planner.transfer.request import DEFAULT_CANDIDATES
from relayd.http.models.plans import BatchAnswer, PlanBatch, PlanQuery, PlanRequest
from relayd.http.responses.json_responses import encoded, json_response
from relayd.http.responses.problems import ProblemError, invalid, problem_of
from relayd.http.responses.problems import encoded as problem_bytes
from relayd.http.route import RequestContext, Route
from relayd.http.server.current_state import Current
from relayd.http.server.service import Service
from relayd.sources.wan import Wan

# A plan over few VMs takes some 0.35 ms, and handing it to another process and back takes longer:
# it is made where it is asked. With more VMs, or several under a limit, the search may
# take a hundred times as long, and that goes to another core.
MOST_VMS_HERE = 8


def cached_plan(service: Service, request: web.Request) -> web.Response | None:
    """Answer a query that was answered before, word for word."""
    current = service.current
    body = current.plans.get(request.raw_path)
    if body is None:
        return None
    service.metrics.cached()
    return web.Response(body=body, headers=current.headers.copy())


async def get_plan(context: RequestContext) -> web.Response:
    """Answer a question in a query string."""
    asked = PlanRequest.model_construct(
        _fields_set=context.query.model_fields_set, **dict(context.query)
    )
    current = context.service.current
    body = await _plan(context.service, current, asked)
    if context.request.method == "GET":
        current.plans.keep(context.request.raw_path, body)
    return json_response(body, current.snapshot)


async def post_plan(context: RequestContext) -> web.Response:
    """Answer a question in a body."""
    current = context.service.current
    return json_response(await _plan(context.service, current, context.body), current.snapshot)


async def post_plans_batch(context: RequestContext) -> web.Response:
    """Answer many questions, each by itself."""
    service, current = context.service, context.service.current
    questions = context.body.plans
    if len(questions) > service.settings.batch_items:
        raise InputError(
            "plans",
            f"are more than {service.settings.batch_items}",
            value=len(questions),
            remedy="Ask in several batches.",
        )
    items = await service.workers.ask_in_parts(
        current.version, batch_items, questions, context.request_id
    )
    service.metrics.batched(len(items))
    body = b'{"snapshot":%b,"results":[%b]}' % (encoded(current.snapshot), b",".join(items))
    return json_response(body, current.snapshot)


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


def dumped(answer: Answer) -> bytes:
    """Return an answer as JSON.

    orjson writes dataclasses as they are: 0.02 ms a plan, where turning one into dicts and these
    into text takes 0.14 ms, nearly half of what planning takes.
    """
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def plan_bytes(wan: Wan, request: PlanRequest) -> bytes:
    """Return a plan as JSON.

    Raises
    ------
    RelaydError
        As :meth:`relayd.sources.wan.Wan.plan` does.
    """
    return dumped(wan.plan(**request.keywords()))


def batch_items(wan: Wan, questions: list[Any], request_id: str | None) -> list[bytes]:
    """Return the items of a batch's answer, each with a plan or its own problem."""
    return [_item(wan, question, request_id) for question in questions]


def _item(wan: Wan, question: Any, request_id: str | None) -> bytes:
    try:
        request = PlanRequest.model_validate(question, strict=True)
        return b'{"plan":%b,"problem":null}' % plan_bytes(wan, request)
    except ValidationError as error:
        problem: ProblemError = problem_of(invalid(error))
    except RelaydError as error:
        problem = problem_of(error)
    return b'{"plan":null,"problem":%b}' % problem_bytes(problem, request_id)


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
        cached=cached_plan,
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
