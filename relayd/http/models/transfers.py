"""Transfers that their programs report."""

from __future__ import annotations

from pydantic import Field

from planner.model.network import Snapshot
from relayd.http.models.common import Name, Page, ResponseModel
from relayd.store.transfers import WantedState
from relayd.transfers.tracked import TrackedTransfer, TransferDetails


class TransfersQuery(Page):
    """Which transfers."""

    state: WantedState | None = Field(
        None, description="`in-flight` are those that run and those that are silent."
    )
    src: Name | None = Field(None, description="Only from this region.")
    dst: Name | None = Field(None, description="Only to this region.")


class TransfersAnswer(ResponseModel):
    """Transfers, the newest first."""

    snapshot: Snapshot
    transfers: list[TrackedTransfer]
    next_cursor: str | None


class TransferAnswer(ResponseModel):
    """One transfer."""

    snapshot: Snapshot
    transfer: TrackedTransfer


class TransferDetailsAnswer(ResponseModel):
    """One transfer, with all that is known of it."""

    snapshot: Snapshot
    details: TransferDetails
