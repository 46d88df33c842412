"""The aiohttp application: every route behind the log, audit, errors, access and headers."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web
from aiohttp.web_urldispatcher import AbstractRoute

from planner.fields.specified import Specified
from relayd.dashboard.pages import HTML, POLICY, error_page
from relayd.http.access import SAFE_METHODS, SECURITY_HEADERS, BrowserChecks
from relayd.http.description import ALL_ROUTES
from relayd.http.fair_queue import CALLER
from relayd.http.problems import MEDIA_TYPE, ProblemError, encoded, problem_of
from relayd.http.reading import as_model, read_body, read_query, read_question
from relayd.http.route import EVENT_STREAM, ID_KEY, RequestContext, Route
from relayd.http.routes.plans import check_limits
from relayd.http.service import Service

if TYPE_CHECKING:
    from aiohttp.typedefs import Middleware

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
_EXPOSED = "ETag, Relayd-Snapshot, Relayd-As-Of, Retry-After, X-Request-ID"


def make_app(service: Service) -> web.Application:
    """Return the application of a service that has begun."""
    routes: dict[AbstractRoute, Route] = {}
    middlewares = Middlewares(service, routes)
    app = web.Application(middlewares=middlewares.all())
    app.on_response_prepare.append(middlewares.add_headers)
    for route in ALL_ROUTES:
        endpoint = _endpoint(service, route)
        methods = [route.method]
        if route.method == "GET" and route.media_type != EVENT_STREAM:
            methods.append("HEAD")
        for method in methods:
            routes[app.router.add_route(method, route.path, endpoint)] = route
    return app


def _endpoint(service: Service, route: Route) -> Handler:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        query, body = await _read(service, route, request)
        return await route.answered(RequestContext(service, service.current, request, query, body))

    return endpoint


async def _read(service: Service, route: Route, request: web.Request) -> tuple[Any, Any]:
    """Return the query and the body of a request, by the route's models or its question."""
    if not route.documented:  # the query of a page is for its script
        return None, None
    question = route.question
    if question is not None and route.method == "GET":
        return read_question(request, question), None
    query = read_query(request, route.query)
    if len(route.body_types) > 1 or (question is None and route.body is None):
        return query, None
    settings = service.settings
    value = await read_body(request, int(settings.body_mb * 1e6), settings.read_timeout_s)
    if question is None:
        assert route.body
        if issubclass(route.body, Specified):
            return query, route.body.from_json(value)
        return query, as_model(value, route.body)
    asked = question.request.from_json(value)
    check_limits(question, asked)
    return query, asked


class Middlewares:
    """The middlewares of a service.

    Parameters
    ----------
    service : Service
    routes : mapping
        aiohttp's routes to ours; a request that matches none has none.
    """

    def __init__(self, service: Service, routes: Mapping[AbstractRoute, Route]) -> None:
        self._service = service
        self._routes = routes
        settings = service.settings
        self._origins = frozenset(settings.cors_origins)
        self._browsers = BrowserChecks(settings.host_names, self._origins)
        self._has_tls = settings.tls_cert is not None

    def all(self) -> list[Middleware]:
        """Return all of them, the outermost first."""
        return [self.log, self.audit, self.errors, self.guard]

    def _route(self, request: web.Request) -> Route | None:
        return self._routes.get(request.match_info.route)

    @web.middleware
    async def log(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give a request its id; count it, trace it, and log it."""
        service, route, began_s = self._service, self._route(request), time.perf_counter()
        request_id = request[ID_KEY] = _request_id(request)
        template = route.path if route else UNMATCHED
        telemetry = service.telemetry
        end_span = telemetry and telemetry.begin(request.method, template, request.headers)
        service.in_flight += 1
        try:
            response = await handler(request)
        finally:
            service.in_flight -= 1
        if service.is_stopping or service.connections.are_too_many:
            response.force_close()
        if end_span:
            end_span(response.status, request_id)
        seconds = time.perf_counter() - began_s
        method = request.method if route else ""
        service.metrics.requests.labels(template, method, response.status).observe(seconds)
        if service.settings.access_log:
            about = {
                "request_id": request_id,
                "method": request.method,
                "route": template,
                "status": response.status,
                "duration_ms": seconds * 1e3,
                "caller": request.get("caller"),
            }
            if route is None or route.parameters:
                about["path"] = request.path
            LOG.info("request", extra=about)
        return response

    @web.middleware
    async def audit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Log who changed something, or tried to, and keep in the store who started what."""
        response = await handler(request)
        route, service = self._route(request), self._service
        if route is None or not route.changes:
            return response
        who = service.access.holder(request)
        about = {
            "request_id": request[ID_KEY],
            "token": who,
            "address": request.remote,
            "method": request.method,
            "path": request.path,
            "status": response.status,
        }
        LOG.info("change", extra=about)
        if response.status in _STARTED:
            await service.record_change(
                f"{request.method} {request.path}",
                response.headers.get(hdrs.LOCATION, ""),
                who=who or "anybody",
                address=request.remote or "",
            )
        return response

    @web.middleware
    async def errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer with a problem document where something was raised."""
        try:
            return await handler(request)
        except Exception as error:
            route, problem = self._route(request), problem_of(error)
            if problem.status == 500:
                about = {"request_id": request[ID_KEY], "route": route.path if route else UNMATCHED}
                LOG.error("fault", exc_info=error, extra=about)
            return _as_response(problem, request[ID_KEY], _path_of_page(request, route))

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what browsers, tokens, rates and connections don't allow."""
        service, route = self._service, self._route(request)
        is_limited = route is None or not route.unlimited
        self._browsers.check_host(request)
        if request.method not in SAFE_METHODS or (route and route.media_type == EVENT_STREAM):
            self._browsers.check_origin(request)
        if is_limited and service.connections.are_too_many:
            raise _too_many_connections()
        caller = service.access.caller(request, route.scope if route else None)
        request["caller"] = caller
        CALLER.set(caller if is_limited else HEALTH)
        if is_limited and (wait_s := service.limits.wait_s(caller, time.monotonic())):
            raise _too_many(wait_s)
        return self._preflight(request) or await handler(request)

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of every answer, just before it is sent."""
        headers = response.headers
        for name, value in SECURITY_HEADERS.items():
            if name not in headers or name == hdrs.SERVER:
                headers[name] = value
        if request_id := request.get(ID_KEY):
            headers[REQUEST_ID] = request_id
        if self._has_tls:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        if self._origins:
            headers.add(hdrs.VARY, hdrs.ORIGIN)
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


def _request_id(request: web.Request) -> str:
    given = request.headers.get(REQUEST_ID)
    return given if given is not None and _SANE_ID.fullmatch(given) else secrets.token_hex(8)


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
        503, "unavailable", "All connections are in use; `max_connections` bounds them.", retry_s=1
    )


def _too_many(wait_s: float) -> ProblemError:
    whole_s = max(1, int(wait_s + 0.999))
    return ProblemError(
        429, "rate-limited", f"Too many requests from you; go on in {whole_s} s.", retry_s=whole_s
    )
