"""Turns for work that takes a while: callers take them one after the other, however much one asks.

Round-robin between callers (Nagle, RFC 970): one that floods waits behind its own questions, and
another is served after at most one of each.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from relayd.http.problems import Kind, ProblemError

CALLER: ContextVar[object] = ContextVar("caller", default="the service itself")
"""The caller of the work at hand: the number of a token, an address, or the service itself."""


class FairQueue:
    """Lets so many work at once; the others wait, each caller in a queue of its own.

    Where as many wait as may, of all callers together, the one with the most loses its last.
    `what` names in messages what is waited for.
    """

    def __init__(self, at_once: int, most_waiting: int, most_of_one: int, what: str) -> None:
        self._at_once = self._free = at_once
        self._most_waiting = most_waiting
        self._most_of_one = most_of_one
        self._what = what
        self._queues: OrderedDict[object, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Number of requests that wait, of all callers."""
        return sum(map(len, self._queues.values()))

    @property
    def pending(self) -> int:
        """Number of requests that wait or work."""
        return self._at_once - self._free + self.waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn of the caller whose request this is.

        Raises ProblemError: 429 if too many of this caller wait, 503 if too many of all.
        """
        if self._free and not self.waiting:
            self._free -= 1
        else:
            await self._wait(CALLER.get())
        try:
            yield
        finally:
            self._next()

    async def _wait(self, caller: object) -> None:
        queue = self._queues.get(caller, deque())
        if len(queue) >= self._most_of_one:
            raise self._refusal(429, "rate-limited", "of yours ")
        if self.waiting >= self._most_waiting:
            longest = max(self._queues.values(), key=len)
            if len(longest) <= len(queue) + 1:
                raise self._refusal(503, "unavailable")
            longest.pop().set_exception(self._refusal(429, "rate-limited", "of yours "))
        self._queues[caller] = queue
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in queue:
                queue.remove(turn)
            elif not turn.cancelled() and turn.exception() is None:
                self._next()  # its turn had come
            raise

    def _next(self) -> None:
        """Give the turn that has ended to the caller who has waited longest for one."""
        while self._queues:
            caller, queue = self._queues.popitem(last=False)
            turn = queue.popleft() if queue else None
            if queue:
                self._queues[caller] = queue
            if turn is not None and not turn.done():  # or its caller has gone
                turn.set_result(None)
                return
        self._free += 1

    def _refusal(self, status: int, kind: Kind, whose: str = "") -> ProblemError:
        detail = f"Too many requests {whose}wait for {self._what} already. Try again."
        return ProblemError(status, kind, detail, retry_s=1)
