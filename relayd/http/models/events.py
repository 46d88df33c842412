"""What happened, as a stream."""

from __future__ import annotations

from pydantic import Field

from relayd.http.models.common import RequestModel


class EventsQuery(RequestModel):
    """From where on."""

    after: int | None = Field(
        None,
        ge=0,
        le=2**62,
        description="Id of the last event seen, where Last-Event-ID can't be sent.",
    )
