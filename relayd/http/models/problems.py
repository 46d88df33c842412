"""Problem documents (RFC 9457)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Kind: TypeAlias = Literal[
    "input",
    "unknown-region",
    "ambiguous-region",
    "infeasible",
    "data",
    "store",
    "not-found",
    "method-not-allowed",
    "unauthorized",
    "forbidden",
    "cross-origin",
    "misdirected",
    "too-large",
    "media-type",
    "timeout",
    "rate-limited",
    "conflict",
    "unavailable",
    "malformed",
    "internal",
]


class Problem(BaseModel):
    """What went wrong, for people and programs."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str = Field(description="`urn:relayd:problem:` and the kind.")
    title: str = Field(description="The kind in words.")
    status: int
    detail: str = Field(description="One paragraph: what, with which value, and what to do.")
    kind: Kind = Field(description="Tells kinds of problems apart.")
    request_id: str | None = Field(None, description="Names the request in the logs.")
    field: str | None = Field(None, description="The field at fault.")
    problem: str | None = Field(None, description="What is wrong with the field.")
    value: Any = Field(None, description="The value at fault, shortened.")
    remedy: str | None = Field(None, description="What to do about it.")
    near: list[str] | None = Field(None, description="Names that are close to an unknown one.")
    matches: list[str] | None = Field(None, description="What an ambiguous name may mean.")
    limit: str | None = Field(None, description="The limit that no plan meets.")
