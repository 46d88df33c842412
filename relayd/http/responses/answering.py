"""Questions to bytes: what the service and its workers both do with a Wan."""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import ValidationError

from planner.model.answer import Answer
from planner.model.errors import RelaydError
from relayd.http.models.plans import PlanRequest
from relayd.http.responses.problems import ProblemError, encoded, invalid, problem_of
from relayd.sources.wan import Wan


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
    return b'{"plan":null,"problem":%b}' % encoded(problem, request_id)
