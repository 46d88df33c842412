"""Routes of all questions but the transfer's, and ``/v1/questions``, which describes them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from planner.fields.specified import description_of
from relayd.http.answers.plans import answer_bytes
from relayd.http.models.common import attributes_as
from relayd.http.models.questions import Questions, QuestionSeen
from relayd.http.responses.encoding import encoded
from relayd.http.responses.json_responses import json_response, tagged_response
from relayd.http.route import RequestContext, Route
from relayd.http.routes.planning.plans import earlier_answer
from relayd.questions.registry import QUESTIONS, Question


async def post_question(context: RequestContext) -> web.Response:
    """Answer in a worker, because it takes from milliseconds to seconds."""
    current = context.service.current
    if context.body.snapshot:
        return json_response(*await earlier_answer(context.service, context.body))
    body = await context.service.workers.ask(current.version, answer_bytes, context.body)
    return json_response(body, current.snapshot)


async def get_questions(context: RequestContext) -> web.Response:
    """Describe every question, for forms and other clients."""
    current = context.service.current
    content = {"snapshot": current.snapshot, "questions": [_described(q) for q in QUESTIONS]}
    body = current.page("questions", lambda: encoded(content))
    return tagged_response(context.request, body, current.snapshot)


def _described(question: Question) -> dict[str, Any]:
    return attributes_as(QuestionSeen, question, fields=description_of(question.request))


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
            statuses=(409, 422),
            operation_id=f"post_{question.name.removeprefix('place-')}",
        )
        for question in QUESTIONS
        if question.name != "transfer"
    ),
    Route(
        "GET",
        "/v1/questions",
        get_questions,
        "Describe the questions and their fields",
        "read",
        "Names, kinds, units, bounds, defaults, help and examples; forms can be made from it.",
        answer=Questions,
        etag=True,
    ),
)
