"""The service as a process: sockets, TLS, signals, a graceful end; and its aiohttp application.

The application has routes behind access, the log, audit, problem documents and headers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import signal
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web
from aiohttp.web_urldispatcher import AbstractRoute

from planner.model.errors import InputError, RelaydError
from relayd.dashboard.pages import HTML, POLICY, error_page
from relayd.http.access import SAFE_METHODS, SECURITY_HEADERS, BrowserChecks
from relayd.http.connections import ACCEPTED_AT_ONCE, ClientConnection
from relayd.http.description import ALL_ROUTES
from relayd.http.fair_queue import CALLER
from relayd.http.monitoring.logs import log_to
from relayd.http.problems import MEDIA_TYPE, ProblemError, encoded, problem_of
from relayd.http.route import EVENT_STREAM, ID_KEY, Route
from relayd.http.service import Service
from relayd.http.settings import ServiceSettings
from relayd.store import Location
from relayd.store.events import record_change
from relayd.store.tokens import FirstToken

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOG = logging.getLogger(__name__)
REQUEST_ID = "X-Request-ID"
# An id of the caller's goes into logs as it is, so it may only be of harmless characters.
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"
HEALTH = "health checks"
"""A caller of its own: checks don't wait behind what comes from the same address."""
_STARTED = frozenset({201, 202})
"""Statuses of what made or started something; batches of samples say themselves who sent them."""
_EXPOSED = (
    "ETag, Relayd-Snapshot, Relayd-As-Of, Retry-After, X-Request-ID, RateLimit, RateLimit-Policy"
)
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
    tls = _tls(settings)
    service = Service(settings, db, catalogues)
    await service.begin()
    runner = web.AppRunner(
        make_app(service),
        shutdown_timeout=LEFT_OVER_S,  # after requests in flight were waited for
        handler_cancellation=False,
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
        partial(
            ClientConnection,
            service.connections,
            web_server,
            loop=loop,
            access_log=None,
            keepalive_timeout=settings.idle_timeout_s,
            max_line_size=MOST_LINE,
            max_field_size=MOST_LINE,
            max_headers=MOST_HEADERS,
            auto_decompress=False,  # compressed bodies are refused
        ),
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


# ---- the application ----------------------------------------------------------------------------


def make_app(service: Service) -> web.Application:
    """Return the application of a service that has begun."""
    handling = _Handling(service)
    app = web.Application(middlewares=[handling.handle])
    app.on_response_prepare.append(handling.add_headers)
    for route in ALL_ROUTES:
        methods = [route.method]
        if route.method == "GET" and route.media_type != EVENT_STREAM:
            methods.append("HEAD")
        for method in methods:
            added = app.router.add_route(method, route.path, partial(route.answered, service))
            handling.routes[added] = route
    return app


class _Handling:
    """The middleware of a service, and the routes by which it judges requests."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.routes: dict[AbstractRoute, Route] = {}
        settings = service.settings
        self._origins = frozenset(settings.cors_origins)
        names = filter(None, (settings.host, settings.behind_proxy, *settings.allowed_hosts))
        self._browsers = BrowserChecks([*names], self._origins)

    @web.middleware
    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, by a problem document where something was raised; count and log it."""
        service, began_s = self._service, time.perf_counter()
        route = self.routes.get(request.match_info.route)
        template = route.path if route else UNMATCHED
        given_id = request.headers.get(REQUEST_ID, "")
        request_id = given_id if _SANE_ID.fullmatch(given_id) else secrets.token_hex(8)
        request[ID_KEY] = request_id
        service.in_flight += 1
        try:
            try:
                self._check(request, route)
                response = self._preflight(request) or await handler(request)
            except Exception as error:
                problem = problem_of(error)
                if problem.status == 500:
                    about = {"request_id": request_id, "route": template}
                    LOG.error("fault", exc_info=error, extra=about)
                response = _as_response(problem, request_id, _path_of_page(request, route))
            if route and route.changes:
                await self._audit(request, response)
        finally:
            service.in_flight -= 1
        if service.stopping.is_set() or service.connections.are_too_many:
            response.force_close()
        self._log(request, route, response.status, time.perf_counter() - began_s)
        return response

    def _log(self, request: web.Request, route: Route | None, status: int, seconds: float) -> None:
        template, method = (route.path, request.method) if route else (UNMATCHED, "")
        self._service.metrics.requests.labels(template, method, status).observe(seconds)
        if self._service.settings.access_log:
            about = {
                "request_id": request[ID_KEY],
                "method": request.method,
                "route": template,
                "status": status,
                "duration_ms": seconds * 1e3,
                "caller": request.get("caller"),
            }
            if route is None or route.parameters:
                about["path"] = request.path
            LOG.info("request", extra=about)

    async def _audit(self, request: web.Request, response: web.StreamResponse) -> None:
        """Log who changed something, or tried to, and keep in the store who started what."""
        who = self._service.access.holder(request)
        about = {
            "request_id": request[ID_KEY],
            "token": who,
            "address": request.remote,
            "method": request.method,
            "path": request.path,
            "status": response.status,
        }
        LOG.info("change", extra=about)
        if response.status not in _STARTED:
            return
        action, subject = f"{request.method} {request.path}", response.headers.get("Location", "")
        by = {"who": who or "anybody", "address": request.remote or ""}
        try:
            await self._service.store.write(
                lambda store: record_change(store.database, action, subject, **by)
            )
        except (RelaydError, ProblemError) as error:  # the log has it in any case
            LOG.warning("change not recorded", extra={"action": action, "problem": str(error)})

    def _check(self, request: web.Request, route: Route | None) -> None:
        """Refuse what browsers, tokens, rates and connections don't allow."""
        service = self._service
        is_limited = route is None or not route.unlimited
        self._browsers.check_host(request)
        self._browsers.check_cookie(request)
        if request.method not in SAFE_METHODS or (route and route.media_type == EVENT_STREAM):
            self._browsers.check_origin(request)
        if is_limited and service.connections.are_too_many:
            detail = "All connections are in use; `max_connections` bounds them."
            raise ProblemError(503, "unavailable", detail, retry_s=1)
        caller = service.access.caller(request, route.scope if route else None)
        request["caller"], request["is_limited"] = caller, is_limited
        CALLER.set(caller if is_limited else HEALTH)
        if is_limited and (wait_s := service.limits.wait_s(caller, time.monotonic())):
            whole_s = max(1, int(wait_s + 0.999))
            detail = f"Too many requests from you; go on in {whole_s} s."
            raise ProblemError(429, "rate-limited", detail, retry_s=whole_s)

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of every answer, just before it is sent."""
        headers = response.headers
        for name, value in SECURITY_HEADERS.items():
            if name not in headers or name == hdrs.SERVER:
                headers[name] = value
        if request_id := request.get(ID_KEY):
            headers[REQUEST_ID] = request_id
        if request.get("is_limited"):
            headers.update(self._service.limits.headers(request["caller"], time.monotonic()))
        if self._service.settings.tls_cert:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        if self._origins:
            varies = headers.get(hdrs.VARY)
            headers[hdrs.VARY] = f"{varies}, {hdrs.ORIGIN}" if varies else hdrs.ORIGIN
            origin = request.headers.get(hdrs.ORIGIN)
            if origin in self._origins:
                headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
                headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED

    def _preflight(self, request: web.Request) -> web.Response | None:
        """Return the answer to a browser that asks whether a page may ask (Fetch, CORS)."""
        wanted = hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not self._origins or request.method != hdrs.METH_OPTIONS or not wanted:
            return None
        response = web.Response(status=204)
        if request.headers.get(hdrs.ORIGIN) in self._origins:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = "GET, POST"
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = (
                "Authorization, Content-Type, If-None-Match, Last-Event-ID"
            )
            response.headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"
        return response


def _path_of_page(request: web.Request, route: Route | None) -> str | None:
    """Return the path if a person's browser asked for a page; None if a client asked for data."""
    is_data = request.path.startswith("/v1/") if route is None else route.documented
    if is_data or "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
        return None
    return request.rel_url.raw_path


def _as_response(problem: ProblemError, request_id: str, path: str | None) -> web.Response:
    """Return a problem as a document or, for a browser that asked for a path, as a page."""
    headers = {**problem.headers, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    body = encoded(problem, request_id)
    if path is not None:
        headers |= {hdrs.CONTENT_TYPE: HTML, "Content-Security-Policy": POLICY}
        content = problem.content
        body = error_page(content["title"], content["detail"], request_id, path)
    response = web.Response(body=body, status=problem.status, headers=headers)
    if problem.status in (408, 413):
        response.force_close()  # the rest of the body is not wanted
    return response
