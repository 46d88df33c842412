"""Questions about many transfers; the answer is :class:`planner.shuffle.plan.ShufflePlan`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.model.answer import Answer
from relayd.http.models.common import Asked, Name
from relayd.http.models.plans import Circumstances, Places, Positive
from relayd.http.models.questions import QuestionModel
from relayd.sources.wan import Wan

MOST_DEMANDS = 10_000


class Demand(Asked):
    """What one region sends another."""

    src: Name
    dst: Name
    volume_gb: float = Field(ge=0, le=MOST_VOLUME_GB)


class ShuffleQuestion(Circumstances, Places, QuestionModel):
    """Many transfers that start together."""

    demands: list[Demand] = Field(min_length=1, max_length=MOST_DEMANDS)
    objective: Literal["time", "cost"] = Field(
        "time", description="`time`: the last ends as soon as possible; `cost`: least cost."
    )
    deadline_s: Positive | None = Field(None, description="Latest end of the last pair.")
    relays: Literal["any", "none"] = "any"
    frontier: bool = Field(False, description="Whether to add the cost-time frontier.")

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.shuffle.plan.ShufflePlan`."""
        demands_gb = [(demand.src, demand.dst, demand.volume_gb) for demand in self.demands]
        return wan.shuffle(demands_gb, **self.said("demands"))
