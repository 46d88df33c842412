"""Batches of plans, and scripts; one answer is :class:`planner.transfer.plan.Plan`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.model.network import Snapshot
from planner.transfer.plan import Plan
from relayd.emitting.formats import DEFAULT_PORT, FORMATS
from relayd.http.models.common import Name, RequestModel, ResponseModel
from relayd.http.problems import Problem


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


class ScriptRequest(RequestModel):
    """A plan of one transfer, and the tool that shall run it."""

    plan: dict[str, Any] = Field(description="As `/v1/plans` answered it.")
    emit: str = Field(description="The tool.", json_schema_extra={"enum": [*FORMATS]})
    endpoints: dict[str, Name | list[Name]] = Field(
        {}, max_length=100, description="Region of the plan to the address of its VM, or several."
    )
    port: int = Field(DEFAULT_PORT, ge=1, le=65535, description="That relays and ends listen on.")


class ScriptAnswer(ResponseModel):
    """A script, or a configuration of a tool."""

    snapshot: Snapshot
    script: str
