"""The methods that ask questions, with signatures and help from the questions' specifications.

A class that has ``ask(request)`` gets them from :class:`Asking`, or from :class:`AskingAsync` if
its ``ask`` is a coroutine. Type checkers take their signatures from the request classes; at run
time a method is made when it is first used, so that a command loads one question alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from inspect import Parameter, Signature, formatannotation  # a command asks without a method
from textwrap import fill
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from planner.fields.specified import Field, Specified, fields_of
from relayd.questions.registry import QUESTIONS, Question

P = ParamSpec("P")
A = TypeVar("A")


if TYPE_CHECKING:
    from planner.broadcast.plan import BroadcastPlan
    from planner.broadcast.request import BroadcastRequest
    from planner.comparison.plan import Ranking
    from planner.comparison.request import ComparisonRequest
    from planner.placement.plan import ReducePlacement, TaskPlacement
    from planner.placement.request import ReduceRequest, TasksRequest
    from planner.replanning.plan import Replan
    from planner.replanning.request import ReplanRequest
    from planner.schedule.plan import SchedulePlan
    from planner.schedule.request import ScheduleRequest
    from planner.shuffle.plan import ShufflePlan
    from planner.shuffle.request import ShuffleRequest
    from planner.transfer.plan import Plan
    from planner.transfer.request import TransferRequest

    def _method(
        request: Callable[P, Specified], answer: type[A]
    ) -> Callable[Concatenate[Any, P], A]: ...
    def _coroutine(
        request: Callable[P, Specified], answer: type[A]
    ) -> Callable[Concatenate[Any, P], Awaitable[A]]: ...


class _Method:
    """A method that is made from its question's specification when it is first used."""

    def __init__(self, question: Question, *, awaited: bool) -> None:
        self.question, self.awaited = question, awaited

    def __get__(self, instance: object, owner: type) -> Any:
        return self.function.__get__(instance, owner)

    @cached_property
    def function(self) -> Any:
        question = self.question
        request = question.request

        async def ask_and_wait(self: Any, *values: Any, **keywords: Any) -> Any:
            return await self.ask(request(*values, **keywords))

        def ask_at_once(self: Any, *values: Any, **keywords: Any) -> Any:
            return self.ask(request(*values, **keywords))

        ask: Any = ask_and_wait if self.awaited else ask_at_once
        ask.__name__ = question.method
        ask.__qualname__ = f"Asking.{question.method}"
        ask.__doc__ = documentation(question)
        ask.__signature__ = signature(question)
        return ask


class Asking:
    """Methods that ask."""

    if TYPE_CHECKING:
        plan = _method(TransferRequest, Plan)
        shuffle = _method(ShuffleRequest, ShufflePlan)
        broadcast = _method(BroadcastRequest, BroadcastPlan)
        schedule = _method(ScheduleRequest, SchedulePlan)
        place_reduce = _method(ReduceRequest, ReducePlacement)
        place_tasks = _method(TasksRequest, TaskPlacement)
        compare_candidates = _method(ComparisonRequest, Ranking)
        replan = _method(ReplanRequest, Replan)


class AskingAsync:
    """Coroutines that ask."""

    if TYPE_CHECKING:
        plan = _coroutine(TransferRequest, Plan)
        shuffle = _coroutine(ShuffleRequest, ShufflePlan)
        broadcast = _coroutine(BroadcastRequest, BroadcastPlan)
        schedule = _coroutine(ScheduleRequest, SchedulePlan)
        place_reduce = _coroutine(ReduceRequest, ReducePlacement)
        place_tasks = _coroutine(TasksRequest, TaskPlacement)
        compare_candidates = _coroutine(ComparisonRequest, Ranking)
        replan = _coroutine(ReplanRequest, Replan)


for _question in QUESTIONS:
    setattr(Asking, _question.method, _Method(_question, awaited=False))
    setattr(AskingAsync, _question.method, _Method(_question, awaited=True))


def signature(question: Question) -> Signature:
    """Return the signature of the method that asks a question."""
    positional = question.request.positional()

    def parameter(field: Field) -> Parameter:
        kind = (
            Parameter.POSITIONAL_OR_KEYWORD if field.name in positional else Parameter.KEYWORD_ONLY
        )
        default = Parameter.empty if field.required else field.default
        return Parameter(field.name, kind, default=default, annotation=field.accepts)

    fields = fields_of(question.request).values()
    itself = Parameter("self", Parameter.POSITIONAL_ONLY)
    asked = sorted(map(parameter, fields), key=lambda one: one.kind)
    return Signature([itself, *asked], return_annotation=question.answer)


def documentation(question: Question) -> str:
    """Return the help of the method that asks a question."""
    lines = [f"{question.summary}.", "", "Parameters", "----------"]
    for field in fields_of(question.request).values():
        named = formatannotation(field.accepts).replace("typing.", "")
        lines.append(f"{field.name} : {named}")
        example = f" Such as {field.example}." if field.example else ""
        no_effect = "Has no effect. " if field.deprecated else ""
        text = f"{no_effect}{field.help}{example}"
        lines.append(fill(text, 92, initial_indent="    ", subsequent_indent="    "))
    lines += ["", "Raises", "------", "InputError, InfeasibleError, DataError"]
    lines.append("    See :mod:`planner.model.errors`.")
    return "\n".join(lines)
