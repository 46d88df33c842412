"""What surrounds every request: its id, who asks, how often, errors, headers, log and metrics."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from relayd.service.problems import MEDIA_TYPE, ProblemError, encoded, problem_of

if TYPE_CHECKING:
    from relayd.service.routes.table import Route
    from relayd.service.service import Service

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REQUEST_ID = "X-Request-ID"
# An id of the caller's goes into logs as it is, so it may only be of harmless characters.
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UNROUTED = "unmatched"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Server": "relayd",
}
_SECURITY = list(SECURITY_HEADERS.items())
_HSTS = ("Strict-Transport-Security", "max-age=31536000")


def make_frame(service: Service) -> Middleware:
    """Return the one middleware of the service."""
    numbers = count(1)
    process = secrets.token_hex(4)
    log, metrics, access, limits = service.log, service.metrics, service.access, service.limits
    origins = frozenset(service.settings.cors_origins)
    access_log = service.settings.access_log
    headers = [*_SECURITY, _HSTS] if service.settings.tls_cert else _SECURITY
    clock = time.perf_counter

    @web.middleware
    async def frame(request: web.Request, handler: Handler) -> web.StreamResponse:
        began_s = clock()
        request_id = request.headers.get(REQUEST_ID)
        if request_id is None or not _SANE_ID.fullmatch(request_id):
            request_id = f"{process}-{next(numbers):x}"
        request["request_id"] = request_id
        route: Route | None = getattr(request.match_info.handler, "route", None)
        template = route.path if route else _UNROUTED
        caller: object = None
        response: web.StreamResponse
        try:
            if origins and (answer := _preflight(request, origins)):
                response = answer
            else:
                caller = access.caller(request, route.scope if route else None)
                wait_s = limits.wait_s(caller, began_s)
                if wait_s and not (route and route.unlimited):
                    raise _too_many(wait_s)
                response = await handler(request)
        except asyncio.CancelledError:
            if request.transport is None or request.transport.is_closing():
                raise  # whoever asked has gone
            raise
        except Exception as error:  # noqa: BLE001 - every one becomes a problem document
            problem = problem_of(error)
            if problem.status == 500:
                log.error("fault", error, request_id=request_id, route=template)
            response = _as_response(problem, request_id)
        if not response.prepared:
            own = response.headers
            for name, value in headers:
                if name not in own:
                    own[name] = value
            own[REQUEST_ID] = request_id
            if origins:
                _allow_origin(request, response, origins)
        seconds = clock() - began_s
        metrics.answered(template, request.method if route else "", response.status, seconds)
        if access_log:
            log.info(
                "request", request_id=request_id, method=request.method, route=template,
                path=request.path, status=response.status, duration_ms=round(seconds * 1e3, 3),
                caller=caller,
            )  # fmt: skip
        return response

    return frame


def _as_response(problem: ProblemError, request_id: str) -> web.Response:
    headers = {**problem.headers, hdrs.CONTENT_TYPE: MEDIA_TYPE}
    response = web.Response(
        body=encoded(problem, request_id), status=problem.status, headers=headers
    )
    if problem.status in (408, 413):
        response.force_close()  # the rest of the body is not wanted
    return response


def _too_many(wait_s: float) -> ProblemError:
    whole_s = max(1, int(wait_s + 0.999))
    return ProblemError(
        429, "rate-limited", f"Too many requests from you; go on in {whole_s} s.",
        headers={"Retry-After": str(whole_s)},
    )  # fmt: skip


def _preflight(request: web.Request, origins: frozenset[str]) -> web.Response | None:
    """Return the answer to a browser that asks whether a page may ask (Fetch, CORS)."""
    wanted = hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
    if request.method != hdrs.METH_OPTIONS or not wanted:
        return None
    return web.Response(
        status=204,
        headers={
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST",
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: "Authorization, Content-Type, If-None-Match",
            hdrs.ACCESS_CONTROL_MAX_AGE: "600",
        }
        if request.headers.get(hdrs.ORIGIN) in origins
        else {},
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
