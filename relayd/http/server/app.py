"""The aiohttp application: every route with its models and middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from planner.fields.specified import Specified
from relayd.http.middleware.reading import as_model, read_body, read_query, read_question
from relayd.http.middleware.stack import MiddlewareStack
from relayd.http.models.questions import check_limits
from relayd.http.route import EVENT_STREAM, RequestContext, Route
from relayd.http.routes.all import ROUTES
from relayd.http.server.service import Service


def make_app(service: Service) -> web.Application:
    """Return the application of a service that has begun."""
    app = web.Application()
    stack = MiddlewareStack(service)
    for route in ROUTES:
        endpoint = stack.around(_endpoint(service, route), route)
        app.router.add_route(route.method, route.path, endpoint)
        if route.method == "GET" and route.media_type != EVENT_STREAM:
            app.router.add_route("HEAD", route.path, endpoint)
    resources = list(app.router.resources())

    async def unmatched(request: web.Request) -> web.StreamResponse:
        if answer := stack.preflight(request):
            return answer
        allowed: set[str] = set()
        for resource in resources:
            allowed |= (await resource.resolve(request))[1]
        if allowed:
            raise web.HTTPMethodNotAllowed(request.method, allowed)
        raise web.HTTPNotFound

    app.router.add_route("*", "/{path:.*}", stack.around(unmatched, None))
    return app


def _endpoint(
    service: Service, route: Route
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    cached = route.cached

    async def endpoint(request: web.Request) -> web.StreamResponse:
        if cached is not None and (known := cached(service, request)) is not None:
            return known
        query, body = await _read(service, route, request)
        return await route.handler(RequestContext(service, request, query, body))

    return endpoint


async def _read(service: Service, route: Route, request: web.Request) -> tuple[Any, Any]:
    """Return the query and the body of a request, by the route's models or its question."""
    if not route.documented:  # the query of a page is for its script
        return None, None
    question = route.question
    if question is not None and route.method == "GET":
        return read_question(request, question), None
    query = read_query(request, route.query)
    if route.raw_body or (question is None and route.body is None):
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
