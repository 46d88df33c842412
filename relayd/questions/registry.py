"""The questions that relayd answers, found by their entry points.

A distribution registers a :class:`~relayd.questions.question.Question` in its ``pyproject.toml``;
ours are registered in the same way::

    [project.entry-points."relayd.questions"]
    transfer = "relayd.questions.transfer:TRANSFER"
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from planner.fields.specified import Specified
from planner.model.errors import RelaydError
from relayd.questions.question import Question

GROUP = "relayd.questions"
_UNIQUE = "name", "method", "path", "command", "schema_name"
"""Attributes of questions, of which no two may have the same."""


class RegistrationError(RelaydError):
    """A question that can't be registered; says which distribution brings it."""

    exit_code = 2


def registered(found: Sequence[EntryPoint]) -> tuple[Question, ...]:
    """Load questions, and return them in their order.

    Raises
    ------
    RegistrationError
        If there are none, one can't be loaded, or two have the same name, method, path, command or
        schema.
    """
    if not found:
        raise RegistrationError(
            f"No distribution registers questions (entry points {GROUP}), not even relayd. "
            "Install relayd, a source tree by `pip install --editable .`."
        )
    origins: dict[tuple[str, str], str] = {}
    questions = []
    for point in found:
        by = point.dist.name if point.dist else "a distribution without a name"
        origin = f"{by} (entry point {point.name} = {point.value})"
        try:
            question = point.load()
        except Exception as error:
            raise RegistrationError(f"A question of {origin} can't be loaded: {error!r}") from error
        if not isinstance(question, Question):
            raise RegistrationError(f"{origin} is no Question, but {question!r:.80}")
        for attribute in _UNIQUE:
            value: str = vars(question)[attribute]
            if other := origins.get((attribute, value)):
                raise RegistrationError(
                    f"Two questions have the {attribute} {value!r}: that of {other} and that of "
                    f"{origin}. Uninstall one of them, or rename its {attribute}."
                )
            origins[attribute, value] = origin
        questions.append(question)
    return tuple(sorted(questions, key=lambda question: (question.order, question.name)))


QUESTIONS = registered(tuple(entry_points(group=GROUP)))
"""All of them, ours in the order of the documentation."""


def question_of(request: Specified) -> Question:
    """Return the question that a request asks; also a request of a class derived from its class.

    Raises
    ------
    TypeError
        If it is no request.
    """
    for question in QUESTIONS:
        if isinstance(request, question.request):
            return question
    raise TypeError(f"{type(request).__name__} is no question's request")
