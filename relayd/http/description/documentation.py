"""The page of the documentation, written from the description of the API."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from typing import Any

from relayd.dashboard.pages import DOCS, framed
from relayd.http.description.openapi import document

VALUES = {"src": "us-east", "dst": "sa"}


@cache
def page() -> bytes:
    """Return the page as HTML."""
    api = json.loads(document())
    operations = [
        (method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    sections = "".join(_operation(*each, api) for each in operations)
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


def _operation(method: str, path: str, operation: dict[str, Any], api: dict[str, Any]) -> str:
    name = operation["operationId"]
    scope = operation.get("x-scope")
    description = f"<p>{_words(operation['description'])}</p>" if "description" in operation else ""
    needs = f"<p>Token scope: <code>{escape(scope)}</code></p>" if scope else ""
    inputs = "".join(_parameter(name, p) for p in operation.get("parameters", []))
    body = _body(name, operation, api)
    answers = "".join(
        f"<tr><td>{status}</td><td>{escape(answer['description'])}</td>"
        f"<td>{_kinds(answer)}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    try_it = (
        f'<form data-method="{method}" data-path="{escape(path)}">{inputs}{body}'
        '<button type="submit">Try it</button><pre class="answer" tabindex="0" hidden></pre></form>'
    )
    return f"""<section id="{name}">
<h2><span class="method">{method}</span> <code>{escape(path)}</code></h2>
<p><strong>{escape(operation["summary"])}</strong></p>{description}{needs}{try_it}
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


def _body(operation: str, description: dict[str, Any], api: dict[str, Any]) -> str:
    if "requestBody" not in description:
        return ""
    content = description["requestBody"]["content"]["application/json"]
    model = content["schema"]["$ref"].rpartition("/")[2]
    example = json.dumps(content.get("example") or _least(model, api), indent=1)
    return (
        f'<div class="field wide"><label for="{operation}-body">{_link(model)}</label>'
        f'<textarea id="{operation}-body" spellcheck="false" rows="8">{escape(example)}</textarea>'
        "</div>"
    )


def _least(model: str, api: dict[str, Any]) -> dict[str, Any]:
    """Return the required keys of a model, to be filled in."""
    schema = api["components"]["schemas"][model]
    return {name: VALUES.get(name) for name in schema.get("required", [])}


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
