"""Reports of a copy to a service, from a thread of their own: the copy never waits for them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from planner.model.errors import RelaydError
from planner.model.units import BYTES_PER_GB
from relayd.client.blocking import RemoteWan
from relayd.fs.forecasting import CopyForecast
from relayd.sources.wan import Wan

LABEL = "relayd.fs.copy"
REPORT_EVERY_S = 5.0
LAST_WORD_S = 10.0
"""How long the end of a copy waits for the last report at most."""
_MOST_PROBLEM = 200

Moved = Callable[[int], None]
"""Is called with the bytes of each piece that was written."""


@contextmanager
def reported(wan: Wan | RemoteWan | None, forecast: CopyForecast, label: str) -> Iterator[Moved]:
    """Report what is copied inside, if `wan` is a service and the copy leaves its region."""
    regions = _regions(forecast)
    if not isinstance(wan, RemoteWan) or len(set(regions)) < len(regions) or not regions:
        yield lambda _: None
        return
    reports = _Reports(wan, forecast, regions, label)
    try:
        yield reports.moved
    except KeyboardInterrupt:
        reports.end("cancelled", "it was interrupted")
        raise
    except BaseException as error:
        reports.end("failed", str(error) or type(error).__name__)
        raise
    reports.end("finished")


def _regions(forecast: CopyForecast) -> list[str]:
    """Return the regions that the data passes through; none within one region."""
    ends = [(link.paths[0].regions[0], link.paths[0].regions[-1]) for link in forecast.links]
    return [*(src for src, _ in ends[:1]), *(dst for _, dst in ends)]


class _Reports:
    def __init__(
        self, wan: RemoteWan, forecast: CopyForecast, regions: list[str], label: str
    ) -> None:
        self._wan, self._forecast, self._regions = wan, forecast, regions
        self._id = uuid4().hex[:16]
        self._label = label
        self._bytes = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._end: dict[str, Any] = {}
        self._is_silenced = False
        self._thread = threading.Thread(target=self._run, name="copy-reports", daemon=True)
        self._thread.start()

    def moved(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    def end(self, state: str, problem: str = "") -> None:
        self._end = {"state": state}
        if state != "finished":
            self._end |= {"problem": problem[:_MOST_PROBLEM], "moved_gb": self._moved_gb}
        self._over.set()
        self._thread.join(LAST_WORD_S)

    @property
    def _moved_gb(self) -> float:
        return min(self._bytes / BYTES_PER_GB, self._forecast.volume_gb)

    def _run(self) -> None:
        has_begun = self._say(self._begin)
        while not self._over.wait(REPORT_EVERY_S):
            has_begun = has_begun or self._say(self._begin)
            if has_begun:
                self._say(lambda: self._wan.report_transfer(self._id, self._moved_gb))
        if has_begun or self._say(self._begin):
            self._say(lambda: self._wan.end_transfer(self._id, **self._end))

    def _begin(self) -> object:
        links = self._forecast.links
        return self._wan.begin_transfer(
            self._regions[0],
            self._regions[-1],
            volume_gb=self._forecast.volume_gb,
            id=self._id,
            label=self._label,
            plan=links[0] if len(links) == 1 else self._figures(),
        )

    def _figures(self) -> dict[str, Any]:
        told = self._forecast
        return {
            "paths": [{"regions": self._regions, "throughput_gbps": told.throughput_gbps}],
            "throughput_gbps": told.throughput_gbps,
            "throughput_gbps_low": told.throughput_gbps_low,
            "duration_s": told.duration_s,
            "cost_usd": sum(link.cost_usd.total for link in told.links),
        }

    def _say(self, call: Callable[[], object]) -> bool:
        """Return whether the service took it; the first time that it did not, say why."""
        try:
            call()
        except RelaydError as error:
            if not self._is_silenced:
                self._is_silenced = True
                sys.stderr.write(f"The copy goes on, but can't be reported: {error}\n")
            return False
        return True
