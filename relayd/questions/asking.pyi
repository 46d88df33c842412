from collections.abc import Callable, Coroutine
from inspect import Signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.request import BroadcastRequest
from planner.comparison.plan import Ranking
from planner.comparison.request import ComparisonRequest
from planner.fields.specified import Specified
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
from relayd.questions.question import Question

P = ParamSpec("P")
A = TypeVar("A")

def signature(question: Question) -> Signature: ...
def documentation(question: Question) -> str: ...
def _method(request: Callable[P, Specified], _: type[A]) -> Callable[Concatenate[Any, P], A]: ...
def _coroutine(
    request: Callable[P, Specified], _: type[A]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]: ...

class Asking:
    plan = _method(TransferRequest, Plan)
    shuffle = _method(ShuffleRequest, ShufflePlan)
    broadcast = _method(BroadcastRequest, BroadcastPlan)
    schedule = _method(ScheduleRequest, SchedulePlan)
    place_reduce = _method(ReduceRequest, ReducePlacement)
    place_tasks = _method(TasksRequest, TaskPlacement)
    compare_candidates = _method(ComparisonRequest, Ranking)
    replan = _method(ReplanRequest, Replan)

class AskingAsync:
    plan = _coroutine(TransferRequest, Plan)
    shuffle = _coroutine(ShuffleRequest, ShufflePlan)
    broadcast = _coroutine(BroadcastRequest, BroadcastPlan)
    schedule = _coroutine(ScheduleRequest, SchedulePlan)
    place_reduce = _coroutine(ReduceRequest, ReducePlacement)
    place_tasks = _coroutine(TasksRequest, TaskPlacement)
    compare_candidates = _coroutine(ComparisonRequest, Ranking)
    replan = _coroutine(ReplanRequest, Replan)
