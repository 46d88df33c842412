"""The budget of liveness probes, reserved in advance for some minutes at a time."""

from __future__ import annotations

import asyncio
import time

from relayd.store import Store
from relayd.store.campaigns.spending import Spending
from relayd.times import utc_date
from relayd.watch.storage import StoreThread


class LivenessBudget:
    """What liveness probes may still cost today.

    A block is reserved in the store before any of it is spent: a crash can lose the rest of a
    block but never spend it twice, and the store is asked once a block rather than once a probe.

    Parameters
    ----------
    storage : StoreThread
    daily_budget_usd : float
    block_usd : float
    """

    def __init__(self, storage: StoreThread, daily_budget_usd: float, block_usd: float) -> None:
        self._storage = storage
        self._budget_usd = daily_budget_usd
        self._block_usd = block_usd
        self._day = ""
        self._reserved_usd = 0.0
        self._spent_usd = 0.0
        self._sent_gb = 0.0
        self._refused_day = ""
        # Sources probe at the same time, and must not each reserve a block.
        self._lock = asyncio.Lock()

    async def spend(self, usd: float, sent_gb: float) -> bool:
        """Spend on a probe that is about to be sent; False if the day's budget is used up.

        Raises
        ------
        StoreError
            If the store can't reserve more just now.
        """
        async with self._lock:
            return await self._spend(usd, sent_gb)

    async def give_back(self, usd: float, sent_gb: float) -> None:
        """Take back what was spent on a probe that could not be sent."""
        async with self._lock:
            self._spent_usd = max(0.0, self._spent_usd - usd)
            self._sent_gb = max(0.0, self._sent_gb - sent_gb)

    async def _spend(self, usd: float, sent_gb: float) -> bool:
        today = utc_date(time.time())
        if today != self._day or self._spent_usd + usd > self._reserved_usd:
            await self.settle()
            if self._refused_day == today:
                return False
            self._day = today
            wanted_usd = max(self._block_usd, usd)

            def reserve(store: Store) -> float:
                for amount in (wanted_usd, usd):
                    if Spending(store.database).reserve(
                        today, "liveness", amount, self._budget_usd
                    ):
                        return amount
                return -1.0

            found_usd = await self._storage.do(reserve)
            if found_usd < 0:
                self._refused_day = today
                return False
            self._reserved_usd = found_usd
        self._spent_usd += usd
        self._sent_gb += sent_gb
        return True

    @property
    def empty(self) -> bool:
        """Whether today's budget is used up."""
        return self._refused_day == utc_date(time.time())

    async def settle(self) -> None:
        """Return the unspent part of the reservation."""
        if not self._day:
            return
        day, reserved_usd = self._day, self._reserved_usd
        spent_usd, sent_gb = self._spent_usd, self._sent_gb
        self._day, self._reserved_usd, self._spent_usd, self._sent_gb = "", 0.0, 0.0, 0.0
        await self._storage.do(
            lambda store: Spending(store.database).settle(
                day, "liveness", reserved_usd, spent_usd, sent_gb
            )
        )
