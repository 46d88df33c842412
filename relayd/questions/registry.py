"""The questions that relayd answers, found by their entry points.

A distribution registers a :class:`~relayd.questions.question.Question` in its ``pyproject.toml``;
ours are registered in the same way::

    [project.entry-points."relayd.questions"]
    transfer = "relayd.questions.transfer:TRANSFER"
"""

from __future__ import annotations

from planner.fields.specified import Specified
from probes.plugins import registered
from relayd.questions.question import Question

GROUP = "relayd.questions"
UNIQUE = "name", "method", "path", "command", "schema_name"
"""Attributes of questions, of which no two may have the same."""


QUESTIONS = registered(GROUP, Question, UNIQUE)
"""All of them, ours in the order of the documentation."""


def snapshot_of(request: Specified) -> str | None:
    """Return the earlier snapshot that a request asks of; None where it asks of the newest."""
    found: str | None = getattr(request, "snapshot", None)
    return found


def question_of(request: Specified) -> Question:
    """Return the question that a request asks; also a request of a class derived from its class.

    Raises TypeError if it is no request.
    """
    for question in QUESTIONS:
        if isinstance(request, question.request):
            return question
    raise TypeError(f"{type(request).__name__} is no question's request")
