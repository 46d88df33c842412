"""Middleware: request ids, browsers, access, rate limits, errors, headers, log and metrics."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable
from itertools import count

from aiohttp import hdrs, web

from relayd.dashboard.pages import HTML, POLICY, error_page
from relayd.http.middleware.browsers import SAFE_METHODS, BrowserChecks
from relayd.http.middleware.headers import HSTS, SECURITY_HEADERS
from relayd.http.responses.prepared_response import PreparedResponse
from relayd.http.responses.problems import MEDIA_TYPE, ProblemError, encoded, problem_of
from relayd.http.route import EVENT_STREAM, ID_KEY, Route
from relayd.http.server.fair_queue import CALLER
from relayd.http.server.service import Service

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REQUEST_ID = "X-Request-ID"
# An id of the caller's goes into logs as it is, so it may only be of harmless characters.
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"
HEALTH = "health checks"
"""A caller of its own: checks don't wait behind what comes from the same address."""
_STARTED = frozenset({201, 202})
"""Statuses of what made or started something; batches of samples say themselves who sent them."""
_SECURITY = list(SECURITY_HEADERS.items())


class MiddlewareStack:
    """Wraps handlers in all middleware.

    It is not a middleware of aiohttp: wrapping each handler itself, it knows the route and costs
    a few microseconds less per request.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._numbers = count(1)
        self._process = secrets.token_hex(4)
        settings = service.settings
        self._origins = frozenset(settings.cors_origins)
        self._browsers = BrowserChecks(settings.host_names, self._origins)

    def around(self, handler: Handler, route: Route | None) -> Handler:
        """Return a handler in all middleware; `route` is None for requests that match none."""
        service, origins, browsers = self._service, self._origins, self._browsers
        log, metrics, access, limits = (
            service.log,
            service.metrics,
            service.access,
            service.limits,
        )
        connections = service.connections
        template = route.path if route else UNMATCHED
        scope = route.scope if route else None
        changes = route is not None and route.changes
        is_limited = route is None or not route.unlimited
        streams = route is not None and route.media_type == EVENT_STREAM
        has_tls = service.settings.tls_cert is not None
        access_log = service.settings.access_log
        telemetry = service.telemetry
        clock = time.perf_counter

        async def handle(request: web.Request) -> web.StreamResponse:
            began_s = clock()
            request_id = self._request_id(request)
            request[ID_KEY] = request_id
            caller: object = None
            end_span = (
                telemetry.begin(request.method, template, request.headers) if telemetry else None
            )
            service.in_flight += 1
            try:
                browsers.check_host(request)
                if streams or request.method not in SAFE_METHODS:
                    browsers.check_origin(request)
                if is_limited and connections.are_too_many:
                    raise _too_many_connections()
                caller = access.caller(request, scope)
                CALLER.set(caller if is_limited else HEALTH)
                if is_limited and (wait_s := limits.wait_s(caller, began_s)):
                    raise _too_many(wait_s)
                response = await handler(request)
            except Exception as error:  # noqa: BLE001 - every one becomes a problem document
                problem = problem_of(error)
                if problem.status == 500:
                    log.error("fault", error, request_id=request_id, route=template)
                response = _as_response(problem, request_id, _path_of_page(request, route))
            finally:
                service.in_flight -= 1
            if service.is_stopping or connections.are_too_many:
                response.force_close()
            if not response.prepared:
                own = response.headers
                if not isinstance(response, PreparedResponse):
                    for name, value in _SECURITY:
                        if name not in own:
                            own[name] = value
                own[REQUEST_ID] = request_id
                if has_tls:
                    own[HSTS[0]] = HSTS[1]
                if origins:
                    _allow_origin(request, response, origins)
            if changes:
                log.change(
                    request_id,
                    access.holder(request),
                    request.remote,
                    request.method,
                    request.path,
                    response.status,
                )
                if response.status in _STARTED:
                    await service.record_change(
                        f"{request.method} {request.path}",
                        response.headers.get(hdrs.LOCATION, ""),
                        who=access.holder(request) or "anybody",
                        address=request.remote or "",
                    )
            if end_span:
                end_span(response.status, request_id)
            seconds = clock() - began_s
            method = request.method if route else ""
            metrics.answered(template, method, response.status, seconds)
            if access_log:
                log.request(
                    request_id,
                    request.method,
                    template,
                    "" if fixed else request.path,
                    response.status,
                    seconds,
                    caller,
                )
            return response

        fixed = route is not None and "{" not in route.path
        return handle

    def preflight(self, request: web.Request) -> web.Response | None:
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

    def _request_id(self, request: web.Request) -> str:
        given = request.headers.get(REQUEST_ID)
        if given is not None and _SANE_ID.fullmatch(given):
            return given
        return f"{self._process}-{next(self._numbers):x}"


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


def _too_many_connections() -> ProblemError:
    return ProblemError(
        503,
        "unavailable",
        "All connections are in use; `max_connections` bounds them.",
        headers={"Retry-After": "1"},
    )


def _too_many(wait_s: float) -> ProblemError:
    whole_s = max(1, int(wait_s + 0.999))
    return ProblemError(
        429,
        "rate-limited",
        f"Too many requests from you; go on in {whole_s} s.",
        headers={"Retry-After": str(whole_s)},
    )


def _allow_origin(
    request: web.Request, response: web.StreamResponse, origins: frozenset[str]
) -> None:
    response.headers.add(hdrs.VARY, hdrs.ORIGIN)
    origin = request.headers.get(hdrs.ORIGIN)
    if origin in origins:
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
        response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = (
            "ETag, Relayd-Snapshot, Relayd-As-Of, Retry-After, X-Request-ID"
        )
