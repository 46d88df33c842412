"""Campaigns: what to measure for how much, and how far it is."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.model.network import Snapshot
from relayd.http.models.common import Name, RequestModel, ResponseModel

MOST_PAIRS = 1000


class CampaignRequest(RequestModel):
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


class ProbeCounts(ResponseModel):
    """How many probes are in which state."""

    planned: int
    done: int
    failed: int


class CampaignSeen(ResponseModel):
    """A campaign and how far it is."""

    id: int
    started_at_s: float
    finished_at_s: float | None = Field(description="null while something is left to do.")
    is_running: bool = Field(description="Whether some process is running it now.")
    may_be_stopped: bool = Field(
        description="Whether it is running and `stop` ends it; the watcher would go on."
    )
    options: dict[str, Any]
    probes: ProbeCounts
    sent_gb: float
    usd: float


class StageSeen(ResponseModel):
    """Probes that were chosen together, and how far they are."""

    stage: str = Field(description="`rtt`, `per-flow`, `caps`, `aggregate 1`, ...")
    planned: int
    done: int
    failed: int
    sent_gb: float
    usd: float


class FailuresSeen(ResponseModel):
    """Probes that failed for the same reason."""

    problem: str = Field(description="What happened.")
    remedy: str = Field(description="What to do about it; empty where none is known.")
    stages: list[str]
    probes: int = Field(description="How many.")
    pairs: list[list[str]] = Field(description="Source and destination host, the first 20.")
    hosts: list[str] = Field(description="Hosts that take part in all of them.")
    attempts: int
    last_at_s: float | None


class CampaignAnswer(ResponseModel):
    """One campaign."""

    snapshot: Snapshot
    campaign: CampaignSeen
    stages: list[StageSeen] = Field(description="In the order in which they were planned.")
    failures: list[FailuresSeen] = Field(description="By reason, the most frequent first.")
    progress: dict[str, Any] | None = Field(
        description="The last `campaign` event of one that is not finished, with its `at_s`: "
        "`status`, `stage`, `round` of `rounds`, `done` of `total`, `left_s`."
    )


class CampaignPart(ResponseModel):
    """What some probes take at most."""

    rounds: int
    volume_gb: float
    egress_usd: float


class RegionPart(ResponseModel):
    """Volumes that a region sends and receives, and the cost of its egress."""

    sent_gb: float
    received_gb: float
    egress_usd: float


class ForecastSeen(CampaignPart):
    """Upper bounds of a campaign's time, volume and cost."""

    duration_s: float
    phases: dict[str, CampaignPart]
    regions: dict[str, RegionPart]


class RegretSeen(ResponseModel):
    """Expected regret: the share of throughput lost for lack of measurements."""

    before: float = Field(
        description="The mean over all ordered pairs of regions of which something is known, now."
    )
    after: float = Field(description="The same after all of it, if the budget allows that.")
    saved_per_usd: float | None = Field(
        description="What a dollar of egress saves of it; null where that or its cost is nothing."
    )
    unknown_regions: list[str] = Field(
        description="Regions of the fleet of which nothing is known; the regret is not of them."
    )


class ForecastAnswer(ResponseModel):
    """The forecast of a campaign, and of measuring all pairs."""

    snapshot: Snapshot
    campaign: ForecastSeen
    all_pairs: ForecastSeen = Field(description="All pairs with 64 connections for 5 s.")
    regret: RegretSeen


class Campaigns(ResponseModel):
    """A page of campaigns, the newest first."""

    snapshot: Snapshot
    campaigns: list[CampaignSeen]
    next_cursor: str | None
