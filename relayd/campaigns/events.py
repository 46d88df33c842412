"""Events of a campaign's progress, for whoever follows it without polling."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from planner.model.errors import StoreError
from probes.campaign.engine import StageProgress
from relayd.store import Store
from relayd.store.events import Events

SUBJECT = "campaign"
EVENT_EVERY_S = 5.0


class CampaignEvents:
    """Writes the events of one campaign. A store that can't take one does not stop the campaign.

    Parameters
    ----------
    store : Store
        Open for writing, in this thread.
    number : int
        Of the campaign.
    """

    def __init__(self, store: Store, number: int) -> None:
        self._events = Events(store.database)
        self._subject = str(number)
        self._written_s = 0.0
        self._stage = ""

    def add(self, status: str, **detail: Any) -> None:
        """Write an event."""
        with suppress(StoreError):
            self._events.add(SUBJECT, self._subject, {"status": status, **detail})

    def progress(self, now: StageProgress) -> None:
        """Write how far the campaign is: at each new stage, and every five seconds."""
        if now.stage == self._stage and time.monotonic() - self._written_s < EVENT_EVERY_S:
            return
        self._written_s, self._stage = time.monotonic(), now.stage
        self.add(
            "running",
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
