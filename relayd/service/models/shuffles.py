"""Questions about many transfers; the answer is :class:`planner.shuffle_plan.ShufflePlan`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.request import MOST_VOLUME_GB
from relayd.service.models.common import Asked, Name
from relayd.service.models.plans import Circumstances, Places, Positive

MOST_DEMANDS = 10_000


class Demand(Asked):
    """What one region sends another."""

    src: Name
    dst: Name
    volume_gb: float = Field(ge=0, le=MOST_VOLUME_GB)


class ShuffleQuestion(Circumstances, Places):
    """Many transfers that start together."""

    demands: list[Demand] = Field(min_length=1, max_length=MOST_DEMANDS)
    objective: Literal["time", "cost"] = Field(
        "time", description="`time`: the last ends as soon as possible; `cost`: least cost."
    )
    deadline_s: Positive | None = Field(None, description="Latest end of the last pair.")
    relays: Literal["any", "none"] = "any"
    frontier: bool = Field(False, description="Whether to add the cost-time frontier.")

    def demands_gb(self) -> list[tuple[str, str, float]]:
        """Return the demands as :meth:`relayd.wan.Wan.shuffle` takes them."""
        return [(demand.src, demand.dst, demand.volume_gb) for demand in self.demands]

    def keywords(self) -> dict[str, Any]:
        """Return everything else that was said, as its keywords."""
        return self.model_dump(exclude_unset=True, exclude={"demands"})
