"""What the processes of one service share, and tell each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import orjson

from relayd.http.middleware.rate_limits import RateLimits
from relayd.http.monitoring.summing import Families, lasting
from relayd.http.processes.board import Board
from relayd.sources.shared_columns import SharedColumns

LEADER = 0
"""The place of the process that makes snapshots, watches the fleet and pushes metrics."""


class SharedState:
    """Memory of all processes of a service: made before they are forked off.

    Parameters
    ----------
    processes : int
    limits : RateLimits
    folder : Path, optional
        For files that they share; without one, they share none.
    """

    def __init__(self, processes: int, limits: RateLimits, folder: Path | None = None) -> None:
        self.processes = processes
        self.limits = limits
        self.folder = folder
        self.columns = SharedColumns(folder) if folder else None
        self.news = Board(processes)
        self.figures = Board(processes)
        self._parent = Board(1)
        self.ran(range(processes), restarts=0)

    def ran(self, places: Collection[int], *, restarts: int) -> None:
        """Say which processes run, and how many were started in place of one that ended."""
        self._parent.post(0, orjson.dumps([list(places), restarts]))

    @property
    def running(self) -> frozenset[int]:
        """The places of processes that run."""
        return frozenset(orjson.loads(self._parent.read(0))[0])

    @property
    def restarts(self) -> int:
        """How many processes were started in place of one that ended."""
        return int(orjson.loads(self._parent.read(0))[1])


class Peers:
    """The other processes of a service, for the one at a place.

    Parameters
    ----------
    shared : SharedState
    place : int
        From 0 to the number of processes less 1. A process that is started in place of another has
        its place.

    Attributes
    ----------
    earlier : Families
        Counts of those that had this place before: figures of the service never go down.
    earlier_batches : int
        Batches of samples that they took in: news of them must not be lost with them.
    """

    def __init__(self, shared: SharedState, place: int) -> None:
        self.shared = shared
        self.place = place
        self.earlier = lasting(_read(shared.figures, place) or [])
        self.post_figures(self.earlier)
        # What the one before told of itself holds no longer; its count goes on.
        self.earlier_batches = self._batches_of(place)
        self.tell({"batches": self.earlier_batches})

    @property
    def leads(self) -> bool:
        """Whether this is the process that does what is done once for all."""
        return self.place == LEADER

    def tell(self, news: dict[str, Any]) -> None:
        """Tell the others what they are asked about this process."""
        self.shared.news.post(self.place, orjson.dumps(news))

    def news(self, place: int = LEADER) -> dict[str, Any]:
        """Return what a process told last; empty if nothing yet, or where it has ended."""
        return (_read(self.shared.news, place) or {}) if place in self.shared.running else {}

    def batches(self) -> list[int]:
        """Return how many batches of samples each of the others has taken in."""
        others = [place for place in range(self.shared.processes) if place != self.place]
        return list(map(self._batches_of, others))

    def _batches_of(self, place: int) -> int:
        told: dict[str, Any] = _read(self.shared.news, place) or {}
        return int(told.get("batches", 0))

    def post_figures(self, families: Families) -> None:
        """Give the others the figures of this process."""
        self.shared.figures.post(self.place, orjson.dumps(families))

    def figures(self) -> Iterator[Families]:
        """Yield the figures of each other process; of one that ended, what lasts."""
        running = self.shared.running
        for place in range(self.shared.processes):
            if place != self.place and (families := _read(self.shared.figures, place)):
                yield families if place in running else lasting(families)


def _read(board: Board, place: int) -> Any:
    content = board.read(place)
    return orjson.loads(content) if content else None
