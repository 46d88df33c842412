"""What happened, as a stream."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from relayd.http.models.common import RequestModel, ResponseModel


class EventsQuery(RequestModel):
    """From where on."""

    after: int | None = Field(
        None,
        ge=0,
        le=2**62,
        description="Id of the last event seen, where Last-Event-ID can't be sent.",
    )


class EventSeen(ResponseModel):
    """The `data` of one event."""

    id: int
    at_s: float = Field(description="Seconds since 1970 (UTC).")
    kind: str = Field(description="Also the event's name: `snapshot`, `campaign`, `leg`, ...")
    subject: str = Field(description="What it is about: a snapshot's id, `src>dst`, ...")
    detail: dict[str, Any]
