"""Delivering events to the webhook, in order, each until it was taken, also after a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from relayd.store import Store
from relayd.store.events import Event, Events
from relayd.store.metadata import Marks
from relayd.watch.storage import StoreThread
from relayd.watch.webhook import GIVE_UP_S, KINDS, DeliveryError, Webhook, retry_s

TOLD = "webhook_last_event_id"
LOOK_EVERY_S = 1.0


@dataclass
class Notifier:
    """Tells a webhook of events.

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
        """Go on after the last event that was delivered; a new webhook hears of new events."""

        def first(store: Store) -> float:
            marks = Marks(store.database)
            told = marks.get(TOLD)
            if told is None:
                told = float(Events(store.database).last_id())
                with store.database.transaction():
                    marks.set(TOLD, told)
            return told

        self._last_id = int(await self.storage.do(first))

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            # Cleared first: what happens from here on is seen now or sets it again.
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
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self.news.wait()  # ours are told at once, others' soon
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
                Marks(store.database).set(TOLD, last_id)

        await self.storage.do(keep)
