"""``/v1/plans``, the other questions, and what describes them and runs their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sized
from functools import partial
from typing import Annotated, Any

import numpy as np
from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from planner.fields.kinds import ByPlace
from planner.fields.specified import Items, Specified, description_of, fields_of, schema_of
from planner.model.errors import InputError
from planner.model.network import Snapshot
from planner.transfer.plan import Plan
from planner.transfer.request import TransferRequest
from relayd.emitting.emitter import Emitter
from relayd.emitting.formats import DEFAULT_PORT, emitters
from relayd.http.answers import (
    answer_bytes,
    answer_earlier,
    batch_items,
    decisions,
    demands_of,
    encoded,
    script_of,
)
from relayd.http.models import (
    Name,
    RequestModel,
    ResponseModel,
    Text,
    answer,
    attributes_as,
    many,
    model_of,
)
from relayd.http.problems import Problem
from relayd.http.route import ID_KEY, JSON, VARY, RequestContext, Route, route, snapshot_headers
from relayd.questions.decisions import ARROW, COUNTS, FIGURES, NPY, columns_bytes, columns_of
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS, question_of, snapshot_of
from relayd.questions.transfer import TRANSFER

MOST_DECISIONS, LEAST_DECISIONS = 10_000, 500
"""That one request has, and that are worth another process."""

# ---- questions over HTTP -----------------------------------------------------------------------


def check_limits(question: Question, request: Specified) -> None:
    """Check a request against the limits of the service; raises InputError with the field."""
    for field in fields_of(question.request).values():
        if (most := question.most.get(field.key)) is None:
            continue
        value = getattr(request, field.name)
        size = len(value) if isinstance(value, Sized) else value
        if size > most:
            problem = f"must be at most {most:g} for this service"
            remedy = "Ask for less at a time, or use the library."
            raise InputError(field.key, problem, value=size, remedy=remedy)


def request_schemas(question: Question) -> dict[str, Any]:
    """Return the schema of a question's body and those that it refers to, by name."""
    found: dict[str, Any] = {}

    def referring(schema: Any) -> Any:
        if isinstance(schema, list):
            return [referring(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        schema = {key: referring(value) for key, value in schema.items()}
        if schema.get("type") != "object" or "title" not in schema:
            return schema
        found[schema["title"]] = schema
        return {"$ref": f"#/components/schemas/{schema['title']}"}

    schema = schema_of(question.request) | {"title": question.schema_name}
    for key, most in question.most.items():
        bounded = schema["properties"][key]
        for branch in bounded.get("anyOf", [bounded]):
            for limit in ("maxItems", "maxProperties", "maximum"):
                if limit in branch:
                    branch[limit] = most
    referring(schema)
    return found


def query_schema(question: Question) -> dict[str, Any]:
    """Return the schema of a question's query string: no fields by place, and no rows."""
    schema = schema_of(question.request)
    for field in fields_of(question.request).values():
        if isinstance(field.kind, ByPlace | Items):
            del schema["properties"][field.key]
    return schema | {"title": "PlanQuery"}


class QuestionField(ResponseModel):
    """A field of a question; further keys depend on its kind, such as `unit` or `choices`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(description="Its key in JSON, and in problems.")
    kind: str = Field(description="`volume`, `duration`, `choice`, `flag`, `region`, ...")
    required: bool
    optional: bool = Field(description="Whether null stands for no such limit.")
    default: Any = Field(description="null if it is required.")
    label: str
    group: str
    help: str
    example: str | None = Field(description="A value as a person writes it.")
    option: str | None = Field(description="Its option on the command line.")


QUESTION = model_of(
    "QuestionSeen",
    "A question: where to ask it, and its fields.",
    name=str,
    method=(str, "Of the library and of clients."),
    path=str,
    command=(str, "On the command line."),
    summary=str,
    example=(dict[str, Any], "A body that can be sent."),
    fields=list[QuestionField],
)
TOOL = model_of("EmitterSeen", Emitter, without=("write", "to_vms", "write_bucket", "order"))
QUESTIONS_ANSWER = answer("Questions", "All there are.", questions=many(QUESTION), tools=many(TOOL))

# ---- batches of plans, and scripts -------------------------------------------------------------


class PlanBatch(RequestModel):
    """Many transfers, each answered on its own."""

    plans: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=1000,
        description="Each a PlanRequest; a wrong one gets a problem of its own.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/PlanRequest"}},
    )


class DecisionsRequest(RequestModel):
    """Many transfers, and any field of a PlanRequest: one value for all, or a list of them."""

    model_config = ConfigDict(extra="allow")

    src: Name | list[Name] = Field(description="Regions to send from, or one for all.")
    dst: Name | list[Name] = Field(description="Regions to send to, or one for all.")
    splits: bool = Field(False, description="Look for splits where one may save over 2 %.")


class ScriptRequest(RequestModel):
    """A plan of one transfer, and the tool that shall run it."""

    plan: dict[str, Any] = Field(description="As `/v1/plans` answered it.")
    emit: str = Field(description="The tool.", json_schema_extra={"enum": [*emitters()]})
    endpoints: dict[str, Name | list[Name]] = Field(
        {}, max_length=100, description="Region of the plan to the address of its VM, or several."
    )
    port: int = Field(DEFAULT_PORT, ge=1, le=65535, description="That relays and ends listen on.")


class DemandsGiven(RequestModel):
    """A file of demands, in any format that `relayd plan shuffle` reads."""

    text: str = Field(description="What the file has; up to the largest body of samples.")
    name: Name = Field("the file", description="What it is called, for problems with it.")
    columns: dict[str, Name] = Field(
        {}, max_length=3, description="`src`, `dst` and `volume_gb` to columns of a table."
    )
    regions: dict[str, Name] = Field(
        {}, max_length=10_000, description="Host of a log, or node of a network, to its region."
    )
    unit: Annotated[Text, Field(max_length=20)] = Field(
        "", description="Of figures that have none, such as TiB."
    )


DEMANDS_ANSWER = answer(
    "DemandsAnswer",
    "Demands as `demands` of a question has them.",
    demands=(list[dict[str, Any]], "Each with `src`, `dst` and `volume_gb`."),
    notes=(list[str], "What they rest on, where that is more than a table."),
)
BATCH_ANSWER = answer(
    "BatchAnswer",
    "Answers in the order of the requests.",
    results=many(
        model_of(
            "BatchItem",
            "One answer of a batch: a plan, or the problem with its request.",
            plan=Plan | None,
            problem=Problem | None,
        )
    ),
)
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("src", "dst", "verdict", "via"), list[str]),
    **dict.fromkeys(COUNTS, list[int]),
    **dict.fromkeys(FIGURES, list[float | None]),
}
DECISIONS = model_of(
    "DecisionColumns",
    "Columns of decisions, in the order of the transfers; null: not known.",
    **_COLUMNS,
)
DECISIONS_ANSWER = answer("DecisionsAnswer", "Many decisions.", decisions=DECISIONS)
SCRIPT_ANSWER = answer("ScriptAnswer", "A script, or a configuration of a tool.", script=str)


@route("GET", "/v1/plans", "plan", Plan, question=TRANSFER, etag=True)
async def get_plan(context: RequestContext) -> tuple[Snapshot, bytes]:
    """Answer a question in a query string.

    Answers are cached until a new snapshot, whose ETag changes with it.
    """
    return await _plan(context, context.query)


@route("POST", "/v1/plans", "plan", Plan, question=TRANSFER)
async def post_plan(context: RequestContext) -> tuple[Snapshot, bytes]:
    """Answer a question in a body.

    Also takes figures by region, which a query string can't hold.
    """
    return await _plan(context, context.body)


async def _plan(context: RequestContext, request: TransferRequest) -> tuple[Snapshot, bytes]:
    current, metrics = context.current, context.service.metrics
    check_limits(TRANSFER, request)
    if request.snapshot:
        return await context.ask(answer_earlier, context.service.open_stored, request)
    holds = context.service.holds.live(time.time())
    key = f"{holds.version} {request!r}"  # canonical: it leaves defaults out
    body = current.answers.get(key)
    if body is not None:
        metrics.plans.labels("cache").inc()
        return current.snapshot, body
    began_s = time.perf_counter()
    # Even a plan of a millisecond: made here, 32 callers' plans delay every known answer by 250 ms.
    body = await context.ask(answer_bytes, request, holds)
    metrics.plans.labels("planner").inc()
    metrics.planning.observe(time.perf_counter() - began_s)
    current.answers.keep(key, body)
    return current.snapshot, body


@route(
    "POST",
    "/v1/plans/batch",
    "plan",
    BATCH_ANSWER,
    body=PlanBatch,
    example={"plans": [{"src": "us-east", "dst": "sa"}, {"src": "eu", "dst": "nowhere"}]},
)
async def post_plans_batch(context: RequestContext) -> bytes:
    """Recommend for many transfers at once.

    Each is answered by itself: a wrong one gets a problem in its place.
    """
    service, version = context.service, context.current.version
    items = await service.workers.ask_in_parts(
        version, batch_items, context.body.plans, context.request[ID_KEY], service.holds
    )
    service.metrics.plans.labels("workers").inc(len(items))
    return b'{"snapshot":%b,"results":[%b]}' % (encoded(context.snapshot), b",".join(items))


@route(
    "POST",
    "/v1/decisions",
    "plan",
    DECISIONS_ANSWER,
    body=DecisionsRequest,
    example={"src": ["us-east", "eu"], "dst": "sa", "volume_gb": [500, 20], "vms": 4},
)
async def post_decisions(context: RequestContext) -> bytes | web.Response:
    """Decide up to 10,000 transfers at once, without words.

    Columns of figures as plans have them. Who accepts `application/x-npy` or
    `application/vnd.apache.arrow.stream` gets the rows in these formats.
    """
    service, asked = context.service, context.body.model_dump()
    splits, columns = asked.pop("splits"), columns_of(asked)
    if columns.count > MOST_DECISIONS:
        problem, remedy = f"must be at most {MOST_DECISIONS}", "Send the others in another request."
        raise InputError("src", problem, value=columns.count, remedy=remedy)
    accepted = context.request.headers.get(hdrs.ACCEPT, "")
    kind = next((kind for kind in (NPY, ARROW) if kind in accepted), JSON)
    size = max(LEAST_DECISIONS, -(-columns.count // service.workers.count))
    parts = await asyncio.gather(
        *(
            context.ask(
                partial(decisions, splits=splits, as_json=kind == JSON),
                *(columns.part(first, size), first, service.holds),
            )
            for first in range(0, columns.count, size) or [0]
        )
    )
    service.metrics.plans.labels("workers").inc(columns.count)
    if kind != JSON:
        content = columns_bytes(np.concatenate(parts), kind)
        headers = snapshot_headers(context.snapshot) | {hdrs.VARY: f"{VARY}, {hdrs.ACCEPT}"}
        return web.Response(body=content, content_type=kind, headers=headers)
    names = list(DECISIONS.model_fields)
    lists = zip(names, zip(*parts, strict=True), strict=True)
    members = (b"%b:[%b]" % (encoded(name), b",".join(values)) for name, values in lists)
    body = b'{"snapshot":%b,"decisions":{%b}}'
    return body % (encoded(context.snapshot), b",".join(members))


@route("POST", "/v1/plans/scripts", "plan", SCRIPT_ANSWER, body=ScriptRequest)
async def post_plan_script(context: RequestContext) -> dict[str, Any]:
    """Write a plan as what a tool runs.

    Addresses that are not given stay variables, without which the script says what it is.
    """
    asked = context.body.model_dump()
    return {"script": await context.ask(script_of, asked)}


@route(
    "POST",
    "/v1/demands",
    "plan",
    DEMANDS_ANSWER,
    body=DemandsGiven,
    is_file=True,
    example={"text": "from,to,TB\nus-east,sa,1.5\n"},
)
async def post_demands(context: RequestContext) -> dict[str, Any]:
    """Read a file of demands.

    A bill, an event log of Spark, a table, a matrix or a network, told by its content. What is of
    another kind is refused with what it is, and what would read it.
    """
    return await context.ask(demands_of, context.body.model_dump())


async def post_question(context: RequestContext) -> bytes | tuple[Snapshot, bytes]:
    """Answer in a worker, because it takes from milliseconds to seconds."""
    check_limits(question_of(context.body), context.body)
    if snapshot_of(context.body):
        return await context.ask(answer_earlier, context.service.open_stored, context.body)
    return await context.ask(answer_bytes, context.body, context.service.holds)


@route("GET", "/v1/questions", "read", QUESTIONS_ANSWER, etag=True)
async def get_questions(_context: RequestContext) -> dict[str, Any]:
    """Describe the questions and their fields.

    Names, kinds, units, bounds, defaults, help and examples; forms can be made from it.
    """
    return {
        "questions": [
            attributes_as(QUESTION, question, fields=description_of(question.request))
            for question in QUESTIONS
        ],
        "tools": [attributes_as(TOOL, one) for one in emitters().values()],
    }


ROUTES = tuple(
    Route(
        "POST",
        question.path,
        post_question,
        question.summary,
        "plan",
        question.note,
        body=question.request,
        question=question,
        answer=question.answer,
        operation_id=f"post_{question.name.removeprefix('place-')}",
    )
    for question in QUESTIONS
    if question is not TRANSFER
)
