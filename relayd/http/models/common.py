"""Bases and types that the models of all resources share."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from planner.model.estimate import Addresses, HeldTo, Kind, Method

MOST_NAME = 200
"""Characters of a name: of a region, an alias, a rule."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold the character U+0000: no store keeps it")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
"""Of a request, and looked for or kept in the store: PostgreSQL takes no U+0000."""

Name: TypeAlias = Annotated[Text, Field(min_length=1, max_length=MOST_NAME)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class ResponseModel(BaseModel):
    """Base of responses; keys may be added, never renamed or removed."""

    model_config = ConfigDict(frozen=True, defer_build=True)


def attributes_as(model: type[ResponseModel], source: object, **others: Any) -> dict[str, Any]:
    """Return the fields of a model: those not given are attributes of the source."""
    return {
        name: others[name] if name in others else getattr(source, name)
        for name in model.model_fields
    }


class Page(RequestModel):
    """Which part of a long list."""

    limit: int = Field(100, ge=1, le=1000, description="Most entries of the answer.")
    cursor: str | None = Field(
        None, max_length=MOST_NAME, description="`next_cursor` of the page before; opaque."
    )


class EstimateFigures(ResponseModel):
    """The figures that an estimate was made with; those that its method has none of are missing."""

    connections: int | None = Field(None, description="Parallel TCP connections of the samples.")
    peers: int | None = Field(None, description="VMs at the other end of a cap probe.")
    window_kind: Kind | None = Field(None, description="What the window is itself.")
    rtt_kind: Kind | None = Field(None, description="What the round-trip time is itself.")
    held_to: HeldTo | None = Field(
        None, description="What holds a flow below its window over its round-trip time."
    )
    error: float | None = Field(None, description="Largest relative error of a law.")
    between: tuple[str, str] | None = Field(
        None, description="The providers, cities or regions that it was taken between."
    )
    vm_type: str | None = Field(None, description="VM type that it was taken from.")
    note: str | None = Field(
        None,
        description="Where the catalogue has the figure from, why a link is down, or a sentence "
        "that was saved before methods were.",
    )


class EstimateOrigin(ResponseModel):
    """From what an estimate was made; keys that are missing are null or 0."""

    kind: Kind = Field(
        description="`measured` on the very link or VM, `inferred` from other measurements, or "
        "`baseline`: from models alone."
    )
    method: Method = Field(description="How; `unknown` where that was not saved.")
    samples: int = Field(0, description="How many samples it rests on, of any link.")
    links: int = Field(0, description="Of how many links or VMs these are.")
    newest_s: float | None = Field(
        None, description="Time of the newest of them, seconds since 1970 (UTC)."
    )
    oldest_s: float | None = Field(None, description="Time of the oldest.")
    address: Addresses | None = Field(
        None, description="Over which kind of address they were measured, where that is known."
    )
    figures: EstimateFigures | None = None


class EstimatePrior(ResponseModel):
    """What would be believed without measurements of its own: what these fade to with age."""

    low: float
    expected: float
    high: float
    memory_years: float = Field(description="Time in which measurements fade to 1/e.")


class _Estimated(ResponseModel):
    source: Kind
    measured_at_s: float | None = Field(
        description="Time from which it ages, seconds since 1970 (UTC): of the newest sample."
    )
    samples: int = Field(description="How many samples of this very quantity it rests on.")
    basis: str = Field(description="In words, for people, what it was made from.")
    prior: EstimatePrior | None = Field(description="Null where it fades around itself, or never.")
    origin: EstimateOrigin


class Estimate(_Estimated):
    """What is believed of one quantity; nine of ten later tests lie between low and high."""

    low: float
    expected: float
    high: float


class Cap(_Estimated):
    """What one VM can do at most; null where nothing is known of its type."""

    low: float | None
    expected: float | None
    high: float | None
