"""Samples that a client sends, and what became of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from planner.model.estimate import AddressKind
from planner.model.network import Snapshot
from probes.importers.limits import (
    MAX_CONNECTIONS,
    MAX_DURATION_S,
    MAX_INTERVALS,
    MAX_TIME_S,
    MIN_TIME_S,
)
from probes.importers.physics import FAULTS
from probes.samples import Metric
from relayd.http.models.common import MOST_NAME, Name, Page, RequestModel, ResponseModel, Text
from relayd.store.samples.quarantine import State

MOST_DECIDED = 1000

Word: TypeAlias = Annotated[Text, Field(max_length=100)]


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
        None, ge=1, le=MAX_INTERVALS, description="Of how many intervals it is the median."
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


class QuarantineQuery(Page):
    """Which samples of quarantine."""

    reason: (
        Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"enum": list(FAULTS)})]
        | None
    ) = Field(None, description="Only those of one kind of reason.")
    state: State = Field(
        "open", description="Of which nobody has decided, or those accepted or rejected."
    )
    src: Name | None = Field(None, description="Only of links out of this region.")
    dst: Name | None = Field(None, description="Only of links into this region.")


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
    decided_by: str | None = Field(description="Who accepted or rejected it; null while open.")
    decided_at_s: float | None
    decided_because: str | None
    accepted_in: int | None = Field(description="The batch that has it since it was accepted.")


class DisputedSeen(ResponseModel):
    """A figure that samples contradict, or that nobody has confirmed."""

    src: str
    dst: str = Field(description="As `src` for the cap of a VM.")
    metric: Metric = Field(description="Of the samples.")
    sources: list[str] = Field(description="Who reported them, as a selection names them.")
    samples: int = Field(description="How many contradict the figure; 0 where theirs is used.")
    sentence: str


class SelectionGiven(RequestModel):
    """Which samples are meant: those to which all that is stated applies."""

    source: Annotated[Text, Field(max_length=MOST_NAME + 10)] | None = Field(
        None, description="Who reported them: `files`, `token NAME`, `address IP`."
    )
    token: Name | None = Field(None, description="Name of the token that sent them.")
    address: Word | None = Field(None, description="From where they were sent.")
    tool: Word | None = Field(None, description="With or without its version.")
    src: Name | None = None
    dst: Name | None = None
    metric: Metric | None = None
    batch: int | None = Field(None, ge=1, le=2**53)
    since_s: float | None = Field(None, description="Measured then or later, seconds since 1970.")
    until_s: float | None = Field(None, description="Measured then or earlier.")


class DecisionRequest(RequestModel):
    """What an operator decides about samples."""

    decision: Literal["accept", "reject", "confirm", "retract", "restore"] = Field(
        description="`accept` and `reject` samples in quarantine; `confirm` others as the own "
        "prober's, `retract` them so that they count no longer, `restore` retracted ones."
    )
    quarantined: list[Annotated[int, Field(ge=1, le=2**53)]] = Field(
        [], max_length=MOST_DECIDED, description="Ids of samples in quarantine."
    )
    selection: SelectionGiven | None = Field(None, description="Of samples not in quarantine.")
    reason: Text = Field("", max_length=500, description="Why, for the record.")
    through: int | None = Field(
        None,
        ge=0,
        le=2**53,
        description="The last sample that `selection` means, as the effects have it: samples that "
        "came later are left as they are.",
    )

    @model_validator(mode="after")
    def _names_samples(self) -> Self:
        if (self.decision in ("accept", "reject")) is not bool(self.quarantined):
            raise ValueError("`accept` and `reject`, and they alone, need ids in `quarantined`")
        if (self.decision in ("accept", "reject")) is (self.selection is not None):
            raise ValueError("`confirm`, `retract` and `restore`, and they alone, need `selection`")
        return self


class EffectSeen(ResponseModel):
    """A figure that becomes another."""

    src: str
    dst: str = Field(description="Empty for a figure of a VM.")
    figure: str
    before: float | None = Field(description="Null for what appears.")
    after: float | None = Field(description="Null for what vanishes.")
    address: AddressKind | None = Field(description="Over which kind a link is; null for a VM.")


class EffectsAnswer(ResponseModel):
    """What a decision would do."""

    snapshot: Snapshot
    samples: int = Field(description="How many it is about.")
    through: int = Field(
        description="The last sample there is, or that was asked for; to be sent with the decision."
    )
    total: int = Field(description="Figures that would change by over 0.1 %.")
    changed: list[EffectSeen] = Field(description="The first 100, the largest ratio first.")


class DecisionAnswer(ResponseModel):
    """A decision that was made; the next snapshot heeds it."""

    snapshot: Snapshot
    samples: int = Field(description="How many it was about.")
    batch_id: int | None = Field(description="That has them, of those accepted.")


class Quarantine(ResponseModel):
    """A page of samples that nothing rests on."""

    snapshot: Snapshot
    disputes: list[str] = Field(
        description="Figures that samples of some source contradict, or that nobody has confirmed."
    )
    disputed: list[DisputedSeen] = Field(description="The same, each with what to decide about.")
    reasons: list[QuarantineReason] = Field(description="The kinds that occur, with counts.")
    samples: list[QuarantinedSample]
    next_cursor: str | None = Field(description="Of the next page; null on the last.")
