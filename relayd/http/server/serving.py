"""The service as a process: sockets, TLS, signals, a graceful end."""

from __future__ import annotations

import asyncio
import errno
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
from relayd.http.middleware.rate_limits import RateLimits
from relayd.http.processes.folder import shared_folder
from relayd.http.processes.parent import ProcessGroup
from relayd.http.processes.peers import LEADER, Peers, SharedState
from relayd.http.responses.problems import MEDIA_TYPE, ProblemError, encoded
from relayd.http.server.app import make_app, past_router
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
LEFT_OVER_S = 1.0
"""For requests that have not finished within the time that a service may take to stop."""


class RunningService:
    """A service that listens.

    Use :func:`start` to get one, :meth:`stop` to end it.
    """

    def __init__(
        self, service: Service, runner: web.AppRunner, servers: Sequence[asyncio.Server]
    ) -> None:
        self.service = service
        self._runner = runner
        self._servers = servers

    async def stop(self) -> None:
        """Accept nothing more, let requests in flight finish, close."""
        await self.service.begin_shutdown()
        for server in self._servers:
            server.close()
        # aiohttp stops reading at once, also bodies of requests that it has begun to answer.
        deadline_s = time.monotonic() + self.service.settings.shutdown_s
        while self.service.in_flight and time.monotonic() < deadline_s:
            await asyncio.sleep(POLL_EVERY_S)
        await self._runner.cleanup()
        await self.service.end()


async def start(
    settings: ServiceSettings,
    db: Location,
    catalogues: Sequence[Path],
    listeners: Sequence[socket.socket],
    peers: Peers,
    log: Log,
) -> RunningService:
    """Begin to serve, as one of the processes of a service.

    Raises
    ------
    RelaydError
        If a setting is wrong, the store can't be used, or the address is taken.
    """
    share = settings.share()
    tls = _tls(share)
    service = Service(
        share,
        db,
        catalogues,
        opener(db, catalogues, share.fleet, peers.shared.columns),
        log,
        openapi=document,
        documentation=page,
        peers=peers,
        telemetry=_telemetry(share),
    )
    await service.begin()
    app, often = make_app(service)
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=share.idle_timeout_s,
        max_line_size=MOST_LINE,
        max_field_size=MOST_LINE,
        max_headers=MOST_HEADERS,
        shutdown_timeout=LEFT_OVER_S,  # after RunningService.stop has waited
        handler_cancellation=False,
        auto_decompress=False,  # compressed bodies are refused
    )
    await runner.setup()
    web_server = runner.server
    assert web_server is not None
    server_for_any: Any = web_server  # whose handler is declared for requests of any class
    server_for_any.request_handler = past_router(often, server_for_any.request_handler)
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = web_server._kwargs
    servers = []
    try:
        for listener in listeners:
            server = await loop.create_server(
                lambda: _Connection(service.connections, web_server, loop=loop, **options),
                sock=listener,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S if tls else None,
                # Of several processes the one that is idle takes the next connection.
                backlog=ACCEPTED_AT_ONCE if settings.processes == 1 else 1,
            )
            servers.append(server)
            # asyncio accepts as many at once as may wait to be accepted; more may wait.
            listener.listen(BACKLOG)
    except OSError as error:
        await runner.cleanup()
        await service.end()
        raise _taken(settings, error) from None
    return RunningService(service, runner, servers)


def serve(
    settings: ServiceSettings,
    db: Location,
    catalogues: Sequence[Path],
    ready: Callable[[str], None],
    show_token: Callable[[FirstToken, str], None],
) -> None:
    """Serve until a signal (SIGTERM, SIGINT) says to stop.

    Parameters
    ----------
    ready : callable
        Called once, with the address at which it listens.
    show_token : callable
        Called before that with the token that a new store gets, and the address.

    Raises
    ------
    RelaydError
        If a setting is wrong, the store can't be used, or the address is taken.
    """
    for problem in settings.problems():
        raise problem
    listeners = _bound(settings)
    url = _url(settings, listeners[0])
    limits = RateLimits(settings.requests_per_s, settings.burst)

    def run(place: int, began: Callable[[], None], parent: int | None = None) -> None:
        log = Log(process=None if parent is None else place)

        async def story() -> None:
            stopped = _stopped(parent)
            running = await start(settings, db, catalogues, listeners, Peers(shared, place), log)
            log.info("listening", url=url)
            if place == LEADER and (token := await running.service.make_first_token()):
                show_token(token, url)
            began()
            await stopped.wait()
            log.info("stopping")
            await running.stop()
            log.info("stopped")
            log.flush()

        handler = LogHandler(log)
        for name in ("aiohttp", "asyncio", "opentelemetry"):
            logging.getLogger(name).addHandler(handler)
            logging.getLogger(name).propagate = False
        asyncio.run(story())

    def announce() -> None:
        ready(url)

    with shared_folder() as folder:
        shared = SharedState(settings.processes, limits, folder)
        if settings.processes == 1:
            run(LEADER, announce)
        else:
            ProcessGroup(shared, listeners, run, announce).run()


def _stopped(parent: int | None) -> asyncio.Event:
    """Return an event that a signal sets, or the end of the parent.

    Parameters
    ----------
    parent : int | None
        A pipe that ends with the parent.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    if parent is None:
        loop.add_signal_handler(signal.SIGINT, stopped.set)
        return stopped

    def orphaned() -> None:
        loop.remove_reader(parent)
        stopped.set()

    loop.add_reader(parent, orphaned)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent held signals back until here
    return stopped


def _bound(settings: ServiceSettings) -> list[socket.socket]:
    """Return a socket for each address of the host; none listens yet."""
    found: list[socket.socket] = []
    unusable: OSError | None = None
    try:
        addresses = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for address in dict.fromkeys(addresses):
            try:
                found.append(_listener(*address))
            except OSError as error:
                # A name may stand for an address of a kind that this machine has switched off.
                if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
                    raise
                unusable = error
        if unusable and not found:
            raise unusable
    except OSError as error:
        for listener in found:
            listener.close()
        raise _taken(settings, error) from None
    return found


def _listener(family: int, kind: int, protocol: int, _: str, address: Any) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _taken(settings: ServiceSettings, error: OSError) -> InputError:
    return InputError(
        "host and port",
        f"can't be listened at ({error.strerror or error})",
        value=f"{settings.host}:{settings.port}",
        remedy="Stop what listens there, or choose another port.",
    )


def _url(settings: ServiceSettings, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


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
