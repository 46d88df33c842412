"""What has changed since an earlier snapshot."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.estimate import Kind
from planner.model.network import Snapshot
from probes.samples import Metric
from relayd.http.models.common import Estimate, Page, ResponseModel
from relayd.http.models.network import SnapshotSeen

DAY_S = 86400.0
MOST_S = 100 * 366 * DAY_S


class ChangesQuery(Page):
    """Since when."""

    since_s: float = Field(DAY_S, gt=0, le=MOST_S, description="Seconds ago; a day by default.")
    since: str | None = Field(
        None,
        min_length=1,
        max_length=40,
        description="In place of `since_s`, a time: RFC 3339, such as 2026-05-01T08:00:00Z.",
    )
    source: Kind | None = Field(
        None, description="Only changes whose new estimate is of this source."
    )


class ChangeSeen(ResponseModel):
    """An estimate that left its bounds."""

    src: str = Field(description="Kind of a link, or the region of a cap.")
    dst: str | None = Field(description="Destination of a link; null for a cap.")
    metric: Literal[
        "aggregate_gbps", "per_flow_mbps", "rtt_ms", "egress_gbps", "ingress_gbps", "window_mb"
    ]
    before: Estimate = Field(description="As it was then, with bounds widened for age.")
    after: Estimate
    ratio: float | None = Field(description="Now over then; null where that was 0.")


class ShiftSeen(ResponseModel):
    """A lasting change of level that was found in the samples of a link."""

    src: str
    dst: str
    metric: Metric
    at_s: float = Field(description="When the first sample of the new level was measured.")
    found_at_s: float = Field(description="When the sample was measured that settled it.")
    before: float = Field(description="In the unit that the metric's name ends in.")
    after: float


class Changes(ResponseModel):
    """What has changed, the largest ratio first."""

    snapshot: Snapshot
    since_s: float = Field(description="The time that was asked for, seconds since 1970 (UTC).")
    before: SnapshotSeen | None = Field(
        description="The snapshot that was the newest then; null where none is kept that is as old."
    )
    oldest: SnapshotSeen | None = Field(description="The oldest that is kept.")
    changes: list[ChangeSeen]
    total: int = Field(description="Of these changes, on all pages.")
    total_by_source: dict[Kind, int] = Field(
        description="Of all changes, by the source of the new estimate."
    )
    new_regions: list[str]
    lost_regions: list[str]
    shifts: list[ShiftSeen] = Field(description="Found since then, the newest first.")
    next_cursor: str | None
