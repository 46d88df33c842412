"""Longer questions: many transfers, broadcasts, deadlines, placement, plans in progress."""

from __future__ import annotations

from aiohttp import web

from planner.broadcast.plan import BroadcastPlan
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.replanning.plan import Replan
from planner.schedule.plan import SchedulePlan
from planner.shuffle.plan import ShufflePlan
from relayd.http.models.broadcasts import BroadcastQuestion
from relayd.http.models.placements import ReduceQuestion, TasksQuestion
from relayd.http.models.questions import QuestionModel
from relayd.http.models.replans import ReplanQuestion
from relayd.http.models.schedules import ScheduleQuestion
from relayd.http.models.shuffles import ShuffleQuestion
from relayd.http.responses.json_responses import json_response
from relayd.http.route import RequestContext, Route
from relayd.http.routes.plans import dumped
from relayd.sources.wan import Wan


async def post_question(context: RequestContext) -> web.Response:
    """Answer in a worker: it takes from milliseconds to seconds."""
    current = context.service.current
    body = await context.service.workers.ask(current.version, answer_bytes, context.body)
    return json_response(body, current.snapshot)


def answer_bytes(wan: Wan, question: QuestionModel) -> bytes:
    """Return the answer of a question as JSON."""
    return dumped(question.ask(wan))


def _route(
    path: str, name: str, summary: str, question: type[QuestionModel], answer: type, more: str = ""
) -> Route:
    return Route(
        "POST",
        path,
        post_question,
        summary,
        "plan",
        more,
        body=question,
        answer=answer,
        statuses=(409, 422),
        operation_id=name,
    )


ROUTES = (
    _route(
        "/v1/shuffles",
        "post_shuffle",
        "Recommend how to run many transfers",
        ShuffleQuestion,
        ShufflePlan,
    ),
    _route(
        "/v1/broadcasts",
        "post_broadcast",
        "Recommend how to bring one volume to many regions",
        BroadcastQuestion,
        BroadcastPlan,
    ),
    _route(
        "/v1/schedules",
        "post_schedule",
        "Admit transfers with deadlines",
        ScheduleQuestion,
        SchedulePlan,
        "One that can't be admitted is no error: it is told.",
    ),
    _route(
        "/v1/placements/reduce",
        "post_reduce",
        "Recommend where to reduce",
        ReduceQuestion,
        ReducePlacement,
    ),
    _route(
        "/v1/placements/tasks",
        "post_tasks",
        "Recommend on which VM to run which task",
        TasksQuestion,
        TaskPlacement,
    ),
    _route(
        "/v1/replans",
        "post_replan",
        "Say whether to keep to a plan in progress",
        ReplanQuestion,
        Replan,
    ),
)
