"""The aiohttp application: every route with its models and middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import hdrs, web

from planner.fields.specified import Specified
from relayd.http.middleware.reading import as_model, read_body, read_query, read_question
from relayd.http.middleware.stack import MiddlewareStack
from relayd.http.models.questions import check_limits
from relayd.http.route import EVENT_STREAM, RequestContext, Route
from relayd.http.routes.all import ROUTES
from relayd.http.server.service import Service

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(service: Service) -> tuple[web.Application, Mapping[str, Handler]]:
    """Return the application of a service that has begun, and for :func:`past_router` handlers.

    These are the same, of GET on paths whose answers are often known, by path.
    """
    app = web.Application()
    stack = MiddlewareStack(service)
    often: dict[str, Handler] = {}
    for route in ROUTES:
        endpoint = stack.around(_endpoint(service, route), route)
        app.router.add_route(route.method, route.path, endpoint)
        if route.cached is not None and route.method == "GET" and not route.parameters:
            often[route.path] = endpoint
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
    return app, often


def past_router(often: Mapping[str, Handler], otherwise: Handler) -> Handler:
    """Return a handler that leaves what is asked often to its handler, and all else to the router.

    Finding a route, and what aiohttp does with it before it calls the handler, takes a tenth of
    what a plan from the cache takes.

    Parameters
    ----------
    often : mapping
        Handlers of GET, by path as it is sent.
    otherwise : callable
        The application's own, which finds any route.
    """

    def handle(request: web.Request) -> Awaitable[web.StreamResponse]:
        if request.method == hdrs.METH_GET:
            handler = often.get(request.raw_path.partition("?")[0])
            # A client that asks whether to send its body is told so by the application.
            if handler is not None and hdrs.EXPECT not in request.headers:
                return handler(request)
        return otherwise(request)

    return handle


def _endpoint(service: Service, route: Route) -> Handler:
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
