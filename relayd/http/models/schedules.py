"""Transfers with deadlines; the answer is :class:`planner.schedule.plan.SchedulePlan`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.model.answer import Answer
from planner.schedule.document import schedule_from
from planner.schedule.timed_transfer import MOST_S
from relayd.http.models.common import Asked, Name
from relayd.http.models.plans import MOST_FIGURE, Circumstances, Places
from relayd.http.models.questions import QuestionModel
from relayd.sources.wan import Wan

MOST_TRANSFERS = 1000


class TimedTransfer(Asked):
    """A transfer that has a window of time."""

    id: Name
    src: Name
    dst: Name
    volume_gb: float = Field(ge=1e-9, le=MOST_VOLUME_GB)
    start_s: float = Field(0.0, ge=0, le=MOST_S, description="From the schedule's time 0.")
    deadline_s: Annotated[float, Field(gt=0, le=MOST_S)] | None = Field(
        None, description="From time 0; without one, it takes what others leave."
    )
    priority: int = Field(0, ge=-1000, le=1000, description="Higher goes first.")
    value_usd: Annotated[float, Field(ge=0, le=MOST_FIGURE)] | None = Field(
        None, description="What it is worth in time; decides among equal priorities."
    )


class ScheduleQuestion(Circumstances, Places, QuestionModel):
    """Transfers to admit, maybe beside a schedule in progress."""

    transfers: list[TimedTransfer] = Field([], max_length=MOST_TRANSFERS)
    existing: dict[str, Any] | None = Field(
        None, description="An answer of this endpoint, whose promises are kept."
    )
    now_s: float = Field(0.0, ge=0, le=MOST_S, description="On the schedule's clock.")
    rates: Literal["expected", "low"] = Field(
        "expected", description="What promises rest on: expected figures or their low bounds."
    )
    relays: Literal["any", "none"] = "any"
    explain: int = Field(
        10, ge=0, le=100, description="For how many refused ones to say what would do."
    )

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.schedule.plan.SchedulePlan`."""
        existing = None if self.existing is None else schedule_from(self.existing)
        transfers = [transfer.model_dump(exclude_unset=True) for transfer in self.transfers]
        said = self.said("transfers", "existing")
        return wan.schedule(transfers or (None if existing else []), existing=existing, **said)
