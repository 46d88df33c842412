"""One volume to several regions; the answer is :class:`planner.broadcast.plan.BroadcastPlan`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.fields.shared import DEFAULT_TIME_VALUE_USD_PER_H, DEFAULT_VOLUME_GB
from planner.model.answer import Answer
from relayd.http.models.common import Name
from relayd.http.models.plans import MOST_FIGURE, Circumstances, Places, Positive
from relayd.http.models.questions import QuestionModel
from relayd.sources.wan import Wan

MOST_DESTINATIONS = 100


class BroadcastQuestion(Circumstances, Places, QuestionModel):
    """One volume that several regions shall have."""

    src: Name
    destinations: list[Name] = Field(min_length=1, max_length=MOST_DESTINATIONS)
    volume_gb: float = Field(
        DEFAULT_VOLUME_GB, ge=1e-9, le=MOST_VOLUME_GB, description="Of one copy, in GB."
    )
    objective: Literal["value", "time", "cost"] = Field(
        "value", description="`value` is least cost plus time at `time_value_usd_per_h`."
    )
    time_value_usd_per_h: Annotated[float, Field(ge=0, le=MOST_FIGURE)] | Literal["inf"] = Field(
        DEFAULT_TIME_VALUE_USD_PER_H, description="What an hour is worth; `inf` is least time."
    )
    deadline_s: Positive | None = Field(None, description="When the last must have everything.")
    relays: Literal["any", "ends", "none"] = Field(
        "any", description="Who forwards: any region, destinations alone, or nobody."
    )
    frontier: bool = Field(False, description="Whether to add the cost-time frontier.")

    def ask(self, wan: Wan) -> Answer:
        """Return a :class:`~planner.broadcast.plan.BroadcastPlan`."""
        return wan.broadcast(self.src, self.destinations, **self.said("src", "destinations"))
