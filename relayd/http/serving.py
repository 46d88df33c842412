"""The service as a process: sockets, TLS, signals, a graceful end."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from planner.model.errors import InputError
from relayd.http.app import make_app
from relayd.http.connections import ACCEPTED_AT_ONCE, ClientConnection
from relayd.http.monitoring.logs import log_to
from relayd.http.service import Service
from relayd.http.settings import ServiceSettings
from relayd.store import Location
from relayd.store.tokens import FirstToken

LOG = logging.getLogger(__name__)
MOST_LINE = 8190
"""Bytes of a request line, and of a header."""
MOST_HEADERS = 64
SHUTDOWN_TIMEOUT_S = 2.0
"""For the goodbye of TLS: until then the file of a closed connection stays open."""
HANDSHAKE_TIMEOUT_S = 10.0
"""Of TLS; a connection counts as one only after it."""
POLL_EVERY_S = 0.02
LEFT_OVER_S = 1.0
"""For requests that have not finished within the time that a service may take to stop."""


def serve(
    settings: ServiceSettings,
    db: Location,
    catalogues: Sequence[Path],
    ready: Callable[[str], None],
    show_token: Callable[[FirstToken, str], None],
) -> None:
    """Serve until a signal (SIGTERM, SIGINT) says to stop.

    ``ready`` is called once, with the address at which it listens, and ``show_token`` before that
    with the token that a new store gets, and the address.

    Raises RelaydError if a setting is wrong, the store can't be used, or the address is taken.
    """
    for problem in settings.problems():
        raise problem
    log_to(sys.stderr)
    asyncio.run(_serve(settings, db, catalogues, ready, show_token))


async def _serve(
    settings: ServiceSettings,
    db: Location,
    catalogues: Sequence[Path],
    ready: Callable[[str], None],
    show_token: Callable[[FirstToken, str], None],
) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    tls, telemetry = _tls(settings), None
    if settings.otlp_endpoint:
        from relayd.http.monitoring.telemetry import Telemetry

        telemetry = Telemetry(settings.otlp_endpoint)
    service = Service(settings, db, catalogues, telemetry)
    await service.begin()
    runner = web.AppRunner(
        make_app(service),
        access_log=None,
        keepalive_timeout=settings.idle_timeout_s,
        max_line_size=MOST_LINE,
        max_field_size=MOST_LINE,
        max_headers=MOST_HEADERS,
        shutdown_timeout=LEFT_OVER_S,  # after requests in flight were waited for
        handler_cancellation=False,
        auto_decompress=False,  # compressed bodies are refused
    )
    await runner.setup()
    try:
        server = await _listen(service, runner, tls)
    except OSError as error:
        await runner.cleanup()
        await service.end()
        problem = f"can't be listened at ({error.strerror or error})"
        remedy = "Stop what listens there, or choose another port."
        raise InputError(
            "host and port", problem, value=f"{settings.host}:{settings.port}", remedy=remedy
        ) from None
    address: tuple[Any, ...] = server.sockets[0].getsockname()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"{'https' if settings.tls_cert else 'http'}://{host}:{address[1]}"
    LOG.info("listening", extra={"url": url})
    if token := await service.make_first_token():
        show_token(token, url)
    ready(url)
    await stopped.wait()
    LOG.info("stopping")
    await _stop(service, runner, server)
    LOG.info("stopped")


async def _listen(
    service: Service, runner: web.AppRunner, tls: ssl.SSLContext | None
) -> asyncio.Server:
    web_server = runner.server
    assert web_server is not None
    loop, settings = asyncio.get_running_loop(), service.settings
    return await loop.create_server(
        partial(ClientConnection, service.connections, web_server, loop=loop, **web_server._kwargs),
        settings.host,
        settings.port,
        ssl=tls,
        ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
        ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S if tls else None,
        backlog=ACCEPTED_AT_ONCE,
    )


async def _stop(service: Service, runner: web.AppRunner, server: asyncio.Server) -> None:
    """Accept nothing more, let requests in flight finish, close."""
    service.stopping.set()
    await service.events.close()
    server.close()
    # aiohttp stops reading at once, also bodies of requests that it has begun to answer.
    deadline_s = time.monotonic() + service.settings.shutdown_s
    while service.in_flight and time.monotonic() < deadline_s:
        await asyncio.sleep(POLL_EVERY_S)
    await runner.cleanup()
    await service.end()


def _tls(settings: ServiceSettings) -> ssl.SSLContext | None:
    if not settings.tls_cert or not settings.tls_key:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        problem = f"can't be used: {error}"
        remedy = "Give a PEM certificate (with its chain) and its key."
        raise InputError(
            "tls_cert and tls_key", problem, value=str(settings.tls_cert), remedy=remedy
        ) from None
    return context
