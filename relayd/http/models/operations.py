"""Health, readiness and the watcher's status, for operators."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.model.network import Snapshot
from relayd.http.models.common import ResponseModel


class Health(ResponseModel):
    """The process answers."""

    status: Literal["ok"]


class WatchHealth(ResponseModel):
    """How the watcher is, as far as anyone may know."""

    role: str = Field(description="`prober`, `standby` or `stopped`.")
    last_look_age_s: float | None = Field(description="Since the last liveness probe.")
    legs_down: int | None
    legs_degraded: int | None


class Readiness(ResponseModel):
    """Whether requests should be sent here."""

    status: Literal["ready", "not ready"]
    reasons: list[str] = Field(description="Why not; empty where ready.")
    warnings: list[str] = Field(
        description="What to look into though it is ready: snapshots that fail or are overdue, "
        "since when and why, and a disk of the store that is nearly full."
    )
    snapshot: Snapshot
    snapshot_age_s: float | None = Field(
        description="Since its newest sample; null for a baseline."
    )
    checked_at_s: float
    watch: WatchHealth | None = Field(
        description="How the watcher of the fleet is; null where nothing is watched."
    )


class Watch(ResponseModel):
    """The watcher of the fleet."""

    snapshot: Snapshot
    watch: dict[str, Any] | None = Field(
        description="Its role, links, budget, campaigns and webhook; null where nothing is watched."
    )
