"""The questions that relayd answers: what each is called on every surface.

What a question takes is in its request class, a specification that command line, HTTP, client and
documentation are made from; see :mod:`planner.fields.specified`. Classes are imported when they are
needed, so that a command loads one question alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, cast

from planner.fields.specified import Specified
from planner.model.answer import Answer


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
    request_at, answer_at : str
        Where its request class and its answer class are: ``module:name``.
    solve_at : str
        The function of :mod:`relayd.questions.answering` that answers it.
    example : mapping
        A worked example, as JSON.
    """

    name: str
    method: str
    path: str
    command: str
    summary: str
    request_at: str
    answer_at: str
    solve_at: str
    example: Mapping[str, Any] = field(compare=False)

    @cached_property
    def request(self) -> type[Specified]:
        """The class that specifies its fields."""
        return cast("type[Specified]", _load(self.request_at))

    @cached_property
    def answer(self) -> type[Answer]:
        """The class of its answers."""
        return cast("type[Answer]", _load(self.answer_at))

    @cached_property
    def solve(self) -> Callable[[Any, Any], Answer]:
        """The function that answers a request on a network view."""
        place = f"relayd.questions.answering:{self.solve_at}"
        return cast("Callable[[Any, Any], Answer]", _load(place))


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


_US_TO_BRAZIL = {"src": "aws:us-east-1", "dst": "aws:sa-east-1"}
QUESTIONS = (
    Question(
        "transfer",
        "plan",
        "/v1/plans",
        "plan",
        "Recommend how to move a volume",
        "planner.transfer.request:TransferRequest",
        "planner.transfer.plan:Plan",
        "plan_transfer",
        {"src": "us-east", "dst": "sa", "volume_gb": 500, "vms": 4, "avoid": ["provider:azure"]},
    ),
    Question(
        "shuffle",
        "shuffle",
        "/v1/shuffles",
        "shuffle",
        "Recommend how to run many transfers",
        "planner.shuffle.request:ShuffleRequest",
        "planner.shuffle.plan:ShufflePlan",
        "plan_shuffle",
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
        "broadcast",
        "Recommend how to bring one volume to several regions",
        "planner.broadcast.request:BroadcastRequest",
        "planner.broadcast.plan:BroadcastPlan",
        "plan_broadcast",
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
        "schedule",
        "Admit transfers with deadlines",
        "planner.schedule.request:ScheduleRequest",
        "planner.schedule.plan:SchedulePlan",
        "plan_schedule",
        {"transfers": [{"id": "backup", **_US_TO_BRAZIL, "volume_gb": 200, "deadline_s": 7200}]},
    ),
    Question(
        "place-reduce",
        "place_reduce",
        "/v1/placements/reduce",
        "place reduce",
        "Recommend where to reduce",
        "planner.placement.request:ReduceRequest",
        "planner.placement.plan:ReducePlacement",
        "place_reduce",
        {"input_gb": {"aws:us-east-1": 100, "aws:eu-west-1": 40}, "selectivity": 0.5},
    ),
    Question(
        "place-tasks",
        "place_tasks",
        "/v1/placements/tasks",
        "place tasks",
        "Recommend on which VM to run which task",
        "planner.placement.request:TasksRequest",
        "planner.placement.plan:TaskPlacement",
        "place_tasks",
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
        "compare",
        "Rank providers, regions and VM types for a use",
        "planner.comparison.request:ComparisonRequest",
        "planner.comparison.plan:Ranking",
        "compare_candidates",
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
        "replan",
        "Say whether to keep to a plan in progress",
        "planner.replanning.request:ReplanRequest",
        "planner.replanning.plan:Replan",
        "replan_in_progress",
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
    for cls in type(request).__mro__:
        place = f"{cls.__module__}:{cls.__name__}"
        for question in QUESTIONS:
            if question.request_at == place:
                return question
    raise TypeError(f"{type(request).__name__} is no question's request")
