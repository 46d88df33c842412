"""Delivers events to the webhook: in order, each until it is accepted, also after a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from relayd.store import Store
from relayd.store.events import Event, Events
from relayd.store.metadata import Metadata
from relayd.watch.storage import StoreThread
from relayd.watch.webhook import GIVE_UP_S, KINDS, DeliveryError, Webhook, retry_s

LAST_DELIVERED = "webhook_last_event_id"
POLL_EVERY_S = 1.0


@dataclass
class Notifier:
    """Delivers events to a webhook.

    Parameters
    ----------
    storage : StoreThread
    webhook : Webhook
    """

    storage: StoreThread
    webhook: Webhook
    on_note: Callable[[str], None] = lambda _: None
    delivered: int = 0
    given_up: int = 0
    failures: int = 0
    problem: str = ""

    def __post_init__(self) -> None:
        self.news = asyncio.Event()

    async def begin(self) -> None:
        """Go on after the last delivered event; a new webhook gets new events only."""

        def first(store: Store) -> float:
            metadata = Metadata(store.database)
            delivered = metadata.get(LAST_DELIVERED)
            if delivered is None:
                delivered = float(Events(store.database).last_id())
                with store.database.transaction():
                    metadata.set(LAST_DELIVERED, delivered)
            return delivered

        self._last_id = int(await self.storage.do(first))

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            # Cleared first: an event from here on is read below or sets it again.
            self.news.clear()
            events = await self.storage.do(
                lambda store: Events(store.database).after(self._last_id, limit=100)
            )
            for event in events:
                if event.kind in KINDS:
                    await self._deliver(event)
                self._last_id = event.id
            if events:
                await self._remember()
                continue
            try:
                async with asyncio.timeout(POLL_EVERY_S):
                    await self.news.wait()  # other processes' events wait for the next poll
            except TimeoutError:
                continue

    async def _deliver(self, event: Event) -> None:
        while True:
            try:
                await asyncio.to_thread(self.webhook.post, event)
            except DeliveryError as error:
                self.failures += 1
                self.problem = str(error)
                if self.failures == 1:
                    self.on_note(f"The webhook {error}. Trying again.")
                if time.time() - event.at_s > GIVE_UP_S:
                    self.given_up += 1
                    self.on_note(f"The webhook did not take event {event.id} for a day.")
                    return
                await asyncio.sleep(retry_s(self.failures))
            else:
                self.delivered += 1
                self.failures, self.problem = 0, ""
                # Before the next one, so that a crash repeats one event at most.
                self._last_id = event.id
                await self._remember()
                return

    async def _remember(self) -> None:
        last_id = float(self._last_id)

        def keep(store: Store) -> None:
            with store.database.transaction():
                Metadata(store.database).set(LAST_DELIVERED, last_id)

        await self.storage.do(keep)
