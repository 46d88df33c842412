"""The description of the API (OpenAPI 3.1), from the routes and their models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

from aiohttp import hdrs, web
from pydantic import TypeAdapter

from planner.fields.specified import Specified, schema_of
from relayd.dashboard.pages import DOCS, rendered
from relayd.http.access import SAFE_METHODS
from relayd.http.problems import MEDIA_TYPE, Problem
from relayd.http.route import JSON, NDJSON, RequestContext, Route, route
from relayd.http.routes import campaigns, links, operations, plans, samples, snapshots, transfers
from relayd.http.routes.operations import sent
from relayd.http.routes.plans import query_schema, request_schemas
from relayd.questions.registry import QUESTIONS
from relayd.questions.transfer import TRANSFER
from relayd.version import __version__

_REFS = "#/components/schemas/{model}"
_SCHEMA_NAMES = {question.request: question.schema_name for question in QUESTIONS}
_PROBLEMS: dict[int, tuple[str, Callable[[Route], object]]] = {
    400: ("Can't be read", lambda _: True),
    401: ("Needs a valid token", lambda route: route.scope),
    403: (
        "The token lacks the scope, or it is a page of another origin",
        lambda route: route.scope or route.method not in SAFE_METHODS,
    ),
    404: ("Nothing is here", lambda route: route.parameters),
    408: ("The body did not come in time", lambda _: True),
    409: (
        "Not possible with the data at hand, or not now",
        lambda route: route.scope in ("plan", "probe"),
    ),
    413: ("Too large", lambda _: True),
    415: ("Wrong type of body", lambda route: route.method == "POST"),
    421: ("The service does not go by this name", lambda _: True),
    422: ("Not valid, or no plan meets the limits; see `kind`", lambda _: True),
    429: ("Too many requests", lambda _: True),
    500: ("A fault of the service", lambda _: True),
    503: ("Not now; see Retry-After", lambda _: True),
}
"""Problems by status: what they mean, and for which routes they may come."""
ABOUT = """\
Direct or relayed? Plans for transfers between cloud datacenters, and what they rest on.

Figures have their unit in the name: `_gbps` (10^9 bit/s), `_mbps`, `_ms`, `_s`, `_gb` (10^9
bytes), `_usd`. Each answer names the snapshot that it rests on: in `snapshot`, and in the headers
`Relayd-Snapshot` and `Relayd-As-Of`. Errors are problem documents (RFC 9457); `kind` tells them
apart.

Under `/v1`, keys and paths may be added; none is renamed, removed or given another meaning. What
is tagged `internal` serves the dashboard alone, and may change with it. Keys in `_at_s` are times
in seconds since 1970 UTC, others in `_s` are durations.
Cursors and tokens are opaque.
"""


_MAKING = Lock()


def document() -> bytes:
    """Return the description as JSON."""
    with _MAKING:  # pydantic builds what it has deferred in one thread at a time
        return _document()


@cache
def _document() -> bytes:
    routes = tuple(each for each in ALL_ROUTES if each.documented)
    definitions = _definitions(routes)
    paths: dict[str, Any] = {}
    for one in routes:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, definitions)
    needed = "From `relayd serve token create`; needed once any token was made."
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "relayd",
            "version": __version__,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": needed}
            },
        },
    }
    return json.dumps(described, indent=1, allow_nan=False).encode()


def _definitions(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the schemas of all models, by name."""
    asked = {model: 0 for one in routes for model in (one.query, one.body, *one.also_schemas)}
    wanted: list[tuple[Any, Any]] = [
        *((model, "serialization") for model in (Problem, *(one.answer for one in routes))),
        *((model, "validation") for model in asked if not (model and issubclass(model, Specified))),
    ]
    _, rest = TypeAdapter.json_schemas(
        [(*key, TypeAdapter(key[0])) for key in dict.fromkeys(wanted) if key[0]], ref_template=_REFS
    )
    found: dict[str, Any] = rest["$defs"]
    for schema in found.values():
        if "request" in schema.get("properties", {}):
            # Generated clients join both titles: "Plan" and "Request" would be a body's name.
            schema["properties"]["request"]["title"] = "Question"
    found |= {
        model.__name__: schema_of(model)
        for model in asked
        if model and issubclass(model, Specified) and model not in _SCHEMA_NAMES
    }
    for question in QUESTIONS:
        found |= request_schemas(question)
    return found | {"PlanQuery": query_schema(TRANSFER)}


def _reference(model: Any) -> dict[str, Any]:
    name = _SCHEMA_NAMES.get(model) or model.__name__
    return {"$ref": _REFS.format(model=name)}


def _operation(route: Route, definitions: dict[str, Any]) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1, "maxLength": 200}
    parameters: list[dict[str, Any]] = [
        {"name": each, "in": "path", "required": True, "schema": name} for each in route.parameters
    ]
    if route.query:
        parameters += _query(definitions["PlanQuery" if route.question else route.query.__name__])
    if route.etag:
        known = {"name": "If-None-Match", "in": "header", "required": False}
        known |= {"schema": {"type": "string"}, "description": "The ETag of what you have."}
        parameters.append(known)
    first = route.path.strip("/").split("/")
    body = None
    if route.body:
        example = route.question.example if route.question else route.example
        shape = {"schema": _reference(route.body), **({"example": example} if example else {})}
        lines = {"schema": {"type": "string", "description": "One JSON object a line."}}
        content = {kind: lines if kind == NDJSON else shape for kind in route.body_types}
        body = {"required": True, "content": content}
    parts = {
        "description": route.description,
        "parameters": parameters,
        "requestBody": body,
        "x-scope": route.scope,
    }
    return {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [first[1] if first[0] == "v1" else "operations", *["internal"] * route.internal],
        "responses": _responses(route),
        "security": [{"token": []}, {}] if route.scope else [{}],
        **{key: part for key, part in parts.items() if part},
    }


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for name, property_ in schema["properties"].items():
        shape = dict(property_)
        about = {"description": text} if (text := shape.pop("description", None)) else {}
        # Left out is what null means in a body; a query string has no null.
        options = [each for each in shape.pop("anyOf", []) if each != {"type": "null"}]
        shape |= options[0] if len(options) == 1 else {"anyOf": options} if options else {}
        if shape.get("default", 0) is None:
            del shape["default"]
        is_needed = name in schema.get("required", [])
        found.append({"name": name, "in": "query", "required": is_needed, "schema": shape} | about)
    return sorted(found, key=lambda parameter: not parameter["required"])


def _responses(route: Route) -> dict[str, Any]:
    schema = {"type": "object" if route.media_type == JSON else "string"}
    if route.answer is not None:
        schema = _reference(route.answer)
    content = {route.media_type: {"schema": schema}}
    success = {"description": "The answer", "content": content}
    responses = {str(route.success): success}
    if route.success == 201:
        responses["200"] = {**success, "description": "It was made before, by the same request"}
    if route.etag:
        responses["304"] = {"description": "Not changed since the ETag given"}
    problem = {MEDIA_TYPE: {"schema": _reference(Problem)}}
    for status, (meaning, applies) in _PROBLEMS.items():
        if applies(route):
            responses[str(status)] = {"description": meaning, "content": problem}
    if route.path == "/readyz":
        responses["503"] = {"description": "Not ready; see `reasons`", "content": content}
    return responses


# ---- their routes, and all others --------------------------------------------------------------


@route("GET", "/docs", media_type="text/html")
async def get_docs(context: RequestContext) -> web.StreamResponse:
    """Describe the API to people."""
    return sent(context, rendered(DOCS, needs_token=False))


@route("GET", "/openapi.json")
async def get_openapi(_context: RequestContext) -> web.Response:
    """Describe all of this (OpenAPI 3.1)."""
    return web.Response(
        body=await asyncio.to_thread(document),
        headers={hdrs.CONTENT_TYPE: JSON, hdrs.CACHE_CONTROL: "no-cache"},
    )


_ROOMS = (plans, links, snapshots, samples, campaigns, transfers, operations)
# Routes of a module are in its names; those that are made of a list are in its ``ROUTES``.
ALL_ROUTES: tuple[Route, ...] = (
    *(
        each
        for room in _ROOMS
        for each in (*vars(room).values(), *getattr(room, "ROUTES", ()))
        if isinstance(each, Route)
    ),
    get_docs,
    get_openapi,
)
