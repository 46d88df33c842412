"""Open connections: as many as files allow, and the longest idle go first.

Each connection is a file of this process. Where all are taken, the system accepts no further one,
health checks included, so the service keeps below that limit itself.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from contextlib import suppress
from typing import Protocol

from relayd.http.middleware.logs import Log

ACCEPTED_AT_ONCE = 32
"""Connections that are accepted before any of them is looked at."""
_FOR_HEALTH = 32
"""Connections beyond the limit on which health checks are answered, and nothing else."""
_FOR_FILES = 128
"""Open files that are not connections: the store, workers, and what a request reads."""


class Closable(Protocol):
    """A connection."""

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""

    def force_close(self) -> None:
        """Close it at once."""


class Connections:
    """The open connections of a service.

    Parameters
    ----------
    most : int
        Beyond it, connections without a request are closed, the longest idle first.
    log : Log
    """

    def __init__(self, most: int, log: Log) -> None:
        self.most = most
        self._log = log
        self._open: OrderedDict[Closable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def are_too_many(self) -> bool:
        """Whether only health checks are answered, because all connections are in use."""
        return len(self._open) > self.most

    def opened(self, connection: Closable) -> None:
        """Count a connection, and close another or this one where there are too many."""
        self._open[connection] = None
        if not self.are_too_many:
            return
        idle = next((other for other in self._open if other.is_idle), None)
        if idle is not None:
            self._close(idle, "idle")
        elif len(self._open) > self.most + _FOR_HEALTH:
            self._close(connection, "refused")

    def used(self, connection: Closable) -> None:
        """Note that something came over a connection."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def closed(self, connection: Closable) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def _close(self, connection: Closable, why: str) -> None:
        self.closed(connection)
        connection.force_close()
        self._log.sampled("connection closed", why=why, open=len(self._open), most=self.most)


def most_connections(wanted: int) -> int:
    """Raise the limit of open files as far as the system allows, and return what fits under it.

    Parameters
    ----------
    wanted : int
        The most connections that there are to be.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    kept = ACCEPTED_AT_ONCE + _FOR_HEALTH + _FOR_FILES
    return max(1, min(wanted, max(files - kept, files // 2)))
