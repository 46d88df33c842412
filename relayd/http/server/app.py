"""The aiohttp application: routes, their models around them, and a frame around these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from relayd.http.middleware.reading import read_body, read_query
from relayd.http.middleware.stack import MiddlewareStack
from relayd.http.route import RequestContext, Route
from relayd.http.routes.all import ROUTES
from relayd.http.routes.events import EVENT_STREAM
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
    quick = route.cached
    most_bytes = int(service.settings.body_mb * 1e6)
    timeout_s = service.settings.read_timeout_s

    async def endpoint(request: web.Request) -> web.StreamResponse:
        if quick is not None and (known := quick(service, request)) is not None:
            return known
        # The query of a page is its script's to read.
        query = read_query(request, route.query) if route.documented else None
        body = None
        if route.body is not None and not route.raw_body:
            body = await read_body(request, route.body, most_bytes, timeout_s)
        return await route.handler(RequestContext(service, request, query, body))

    return endpoint
