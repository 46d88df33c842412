"""RunningService the service: sockets, TLS, signals, a graceful end."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from planner.model.errors import InputError
from relayd.http.description.documentation import page
from relayd.http.description.openapi import document
from relayd.http.middleware.headers import SECURITY_HEADERS
from relayd.http.middleware.logs import Log, LogHandler
from relayd.http.responses.problems import MEDIA_TYPE, ProblemError, encoded
from relayd.http.server.app import make_app
from relayd.http.server.connections import ACCEPTED_AT_ONCE, Connections
from relayd.http.server.current_state import opener
from relayd.http.server.service import Service
from relayd.http.server.settings import ServiceSettings
from relayd.store import Location
from relayd.store.kept_token import FirstToken

if TYPE_CHECKING:
    from relayd.http.monitoring.telemetry import Telemetry

MOST_LINE = 8190
"""Bytes of a request line, and of a header."""
MOST_HEADERS = 64
BACKLOG = 1024
"""Connections that may wait to be accepted."""
SHUTDOWN_TIMEOUT_S = 2.0
"""For the goodbye of TLS: until then the file of a closed connection stays open."""
HANDSHAKE_TIMEOUT_S = 10.0
"""Of TLS; a connection counts as one only after it."""
POLL_EVERY_S = 0.02


class RunningService:
    """A service that listens.

    Use :func:`start` to get one, :meth:`stop` to end it.
    """

    def __init__(self, service: Service, runner: web.AppRunner, server: asyncio.Server) -> None:
        self.service = service
        self._runner = runner
        self._server = server

    @property
    def url(self) -> str:
        """The address at which it listens."""
        host, port = self._server.sockets[0].getsockname()[:2]
        scheme = "https" if self.service.settings.tls_cert else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, close."""
        await self.service.begin_shutdown()
        self._server.close()
        # aiohttp stops reading at once, also bodies of requests that it has begun to answer.
        deadline_s = time.monotonic() + self.service.settings.shutdown_s
        while self.service.in_flight and time.monotonic() < deadline_s:
            await asyncio.sleep(POLL_EVERY_S)
        await self._runner.cleanup()
        await self.service.end()


async def start(
    settings: ServiceSettings, db: Location, catalogues: Sequence[Path] = (), log: Log | None = None
) -> RunningService:
    """Begin to serve.

    Raises
    ------
    RelaydError
        If a setting is wrong, the store can't be used, or the address is taken.
    """
    for problem in settings.problems():
        raise problem
    tls = _tls(settings)
    service = Service(
        settings,
        db,
        catalogues,
        opener(db, catalogues, settings.fleet),
        log or Log(),
        openapi=document,
        documentation=page,
        telemetry=_telemetry(settings),
    )
    await service.begin()
    runner = web.AppRunner(
        make_app(service),
        access_log=None,
        keepalive_timeout=settings.idle_timeout_s,
        max_line_size=MOST_LINE,
        max_field_size=MOST_LINE,
        max_headers=MOST_HEADERS,
        shutdown_timeout=settings.shutdown_s,
        handler_cancellation=False,
        auto_decompress=False,  # compressed bodies are refused
    )
    await runner.setup()
    web_server = runner.server
    assert web_server is not None
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = web_server._kwargs
    try:
        server = await loop.create_server(
            lambda: _Connection(service.connections, web_server, loop=loop, **options),
            settings.host,
            settings.port,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
            ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S if tls else None,
            backlog=ACCEPTED_AT_ONCE,
            reuse_address=True,
        )
        for listening in server.sockets:
            # asyncio accepts as many at once as may wait to be accepted; more may wait.
            with socket.fromfd(listening.fileno(), listening.family, listening.type) as same:
                same.listen(BACKLOG)
    except OSError as error:
        await runner.cleanup()
        await service.end()
        raise InputError(
            "host and port",
            f"can't be listened at ({error.strerror or error})",
            value=f"{settings.host}:{settings.port}",
            remedy="Stop what listens there, or choose another port.",
        ) from None
    return RunningService(service, runner, server)


async def serve(
    settings: ServiceSettings,
    db: Location,
    catalogues: Sequence[Path],
    ready: Callable[[RunningService, FirstToken | None], None],
) -> None:
    """Serve until a signal (SIGTERM, SIGINT) says to stop."""
    log = Log()
    handler = LogHandler(log)
    for name in ("aiohttp", "asyncio", "opentelemetry"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    running = await start(settings, db, catalogues, log)
    log.info("listening", url=running.url)
    ready(running, await running.service.make_first_token())
    await stopped.wait()
    log.info("stopping")
    await running.stop()
    log.info("stopped")
    log.flush()


class _Connection(RequestHandler):
    """One client; what can't be read as HTTP gets a problem document, too."""

    __slots__ = ("_connections",)

    def __init__(self, connections: Connections, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._connections = connections

    @property
    def is_idle(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._connections.used(self)
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - quotes what was sent
    ) -> web.StreamResponse:
        if status == 400:
            problem = ProblemError(400, "malformed", "This is not a request of HTTP/1.1.")
        else:
            problem = ProblemError(status, "internal", "This is a fault of the service.")
            self.log_exception("Unhandled", exc_info=exc)
        response = web.Response(
            body=encoded(problem, None),
            status=status,
            headers={**SECURITY_HEADERS, "Content-Type": MEDIA_TYPE},
        )
        response.force_close()
        return response


def _telemetry(settings: ServiceSettings) -> Telemetry | None:
    if not settings.otlp_endpoint:
        return None
    from relayd.http.monitoring.telemetry import Telemetry

    return Telemetry(settings.otlp_endpoint)


def _tls(settings: ServiceSettings) -> ssl.SSLContext | None:
    if not settings.tls_cert or not settings.tls_key:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            "tls_cert and tls_key",
            f"can't be used: {error}",
            value=str(settings.tls_cert),
            remedy="Give a PEM certificate (with its chain) and its key.",
        ) from None
    return context
