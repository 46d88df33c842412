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
from relayd.http.route import JSON, NDJSON, Model, RequestContext, Route, route
from relayd.http.routes import ROUTES
from relayd.http.routes.operations import sent
from relayd.http.routes.plans import SCHEMA_NAMES, query_schema, request_schemas
from relayd.questions.registry import QUESTIONS
from relayd.version import __version__

_REFS = "#/components/schemas/{model}"
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
    schemas = _Schemas(routes)
    paths: dict[str, Any] = {}
    for one in routes:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
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
            "schemas": schemas.definitions,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": needed}
            },
        },
    }
    return json.dumps(described, indent=1).encode()


class _Schemas:
    """Schemas of all models, each once."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        bodies = [r.body for r in routes if r.body is not None and r.question is None]
        asked = (*bodies, *(also for r in routes for also in (r.query, *r.also_schemas)))
        wanted: dict[tuple[Any, Any], TypeAdapter[Any]] = {
            (model, "serialization"): TypeAdapter(model)
            for model in (Problem, *(r.answer for r in routes))
            if model is not None
        }
        wanted |= {
            (model, "validation"): TypeAdapter(model)
            for model in asked
            if model is not None and not issubclass(model, Specified)
        }
        self._found, rest = TypeAdapter.json_schemas(
            [(*key, adapter) for key, adapter in wanted.items()], ref_template=_REFS
        )
        self.definitions: dict[str, Any] = rest.get("$defs", {})
        for schema in self.definitions.values():
            if "request" in schema.get("properties", {}):
                # Generated clients join both titles: "Plan" and "Request" would be a body's name.
                schema["properties"]["request"]["title"] = "Question"
        for question in QUESTIONS:
            self.definitions |= request_schemas(question)
        self.definitions["PlanQuery"] = query_schema(QUESTIONS[0])
        for body in bodies:
            if issubclass(body, Specified):
                self.definitions[body.__name__] = schema_of(body)

    def answer(self, model: Any) -> dict[str, Any]:
        return self._found[model, "serialization"]

    def body(self, model: Model) -> dict[str, Any]:
        if issubclass(model, Specified):
            return {"$ref": _REFS.format(model=model.__name__)}
        return self._found[model, "validation"]

    def query(self, model: Model) -> dict[str, Any]:
        """Return a query's model with its properties at hand."""
        if issubclass(model, Specified):
            return query_schema(QUESTIONS[0])
        schema = self.body(model)
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        return schema


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1, "maxLength": 200}
    parameters: list[dict[str, Any]] = [
        {"name": each, "in": "path", "required": True, "schema": name} for each in route.parameters
    ]
    if route.query:
        parameters += _query(schemas.query(route.query))
    if route.etag:
        known = {"name": "If-None-Match", "in": "header", "required": False}
        known |= {"schema": {"type": "string"}, "description": "The ETag of what you have."}
        parameters.append(known)
    first = route.path.strip("/").split("/")
    body = None
    if route.body:
        content = {kind: _body(kind, route, schemas) for kind in route.body_types}
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
        "responses": _responses(route, schemas),
        "security": [{"token": []}, {}] if route.scope else [{}],
        **{key: part for key, part in parts.items() if part},
    }


def _body(kind: str, route: Route, schemas: _Schemas) -> dict[str, Any]:
    if kind == NDJSON:
        return {"schema": {"type": "string", "description": "One JSON object a line."}}
    if route.question:
        reference = _REFS.format(model=SCHEMA_NAMES[route.question.name])
        return {"schema": {"$ref": reference}, "example": route.question.example}
    assert route.body
    example = {"example": route.example} if route.example else {}
    return {"schema": schemas.body(route.body), **example}


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    found = []
    for name, property_ in schema["properties"].items():
        shape = dict(property_)
        about = {"description": text} if (text := shape.pop("description", None)) else {}
        # Left out is what null means in a body; a query string has no null.
        options = [each for each in shape.get("anyOf", []) if each != {"type": "null"}]
        if options:
            del shape["anyOf"]
            shape.update(options[0] if len(options) == 1 else {"anyOf": options})
        if shape.get("default", 0) is None:
            del shape["default"]
        parameter = {"name": name, "in": "query", "required": name in required, "schema": shape}
        found.append(parameter | about)
    return sorted(found, key=lambda parameter: not parameter["required"])


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    schema = {"type": "object" if route.media_type == JSON else "string"}
    if route.answer is not None:
        schema = schemas.answer(route.answer)
    content = {route.media_type: {"schema": schema}}
    success = {"description": "The answer", "content": content}
    responses = {str(route.success): success}
    if route.success == 201:
        responses["200"] = {**success, "description": "It was made before, by the same request"}
    if route.etag:
        responses["304"] = {"description": "Not changed since the ETag given"}
    problem = {MEDIA_TYPE: {"schema": schemas.answer(Problem)}}
    for status, (meaning, applies) in _PROBLEMS.items():
        if applies(route):
            responses[str(status)] = {"description": meaning, "content": problem}
    if route.path == "/readyz":
        responses["503"] = {"description": "Not ready; see `reasons`", "content": content}
    return responses


# ---- their routes, and all others --------------------------------------------------------------


@route("GET", "/docs", media_type="text/html")
async def get_docs(context: RequestContext) -> web.Response:
    """Describe the API to people."""
    return sent(context, rendered(DOCS))


@route("GET", "/openapi.json")
async def get_openapi(_context: RequestContext) -> web.Response:
    """Describe all of this (OpenAPI 3.1)."""
    return web.Response(
        body=await asyncio.to_thread(document),
        headers={hdrs.CONTENT_TYPE: JSON, hdrs.CACHE_CONTROL: "no-cache"},
    )


ALL_ROUTES = (*ROUTES, get_docs, get_openapi)
