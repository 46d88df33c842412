"""Batches of plans; the answer to one question is :class:`planner.transfer.plan.Plan`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.model.network import Snapshot
from planner.transfer.plan import Plan
from relayd.http.models.common import RequestModel, ResponseModel
from relayd.http.models.problems import Problem


class PlanBatch(RequestModel):
    """Many transfers, each answered on its own."""

    plans: list[dict[str, Any]] = Field(
        min_length=1,
        description="Each a PlanRequest; a wrong one gets a problem of its own.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/PlanRequest"}},
    )


class BatchItem(ResponseModel):
    """One answer of a batch: a plan, or the problem with its request."""

    plan: Plan | None
    problem: Problem | None


class BatchAnswer(ResponseModel):
    """Answers in the order of the requests."""

    snapshot: Snapshot
    results: list[BatchItem]
