"""``/v1/plans``: plans of one transfer, or of each of many, and what runs them."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from planner.fields.specified import Specified, description_of
from planner.model.errors import InputError
from planner.model.network import Snapshot
from planner.transfer.plan import Plan
from planner.transfer.request import DEFAULT_CANDIDATES, MOST_VMS_UNASKED, TransferRequest
from relayd.http.answers import answer_bytes, answer_earlier, batch_items, encoded, script_of
from relayd.http.models.common import attributes_as
from relayd.http.models.questions import QUESTION, QUESTIONS_ANSWER
from relayd.http.models.service import BATCH_ANSWER, SCRIPT_ANSWER, PlanBatch, ScriptRequest
from relayd.http.responses import document_response, json_response, tagged_response
from relayd.http.route import RequestContext, Route, route
from relayd.http.service import Service
from relayd.questions.registry import QUESTIONS, Question

TRANSFER = next(question for question in QUESTIONS if question.name == "transfer")

# A plan over few VMs takes about a millisecond, and handing it to another process and back as
# long: it is made where it is asked. With more VMs, or several under a limit, the search may take
# a hundred times as long, and that goes to another core.
MOST_VMS_HERE = 8


@route("GET", "/v1/plans", "plan", question=TRANSFER, answer=Plan, statuses=(409,))
async def get_plan(context: RequestContext) -> web.Response:
    """Answer a question in a query string.

    Answers are cached until a new snapshot.
    """
    return json_response(*await _plan(context.service, context.query))


@route("POST", "/v1/plans", "plan", question=TRANSFER, answer=Plan, statuses=(409,))
async def post_plan(context: RequestContext) -> web.Response:
    """Answer a question in a body.

    Also takes figures by region, which a query string can't hold.
    """
    return json_response(*await _plan(context.service, context.body))


@route(
    "POST",
    "/v1/plans/batch",
    "plan",
    body=PlanBatch,
    example={"plans": [{"src": "us-east", "dst": "sa"}, {"src": "eu", "dst": "nowhere"}]},
    answer=BATCH_ANSWER,
)
async def post_plans_batch(context: RequestContext) -> web.Response:
    """Recommend for many transfers at once.

    Each is answered by itself: a wrong one gets a problem in its place.
    """
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


@route("POST", "/v1/plans/scripts", "plan", body=ScriptRequest, answer=SCRIPT_ANSWER)
async def post_plan_script(context: RequestContext) -> web.Response:
    """Write a plan as what a tool runs.

    Addresses that are not given stay variables, without which the script says what it is.
    """
    current = context.service.current
    asked = context.body.model_dump()
    script = await context.service.workers.ask(current.version, script_of, asked)
    return document_response(current.snapshot, {"script": script})


async def _plan(service: Service, request: TransferRequest) -> tuple[bytes, Snapshot]:
    current = service.current
    if request.snapshot:
        return await earlier_answer(service, request)
    key = repr(request)  # canonical: it leaves defaults out
    body = current.plans.get(key)
    if body is not None:
        service.metrics.cached()
        return body, current.snapshot
    began_s = time.perf_counter()
    if _is_quick(request):
        body = answer_bytes(current.wan, request)
    else:
        body = await service.workers.ask(current.version, answer_bytes, request)
    service.metrics.planned(time.perf_counter() - began_s)
    current.plans.keep(key, body)
    return body, current.snapshot


async def earlier_answer(service: Service, request: Specified) -> tuple[bytes, Snapshot]:
    """Answer from an earlier snapshot, which a worker reads from the store each time."""
    version = service.current.version
    return await service.workers.ask(version, answer_earlier, service.open_source, request)


def _is_quick(request: TransferRequest) -> bool:
    if (
        (request.vms or MOST_VMS_UNASKED) > MOST_VMS_HERE
        or request.vms_in
        or request.vm_types
        or request.frontier
    ):
        return False
    if request.candidates > DEFAULT_CANDIDATES:
        return False
    limits = (request.budget_usd, request.deadline_s, request.min_throughput_gbps)
    return request.vms == 1 or limits == (None, None, None)


async def post_question(context: RequestContext) -> web.Response:
    """Answer in a worker, because it takes from milliseconds to seconds."""
    current = context.service.current
    if context.body.snapshot:
        return json_response(*await earlier_answer(context.service, context.body))
    body = await context.service.workers.ask(current.version, answer_bytes, context.body)
    return json_response(body, current.snapshot)


@route("GET", "/v1/questions", "read", answer=QUESTIONS_ANSWER, etag=True)
async def get_questions(context: RequestContext) -> web.Response:
    """Describe the questions and their fields.

    Names, kinds, units, bounds, defaults, help and examples; forms can be made from it.
    """
    current = context.service.current
    content = {"snapshot": current.snapshot, "questions": [_described(q) for q in QUESTIONS]}
    body = current.page("questions", lambda: encoded(content))
    return tagged_response(context.request, body, current.snapshot)


def _described(question: Question) -> dict[str, Any]:
    return attributes_as(QUESTION, question, fields=description_of(question.request))


_MORE = {"schedule": "A transfer that can't be admitted is part of the answer, not an error."}


ROUTES = (
    *(
        Route(
            "POST",
            question.path,
            post_question,
            question.summary,
            "plan",
            _MORE.get(question.name, ""),
            question=question,
            answer=question.answer,
            statuses=(409,),
            operation_id=f"post_{question.name.removeprefix('place-')}",
        )
        for question in QUESTIONS
        if question.name != "transfer"
    ),
)
