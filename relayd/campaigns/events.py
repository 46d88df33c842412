"""Telling of a campaign's progress by events, so that whoever looks on need not ask."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from planner.model.errors import StoreError
from probes.campaign.engine import StageProgress
from relayd.campaigns.running import CampaignReport
from relayd.store import Store
from relayd.store.events import Events

SUBJECT = "campaign"
EVENT_EVERY_S = 5.0


class CampaignEvents:
    """Adds the events of one campaign.

    Parameters
    ----------
    store : Store
        Open for writing, in the thread that tells.
    number : int
        Of the campaign.
    """

    def __init__(self, store: Store, number: int) -> None:
        self._events = Events(store.database)
        self._subject = str(number)
        self._told_s = 0.0
        self._stage = ""

    def tell(self, **detail: Any) -> None:
        """Tell something."""
        self._events.add(SUBJECT, self._subject, detail)

    def progress(self, now: StageProgress) -> None:
        """Tell how far it is: each stage, and every five seconds; a busy store is passed over."""
        if now.stage == self._stage and time.monotonic() - self._told_s < EVENT_EVERY_S:
            return
        self._told_s, self._stage = time.monotonic(), now.stage
        with suppress(StoreError):
            self.tell(
                status="running",
                stage=now.stage,
                round=now.round,
                rounds=now.rounds,
                done=now.done,
                failed=now.failed,
                total=now.total,
                sent_gb=now.sent_gb,
                usd=now.usd,
                left_s=now.left_s,
            )


def conclusion(report: CampaignReport) -> dict[str, Any]:
    """Return how a campaign ended, for its last event."""
    left = len(report.ending.failed) + report.ending.left_out
    return {
        "status": "partly done" if left else "done",
        "failed": len(report.ending.failed),
        "left_out": report.ending.left_out,
        "sent_gb": report.sent_gb,
        "usd": report.usd,
        "snapshot": report.snapshot.id if report.snapshot else None,
    }
