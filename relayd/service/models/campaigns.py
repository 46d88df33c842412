"""Campaigns: what to measure for how much, and how far it is."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.network import Snapshot
from relayd.service.models.common import Answered, Asked, Name

MOST_PAIRS = 1000


class CampaignRequest(Asked):
    """What to measure with the fleet of the service."""

    budget_usd: float = Field(gt=0, le=1e6, description="Most to spend on egress.")
    phases: list[Literal["rtt", "per-flow", "caps", "aggregate"]] | None = Field(
        None, min_length=1, max_length=4, description="Which to measure; all where left out."
    )
    pairs: list[Name] = Field(
        [], max_length=MOST_PAIRS, description="Only these, as `source>destination` of hosts."
    )
    thorough: bool = Field(False, description="All pairs, not only those that matter.")
    connections: int = Field(64, ge=1, le=128, description="Most TCP connections of a probe.")
    max_minutes: float | None = Field(None, gt=0, le=10_000, description="Begin nothing later.")
    resume: bool = Field(False, description="Go on with the last campaign, if it is unfinished.")


class ProbeCounts(Answered):
    """How many probes are in which state."""

    planned: int
    done: int
    failed: int


class CampaignSeen(Answered):
    """A campaign and how far it is."""

    id: int
    started_at_s: float
    finished_at_s: float | None = Field(description="null while something is left to do.")
    is_running: bool = Field(description="Whether some process is running it now.")
    options: dict[str, Any]
    probes: ProbeCounts
    sent_gb: float
    usd: float


class CampaignAnswer(Answered):
    """One campaign."""

    snapshot: Snapshot
    campaign: CampaignSeen


class Campaigns(Answered):
    """A page of campaigns, the newest first."""

    snapshot: Snapshot
    campaigns: list[CampaignSeen]
    next_cursor: str | None
