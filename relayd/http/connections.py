"""Open connections: as many as files allow, and the longest idle go first.

Each connection is a file of this process. Where all are taken, the system accepts no further one,
health checks included, so the service keeps below that limit itself.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from relayd.http.access import SECURITY_HEADERS
from relayd.http.monitoring.logs import CONNECTION_CLOSED
from relayd.http.problems import MEDIA_TYPE, ProblemError, encoded

LOG = logging.getLogger(__name__)
ACCEPTED_AT_ONCE = 128
"""Connections that wait to be accepted, and are accepted before any of them is looked at."""
_FOR_HEALTH = 32
"""Connections beyond the limit on which health checks are answered, and nothing else."""
_FOR_FILES = 128
"""Open files that are not connections: the store, workers, and what a request reads."""


class Connections:
    """The open connections of a service.

    Beyond the most, those without a request are closed, the longest idle first; and those on which
    a request takes longer than `headers_timeout_s` from its first byte to the end of its headers.
    """

    def __init__(self, most: int, headers_timeout_s: float = 15.0) -> None:
        self.most = most
        self.headers_timeout_s = headers_timeout_s
        self._open: OrderedDict[ClientConnection, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def are_too_many(self) -> bool:
        """Whether only health checks are answered, because all connections are in use."""
        return len(self._open) > self.most

    def opened(self, connection: ClientConnection) -> None:
        """Count a connection, and close another or this one where there are too many."""
        self._open[connection] = None
        if not self.are_too_many:
            return
        idle = next((other for other in self._open if other.is_idle), None)
        if idle is not None:
            self._close(idle, "idle")
        elif len(self._open) > self.most + _FOR_HEALTH:
            self._close(connection, "refused")

    def used(self, connection: ClientConnection) -> None:
        """Note that something came over a connection."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def closed(self, connection: ClientConnection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def _close(self, connection: ClientConnection, why: str) -> None:
        self.closed(connection)
        connection.force_close()
        about = {"why": why, "open": len(self._open), "most": self.most}
        LOG.warning(CONNECTION_CLOSED, extra=about)


class ClientConnection(RequestHandler):
    """One client; what can't be read as HTTP gets a problem document, too."""

    __slots__ = ("_begun", "_connections")

    def __init__(self, connections: Connections, server: Any, **options: Any) -> None:
        super().__init__(server, **options)
        self._connections = connections
        self._begun: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        super().connection_made(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget it."""
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note that it is in use, and close it unless the headers it begins come in time."""
        self._connections.used(self)
        super().data_received(data)
        waiter = self._waiter  # there is another one for each request
        if waiter is not None and self.is_idle and waiter is not self._begun:
            self._begun = waiter
            self._loop.call_later(self._connections.headers_timeout_s, self._give_up, waiter)

    def _give_up(self, waiter: asyncio.Future[None]) -> None:
        if waiter is self._waiter and self.is_idle:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - quotes what was sent
    ) -> web.StreamResponse:
        """Answer what never reached the application."""
        problem = ProblemError(400, "malformed", "This is not a request of HTTP/1.1.")
        if status != 400:
            problem = ProblemError(status, "internal", "This is a fault of the service.")
            self.log_exception("Unhandled", exc_info=exc)
        response = web.Response(
            body=encoded(problem, None),
            status=status,
            headers={**SECURITY_HEADERS, "Content-Type": MEDIA_TYPE},
        )
        response.force_close()
        return response


def most_connections(wanted: int) -> int:
    """Raise the limit of open files as far as the system allows.

    Returns as many of the wanted connections as fit under it.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    kept = 2 * ACCEPTED_AT_ONCE + _FOR_HEALTH + _FOR_FILES  # those of the time before close yet
    return max(1, min(wanted, max(files - kept, files // 2)))
