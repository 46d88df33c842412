"""Tokens as they may be shown: never the secret, nor its digest."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.network import Snapshot
from relayd.http.models.common import ResponseModel
from relayd.store.tokens import Scope


class TokenSeen(ResponseModel):
    """What is known of a token."""

    number: int
    name: str
    scopes: list[Scope]
    created_at_s: float
    expires_at_s: float | None
    revoked_at_s: float | None
    last_used_at_s: float | None = Field(
        description="null for never; up to a minute old where another process answered."
    )
    requests_per_s: float | None = Field(
        description="That it may send; 0 for no limit, null for that of the service."
    )
    max_series: int | None = Field(
        description="Metrics of links that it may report; 0 and null as above."
    )
    state: Literal["valid", "expired", "revoked"]


class TokenListed(TokenSeen):
    """A token in the list of all."""

    series: int = Field(description="Metrics of links that it has reported.")


class TokenAnswer(ResponseModel):
    """The token of the caller."""

    snapshot: Snapshot
    token: TokenSeen | None = Field(description="null where the service needs none.")
    scopes: list[Scope] = Field(description="All that the caller has; `admin` has the others.")


class Tokens(ResponseModel):
    """All tokens of the store."""

    snapshot: Snapshot
    tokens: list[TokenListed] = Field(
        description="The oldest first, with those that expired or were revoked."
    )
    requests_per_s: float = Field(description="Of a token without a limit of its own; 0 for none.")
    max_series: int = Field(description="Of a token without a limit of its own; 0 for none.")
