"""What the models of all resources share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from planner.model.network import Snapshot

MOST_NAME = 200
"""Characters of a name: of a region, an alias, a rule."""

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MOST_NAME)]
Source: TypeAlias = Literal["measured", "inferred", "baseline"]


class Asked(BaseModel):
    """Base of what a client sends: unknown keys are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Answered(BaseModel):
    """Base of what the service says; keys may be added, never renamed or removed."""

    model_config = ConfigDict(frozen=True)


class Page(Asked):
    """Which part of a long list."""

    limit: int = Field(100, ge=1, le=1000, description="Most entries of the answer.")
    cursor: str | None = Field(
        None, max_length=MOST_NAME, description="`next_cursor` of the page before; opaque."
    )


class _Believed(Answered):
    source: Source
    measured_at_s: float | None = Field(
        description="Time of the newest sample, seconds since 1970 (UTC)."
    )
    samples: int = Field(description="How many samples of this very quantity it rests on.")
    basis: str = Field(description="In words, what it was inferred from.")


class Estimate(_Believed):
    """What is believed of one quantity; nine of ten true values lie between low and high."""

    low: float
    expected: float
    high: float


class Cap(_Believed):
    """What one VM can do at most; null where nothing is known of its type."""

    low: float | None
    expected: float | None
    high: float | None


__all__ = [
    "MOST_NAME",
    "Answered",
    "Asked",
    "Cap",
    "Estimate",
    "Name",
    "Page",
    "Snapshot",
    "Source",
]
