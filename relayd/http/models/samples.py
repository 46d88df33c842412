"""Samples that a client sends, and what became of them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

from planner.model.estimate import AddressKind
from planner.model.network import Snapshot
from probes.importers.limits import MAX_CONNECTIONS, MAX_DURATION_S, MAX_TIME_S, MIN_TIME_S
from probes.importers.physics import FAULTS
from probes.samples import Metric
from relayd.http.models.common import Name, Page, RequestModel, ResponseModel

MOST_INTERVALS = 10**6

Word: TypeAlias = Annotated[str, Field(max_length=100)]


class SampleGiven(RequestModel):
    """One measurement. Two with equal values are one sample, however often they are sent."""

    src: Name = Field(description="`provider:region`; a zone may follow as clouds write it.")
    dst: Name
    metric: Metric
    value: float = Field(ge=0, description="In the unit that the metric's name ends in.")
    measured_at_s: float = Field(
        ge=MIN_TIME_S, le=MAX_TIME_S, description="Start, seconds since 1970 (UTC)."
    )
    tool: Word = Field("api", min_length=1)
    connections: int | None = Field(None, ge=1, le=MAX_CONNECTIONS)
    duration_s: float | None = Field(None, gt=0, le=MAX_DURATION_S)
    warmed_up: bool = False
    src_zone: Word = ""
    dst_zone: Word = ""
    src_vm: Word = ""
    dst_vm: Word = ""
    detail: dict[str, Any] | None = Field(None, description="Further output of the tool.")
    address: AddressKind | None = Field(
        None, description="Over which kind of address it was measured."
    )
    new_level: bool = Field(
        False, description="Whether it was measured twice, and the link has changed its level."
    )
    intervals: int | None = Field(
        None, ge=1, le=MOST_INTERVALS, description="Of how many intervals it is the median."
    )


class SamplesGiven(RequestModel):
    """Samples in one document."""

    samples: list[dict[str, Any]] = Field(
        description="Each a SampleGiven; a wrong one is rejected with its reason.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/SampleGiven"}},
    )


class Rejection(ResponseModel):
    """A sample that nothing rests on."""

    row: int = Field(description="From 1: its place in the list, or its line.")
    reason: str


class IngestAnswer(ResponseModel):
    """What became of the samples; when this is read, those accepted are on disk."""

    snapshot: Snapshot
    accepted: int
    duplicates: int = Field(description="Those that were there already.")
    rejected: int
    rejections: list[Rejection] = Field(description="The first 100.")
    quarantined: int = Field(
        description="Those that can't be measurements: kept apart, and nothing rests on them."
    )
    quarantine: list[Rejection] = Field(description="The first 100 of these.")
    batch_id: int | None = Field(description="Under which new samples are kept.")


def _kind(reason: str) -> str:
    if reason not in FAULTS:
        raise ValueError(f"must be one of {', '.join(FAULTS)}")
    return reason


_Kind = Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"enum": list(FAULTS)})]


class QuarantineQuery(Page):
    """Which samples of quarantine."""

    reason: (
        Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"enum": list(FAULTS)})]
        | None
    ) = Field(None, description="Only those of one kind of reason.")


class QuarantineReason(ResponseModel):
    """How many samples are in quarantine for one kind of reason."""

    reason: str
    samples: int


class QuarantinedSample(ResponseModel):
    """A sample that nothing rests on, as it was sent."""

    id: int
    reason: str = Field(description="In words; has those of its kind.")
    batch_id: int
    batch: str = Field(description="The file's name, or how it came.")
    token: str | None = Field(description="Name of the token that sent it; null for commands.")
    arrived_at_s: float
    src: str
    dst: str
    metric: str
    value: float
    measured_at_s: float
    tool: str
    connections: int | None
    src_vm: str
    dst_vm: str


class Quarantine(ResponseModel):
    """A page of samples that nothing rests on."""

    snapshot: Snapshot
    disputes: list[str] = Field(
        description="Figures that samples of some source contradict, or that nobody has confirmed."
    )
    reasons: list[QuarantineReason] = Field(description="The kinds that occur, with counts.")
    samples: list[QuarantinedSample]
    next_cursor: str | None = Field(description="Of the next page; null on the last.")
