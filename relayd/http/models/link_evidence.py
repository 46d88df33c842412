"""Samples of a link over time, its events, and the evidence of its figures."""

from __future__ import annotations

from pydantic import Field

from planner.model.network import Snapshot
from probes.estimation.provenance import Kind, Quantity
from probes.importers.limits import MAX_TIME_S
from probes.samples import Metric
from relayd.http.models.common import Estimate, Page, RequestModel, ResponseModel
from relayd.http.models.network import SampleSeen
from relayd.store.links.events import EventKind

MOST_BINS = 1000
MOST_LISTED = 5000
LEAST_FOR_SHAPE = 8
"""Fewer samples have no distribution worth showing."""


class SummaryQuery(RequestModel):
    """Of what to sum up the samples of a link."""

    metric: Metric = "rtt_ms"
    bins: int = Field(200, ge=1, le=MOST_BINS, description="Into how many stretches of time.")
    since_s: float | None = Field(
        None, ge=0, le=MAX_TIME_S, description="Only what was measured at or after this time."
    )
    until_s: float | None = Field(
        None, ge=0, le=MAX_TIME_S, description="Only what was measured at or before this time."
    )
    list_up_to: int = Field(
        0,
        ge=0,
        le=MOST_LISTED,
        description="Also list the samples one by one where they are no more than this.",
    )


class MetricSeen(ResponseModel):
    """How much was measured of one metric of a link."""

    metric: Metric
    samples: int
    first_at_s: float
    last_at_s: float


class Bin(ResponseModel):
    """Samples of a stretch of time, values in the metric's unit."""

    begin_s: float = Field(description="Of the first sample in it.")
    end_s: float = Field(description="Of the last sample in it.")
    samples: int
    low: float
    median: float
    high: float


class Bar(ResponseModel):
    """A bar of a histogram: from `low` up to but without `high`; the last bar with it."""

    low: float
    high: float
    samples: int


class Point(ResponseModel):
    """One sample."""

    at_s: float
    value: float
    connections: int | None


class LinkSummary(ResponseModel):
    """The samples of a link and metric, small enough to look at."""

    snapshot: Snapshot
    src: str
    dst: str
    metric: Metric
    metrics: list[MetricSeen] = Field(description="All that this link has samples of.")
    samples: int = Field(description="How many of this metric are in this time.")
    compacted: int = Field(
        description="How many of them are no longer kept one by one: they are in the bins, not in "
        "the distribution."
    )
    bins: list[Bin] = Field(description="Stretches of equal length; those without samples missing.")
    points: list[Point] | None = Field(
        description="Every sample, the oldest first; null where there are too many."
    )
    histogram: list[Bar]
    quantiles: list[float] = Field(
        description="Of 0, 1, ... 100 %; as many as samples where these are fewer, and then the "
        "values themselves."
    )
    has_shape: bool = Field(
        description=f"Whether there are the {LEAST_FOR_SHAPE} samples without which a distribution "
        "says nothing."
    )


class LinkEventsQuery(Page):
    """Which part of the list."""


class LinkEventSeen(ResponseModel):
    """Something that happened to a link."""

    at_s: float = Field(
        description="Seconds since 1970 (UTC); of a change of level: of its first sample."
    )
    kind: EventKind = Field(description="`shift`: a change of level; `leg`: of its condition.")
    found_at_s: float | None = Field(description="When the sample was measured that settled it.")
    metric: str | None
    before: float | None = Field(description="Level, in the metric's unit.")
    after: float | None
    condition: str | None = Field(description="`up`, `degraded` or `down`.")
    condition_before: str | None
    reason: str = Field(description="Why its condition changed, as a clause; may be empty.")


class LinkEvents(ResponseModel):
    """A page of what happened to a link, the newest first."""

    snapshot: Snapshot
    events: list[LinkEventSeen]
    next_cursor: str | None


class LeftOut(ResponseModel):
    """Samples that were not used."""

    reason: str
    samples: int


class EvidenceSeries(ResponseModel):
    """Samples of one link and metric that a figure rests on."""

    src: str
    dst: str
    metric: Metric
    samples: list[SampleSeen] = Field(description="Those that counted, the newest first.")
    left_out: list[LeftOut]
    was_read: bool = Field(
        description="False where a figure rests on so many links that the samples of this one were "
        "not looked up."
    )


class Evidence(ResponseModel):
    """What one figure was made of."""

    quantity: Quantity
    region: str = Field(description="Whose VM it is of; empty for the link itself.")
    estimate: Estimate | None = Field(
        description="As the snapshot has it, not widened for age; null where it has no bounds."
    )
    kind: Kind = Field(
        description="`samples` of this very quantity, `inference` from others, `model` alone, "
        "`stated` by the operator, or `nothing` is known."
    )
    rule: str = Field(description="How it was made, in a sentence.")
    rests_on: list[Quantity] = Field(description="Other figures here that went in.")
    series: list[EvidenceSeries]
    further: int = Field(description="How many links took part that are not named.")


class LinkEvidence(ResponseModel):
    """What is behind each figure of a link."""

    snapshot: Snapshot
    src: str
    dst: str
    evidence: list[Evidence]
