"""A plan in progress; the answer is :class:`planner.replanning.plan.Replan`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.model.answer import Answer
from relayd.http.models.common import Asked, Name
from relayd.http.models.plans import MOST_FIGURE, MOST_PLACES
from relayd.http.models.questions import QuestionModel
from relayd.sources.wan import Wan

Gb = Annotated[float, Field(ge=0, le=MOST_VOLUME_GB)]


class Moved(Asked):
    """What has arrived of one pair of a shuffle."""

    src: Name
    dst: Name
    volume_gb: Gb


class ReplanQuestion(QuestionModel):
    """A plan that is being carried out, and how far it has come."""

    plan: dict[str, Any] = Field(
        description="An answer of /v1/plans, /v1/shuffles or /v1/broadcasts."
    )
    moved_gb: Gb | list[Moved] = Field(
        description="What has arrived: in all, or of each pair of a shuffle."
    )
    elapsed_s: float = Field(ge=0, le=MOST_FIGURE, description="Since sending began.")
    changes: int = Field(0, ge=0, le=10_000, description="How often it was changed before.")
    month_to_date_gb: dict[Name, Annotated[float, Field(ge=0, le=MOST_FIGURE)]] = Field(
        {}, max_length=MOST_PLACES
    )
    vm_types: dict[Name, Name] = Field({}, max_length=MOST_PLACES)

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.replanning.plan.Replan`."""
        moved_gb = (
            {(pair.src, pair.dst): pair.volume_gb for pair in self.moved_gb}
            if isinstance(self.moved_gb, list)
            else self.moved_gb
        )
        return wan.replan(
            self.plan,
            moved_gb=moved_gb,
            elapsed_s=self.elapsed_s,
            changes=self.changes,
            month_to_date_gb=self.month_to_date_gb,
            vm_types=self.vm_types,
        )
