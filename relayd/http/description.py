"""The description of the API (OpenAPI 3.1), from the routes and their models, and as a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from html import escape
from threading import Lock
from typing import Any

from aiohttp import hdrs, web
from pydantic import TypeAdapter

from planner.fields.specified import Specified, schema_of
from relayd.dashboard.pages import DOCS, HTML, POLICY, framed
from relayd.http.access import SAFE_METHODS
from relayd.http.problems import MEDIA_TYPE, Problem
from relayd.http.route import JSON, NDJSON, Model, RequestContext, Route, route
from relayd.http.routes import ROUTES
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
VALUES = {"src": "us-east", "dst": "sa"}
"""Of what has no default, to try."""
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
    needed = "From `relayd token create`; needed once any token was made."
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


# ---- the page ----------------------------------------------------------------------------------


@cache
def page() -> bytes:
    """Return the page as HTML."""
    api = json.loads(document())
    operations = [
        (method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    sections = "".join(_section(*each, api) for each in operations)
    contents = "".join(
        f'<li><a href="#{o["operationId"]}"><b>{m}</b> {escape(p)}</a></li>'
        for m, p, o in operations
    )
    models = "".join(
        _model(name, schema) for name, schema in sorted(api["components"]["schemas"].items())
    )
    about = "".join(f"<p>{_words(p)}</p>" for p in api["info"]["description"].split("\n\n"))
    content = (
        f'<div class="docs"><nav aria-label="Operations"><ul>{contents}</ul></nav><div>'
        f'<p><a href="openapi.json">openapi.json</a>, version {escape(api["info"]["version"])}</p>'
        f"{about}{sections}<h2>Models</h2>{models}</div></div>"
    )
    return framed(DOCS, content).encode()


def _section(method: str, path: str, operation: dict[str, Any], api: dict[str, Any]) -> str:
    name, scope = operation["operationId"], operation.get("x-scope")
    description = f"<p>{_words(operation['description'])}</p>" if "description" in operation else ""
    needs = f"<p>Token scope: <code>{escape(scope)}</code></p>" if scope else ""
    inputs = "".join(_parameter(name, p) for p in operation.get("parameters", []))
    answers = "".join(
        f"<tr><td>{status}</td><td>{escape(answer['description'])}</td>"
        f"<td>{_kinds(answer)}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    return f"""<section id="{name}">
<h2><span class="method">{method}</span> <code>{escape(path)}</code></h2>
<p><strong>{escape(operation["summary"])}</strong></p>{description}{needs}
<form data-method="{method}" data-path="{escape(path)}">{inputs}{_body_field(name, operation, api)}
<button type="submit">Try it</button><pre class="answer" tabindex="0" hidden></pre></form>
<details><summary>Answers</summary><table><thead><tr><th>Status</th><th>Meaning</th>
<th>Content</th></tr></thead><tbody>{answers}</tbody></table></details>
</section>
"""


def _parameter(operation: str, parameter: dict[str, Any]) -> str:
    name, schema = parameter["name"], parameter["schema"]
    identity = f"{operation}-{name}"
    required = parameter["required"]
    value = VALUES.get(name, "") if required else ""
    default = f"default {json.dumps(schema['default'])}" if "default" in schema else ""
    hint = " ".join(part for part in (_words(parameter.get("description", "")), default) if part)
    about = f'id="{identity}" name="{escape(name)}" data-in="{parameter["in"]}"'
    if "enum" in schema:
        options = "".join(f"<option>{escape(str(o))}</option>" for o in ["", *schema["enum"]])
        field = f"<select {about}>{options}</select>"
    else:
        field = f'<input {about} value="{escape(value)}"{" required" if required else ""}>'
    star = '<abbr title="required">*</abbr>' if required else ""
    return (
        f'<div class="field"><label for="{identity}"><code>{escape(name)}</code>{star}</label>'
        f"{field}<small>{hint}</small></div>"
    )


def _body_field(operation: str, description: dict[str, Any], api: dict[str, Any]) -> str:
    if "requestBody" not in description:
        return ""
    content = description["requestBody"]["content"]["application/json"]
    model = content["schema"]["$ref"].rpartition("/")[2]
    required = api["components"]["schemas"][model].get("required", [])
    example = content.get("example") or {name: VALUES.get(name) for name in required}
    return (
        f'<div class="field wide"><label for="{operation}-body">{_link(model)}</label>'
        f'<textarea id="{operation}-body" spellcheck="false" rows="8">'
        f"{escape(json.dumps(example, indent=1))}</textarea></div>"
    )


def _kinds(answer: dict[str, Any]) -> str:
    shown = []
    for kind, content in answer.get("content", {}).items():
        reference = content["schema"].get("$ref")
        model = f" {_link(reference.rpartition('/')[2])}" if reference else ""
        shown.append(f"<code>{escape(kind)}</code>{model}")
    return "<br>".join(shown)


def _model(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(key)}</code>{' *' if key in required else ''}</td>"
        f"<td>{_type(value)}</td><td>{_words(value.get('description', ''))}</td></tr>"
        for key, value in schema.get("properties", {}).items()
    )
    first = schema.get("description", "").split("\n\n")[0]
    return (
        f'<details id="model-{name}"><summary><code>{name}</code></summary><p>{_words(first)}</p>'
        "<table><thead><tr><th>Key</th><th>Type</th><th>Meaning</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(option))}</code>" for option in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "any")))


def _link(model: str) -> str:
    return f'<a href="#model-{model}"><code>{model}</code></a>'


def _words(text: str) -> str:
    """Return text with what stands between backquotes as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


# ---- their routes, and all others --------------------------------------------------------------


@route("GET", "/docs", media_type="text/html")
async def get_docs(_context: RequestContext) -> web.Response:
    """Describe the API to people."""
    headers = {
        hdrs.CONTENT_TYPE: HTML,
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": POLICY,
    }
    content = await asyncio.to_thread(page)
    return web.Response(body=content, headers=headers)


@route("GET", "/openapi.json")
async def get_openapi(_context: RequestContext) -> web.Response:
    """Describe all of this (OpenAPI 3.1)."""
    return web.Response(
        body=await asyncio.to_thread(document),
        headers={hdrs.CONTENT_TYPE: JSON, hdrs.CACHE_CONTROL: "no-cache"},
    )


ALL_ROUTES = (*ROUTES, get_docs, get_openapi)
