"""The aiohttp application: every route with its models, behind the middlewares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_urldispatcher import AbstractRoute

from planner.fields.specified import Specified
from relayd.http.middlewares import Middlewares
from relayd.http.models.questions import check_limits
from relayd.http.reading import as_model, read_body, read_query, read_question
from relayd.http.route import EVENT_STREAM, RequestContext, Route
from relayd.http.routes import ROUTES
from relayd.http.service import Service

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(service: Service) -> web.Application:
    """Return the application of a service that has begun."""
    routes: dict[AbstractRoute, Route] = {}
    middlewares = Middlewares(service, routes)
    app = web.Application(middlewares=middlewares.all())
    app.on_response_prepare.append(middlewares.add_headers)
    for route in ROUTES:
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
