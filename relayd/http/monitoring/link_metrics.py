"""The gauges of all links, made once for each state of knowledge."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from relayd.http.answers.link_metrics import link_metrics
from relayd.http.responses.problems import ProblemError
from relayd.http.server.current_state import Current
from relayd.http.server.workers import Workers

SOON_S = 0.5
"""For gauges of a new state of knowledge; the next scrape has them."""
FIRST_S = 5.0
"""For the first ones of all. Prometheus gives a scrape up after 10 s by default."""


class LinkMetrics:
    """The text of all links, made in a worker once for each state of knowledge.

    Parameters
    ----------
    workers : Workers
    most : int
        Links that are shown; 0 for none.
    """

    def __init__(self, workers: Workers, most: int) -> None:
        self._workers = workers
        self._most = most
        self._version = ""
        self._text = b""
        self._making: asyncio.Task[None] | None = None

    async def text(self, current: Current) -> bytes:
        """Return the gauges in Prometheus' text format; the last ones until new ones are made."""
        if self._most and self._version != current.version:
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make(current.version))
            await asyncio.wait({self._making}, timeout=SOON_S if self._text else FIRST_S)
        return self._text

    async def _make(self, version: str) -> None:
        with suppress(ProblemError):  # no worker is free: the next scrape asks again
            self._text = await self._workers.ask(version, link_metrics, self._most)
            self._version = version

    def close(self) -> None:
        """Wait for no gauges any more."""
        if self._making:
            self._making.cancel()
