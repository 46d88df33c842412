"""The questions that relayd answers: what each is called on every surface.

What a question takes is in its request class, a specification that command line, HTTP, client and
documentation are made from; see :mod:`planner.fields.specified`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from dataclasses import field as of_class
from importlib import import_module
from inspect import Parameter, Signature, formatannotation
from textwrap import fill
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.request import BroadcastRequest
from planner.comparison.plan import Ranking
from planner.comparison.request import ComparisonRequest
from planner.fields.specified import Field, Specified, fields_of
from planner.model.answer import Answer
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
from relayd.questions import answering


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes
    ----------
    name : str
    method : str
        Of :class:`~relayd.sources.wan.Wan` and of clients.
    path : str
        Under which the HTTP service answers it.
    command : str
        That asks it on the command line.
    summary : str
        What an answer does: an imperative sentence without a full stop.
    request, answer : type
    solve : callable
        That answers a request on a network view.
    example : mapping
        A worked example, as JSON.
    """

    name: str
    method: str
    path: str
    command: str
    summary: str
    request: type[Specified]
    answer: type[Answer]
    solve: Callable[[Any, Any], Answer]
    example: Mapping[str, Any] = of_class(compare=False)


_US_TO_BRAZIL = {"src": "aws:us-east-1", "dst": "aws:sa-east-1"}
QUESTIONS = (
    Question(
        "transfer",
        "plan",
        "/v1/plans",
        "plan",
        "Recommend how to move a volume",
        TransferRequest,
        Plan,
        answering.plan_transfer,
        {"src": "us-east", "dst": "sa", "volume_gb": 500, "vms": 4, "avoid": ["provider:azure"]},
    ),
    Question(
        "shuffle",
        "shuffle",
        "/v1/shuffles",
        "plan shuffle",
        "Recommend how to run many transfers",
        ShuffleRequest,
        ShufflePlan,
        answering.plan_shuffle,
        {
            "demands": [
                {**_US_TO_BRAZIL, "volume_gb": 100},
                {"src": "aws:us-east-1", "dst": "aws:eu-west-1", "volume_gb": 50},
            ],
            "vms": 2,
        },
    ),
    Question(
        "broadcast",
        "broadcast",
        "/v1/broadcasts",
        "plan broadcast",
        "Recommend how to bring one volume to several regions",
        BroadcastRequest,
        BroadcastPlan,
        answering.plan_broadcast,
        {
            "src": "aws:us-east-1",
            "destinations": ["aws:eu-west-1", "aws:ap-northeast-1"],
            "volume_gb": 50,
        },
    ),
    Question(
        "schedule",
        "schedule",
        "/v1/schedules",
        "plan schedule",
        "Admit transfers with deadlines",
        ScheduleRequest,
        SchedulePlan,
        answering.plan_schedule,
        {"transfers": [{"id": "backup", **_US_TO_BRAZIL, "volume_gb": 200, "deadline_s": 7200}]},
    ),
    Question(
        "place-reduce",
        "place_reduce",
        "/v1/placements/reduce",
        "plan place reduce",
        "Recommend where to reduce",
        ReduceRequest,
        ReducePlacement,
        answering.place_reduce,
        {"input_gb": {"aws:us-east-1": 100, "aws:eu-west-1": 40}, "selectivity": 0.5},
    ),
    Question(
        "place-tasks",
        "place_tasks",
        "/v1/placements/tasks",
        "plan place tasks",
        "Recommend on which VM to run which task",
        TasksRequest,
        TaskPlacement,
        answering.place_tasks,
        {
            "tasks": [{"id": "map", "cpus": 2}, {"id": "reduce", "cpus": 2}],
            "traffic": [{"src": "map", "dst": "reduce", "volume_gb": 10}],
            "vms": [
                {"id": "a", "region": "aws:us-east-1", "cpus": 2},
                {"id": "b", "region": "aws:eu-west-1", "cpus": 4},
            ],
        },
    ),
    Question(
        "comparison",
        "compare_candidates",
        "/v1/comparisons",
        "plan compare",
        "Rank providers, regions and VM types for a use",
        ComparisonRequest,
        Ranking,
        answering.compare_candidates,
        {
            "regions": ["aws:sa-east-1", "aws:eu-west-1"],
            "volume_gb": 100,
            "candidates": ["provider:aws", "provider:gcp"],
            "most": 5,
        },
    ),
    Question(
        "replan",
        "replan",
        "/v1/replans",
        "transfers replan",
        "Say whether to keep to a plan in progress",
        ReplanRequest,
        Replan,
        answering.replan_in_progress,
        {
            "plan": {
                "plan_id": "7a0c6c1f2b3d",
                "snapshot": {"id": "1", "as_of": "2026-01-01T00:00:00Z", "source": "store"},
                "request": {**_US_TO_BRAZIL, "volume_gb": 500},
                "throughput_gbps": 5.0,
                "paths": [
                    {"regions": [*_US_TO_BRAZIL.values()], "throughput_gbps": 5.0, "share": 1.0}
                ],
                "vms": dict.fromkeys(_US_TO_BRAZIL.values(), 1),
            },
            "moved_gb": 120,
            "elapsed_s": 600,
        },
    ),
)
"""All of them, in the order of the documentation."""


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


def _printed(answer: object) -> str:
    # By its name: it asks questions, and imports their registry.
    return str(import_module("relayd.cli.questions.answers").printed(answer))


Answer.__str__ = _printed  # type: ignore[method-assign]
P = ParamSpec("P")
A = TypeVar("A")


def _method(request: Callable[P, Specified], _: type[A]) -> Callable[Concatenate[Any, P], A]:
    def ask(self: Any, /, *values: P.args, **keywords: P.kwargs) -> A:
        return cast("A", self.ask(request(*values, **keywords)))

    return ask


def _coroutine(
    request: Callable[P, Specified], _: type[A]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]:
    async def ask(self: Any, /, *values: P.args, **keywords: P.kwargs) -> A:
        return cast("A", await self.ask(request(*values, **keywords)))

    return ask


class Asking:
    """Methods that ask."""

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

    plan = _coroutine(TransferRequest, Plan)
    shuffle = _coroutine(ShuffleRequest, ShufflePlan)
    broadcast = _coroutine(BroadcastRequest, BroadcastPlan)
    schedule = _coroutine(ScheduleRequest, SchedulePlan)
    place_reduce = _coroutine(ReduceRequest, ReducePlacement)
    place_tasks = _coroutine(TasksRequest, TaskPlacement)
    compare_candidates = _coroutine(ComparisonRequest, Ranking)
    replan = _coroutine(ReplanRequest, Replan)


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
        example = f" For example: {field.example}." if field.example else ""
        no_effect = "Has no effect. " if field.deprecated else ""
        text = f"{no_effect}{field.help}{example}"
        lines.append(fill(text, 92, initial_indent="    ", subsequent_indent="    "))
    lines += ["", "Raises", "------", "InputError, InfeasibleError, DataError"]
    lines.append("    See :mod:`planner.model.errors`.")
    return "\n".join(lines)


for _question in QUESTIONS:
    _about = documentation(_question), signature(_question)
    for _class in (Asking, AskingAsync):
        _asks = vars(_class)[_question.method]
        _asks.__name__, _asks.__qualname__ = _question.method, f"Asking.{_question.method}"
        _asks.__doc__, _asks.__signature__ = _about
