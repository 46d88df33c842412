"""Pages of the site's reference, in Markdown, made of what the code itself says."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import relayd
from planner.fields.specified import description_of
from relayd.cli.commands import build_parser
from relayd.cli.parser import Parser
from relayd.http.description import document
from relayd.questions.registry import QUESTIONS

_ROOT = Path(__file__).parents[2]
_TO_EXTEND = (
    "relayd.questions.question",
    "planner.fields.specified",
    "planner.fields.kinds",
    "planner.fields.shared",
    "planner.model.answer",
    "planner.model.text.blocks",
    "planner.model.text.page",
    "planner.model.pricing",
    "probes.importers.importer",
    "probes.importers.options",
    "probes.importers.text",
    "probes.importers.limits",
    "probes.samples",
    "relayd.emitting.emitter",
    "relayd.emitting.lanes",
    "relayd.emitting.text",
)


def pages() -> dict[str, str]:
    """Return the content of each page by its place in the site."""
    return {
        "reference/commands.md": commands(),
        "reference/questions.md": questions(),
        "reference/http.md": http(),
        "reference/openapi.json": document().decode(),
        "reference/python.md": python(),
        "reference/extending.md": extending(),
        "reference/glossary.md": glossary(),
        "changelog.md": (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }


def commands() -> str:
    """Return the help of every command, made of the parser."""
    with patch.dict(os.environ, {"COLUMNS": "90"}):
        return "# Commands\n\n" + "".join(_help(build_parser(), "relayd", 2))


def _help(parser: Parser, name: str, level: int) -> Iterable[str]:
    yield f"{'#' * level} {name}\n\n```text\n{parser.format_help()}```\n\n"
    for action in parser._actions:
        if isinstance(action.choices, Mapping):
            for word, inner in action.choices.items():
                yield from _help(inner, f"{name} {word}", min(level + 1, 4))


def questions() -> str:
    """Return every field of every question, made of its specification."""
    parts = [
        "# Questions\n\nEach field is specified once: the same keyword in Python, the same key in "
        "JSON and, under its option, the same on the command line.\n"
    ]
    for question in QUESTIONS:
        example = json.dumps(question.example, indent=2)
        rows = (_field(field) for field in description_of(question.request))
        fields = _table("field", "option", "default", "meaning", rows=rows)
        surfaces = f"`relayd {question.command}`, `wan.{question.method}(...)`"
        parts.append(
            f"\n## {question.summary}\n\n{surfaces}, `POST {question.path}`\n\n{fields}"
            f"\n```json\n{example}\n```\n"
        )
    return "".join(parts)


def _field(field: dict[str, Any]) -> tuple[str, ...]:
    default = "needed" if field["required"] else _code(json.dumps(field["default"]))
    choices = ", ".join(f"`{value}` {label}" for value, label in field.get("choices", ()))
    example = f" Such as `{field['example']}`." if field["example"] else ""
    meaning = f"{field['help']}{f' {choices}.' if choices else ''}{example}"
    return _code(field["name"]), _code(field["option"] or ""), default, meaning


def http() -> str:
    """Return every operation of the service, made of its OpenAPI description."""
    api = json.loads(document())
    parts = [
        "# HTTP\n\nMade of [openapi.json](openapi.json), which a service serves, too; "
        "[HTTP API](../api.md) explains it.\n"
    ]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            parts.append(_operation(method.upper(), path, operation))
    return "".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    inputs = [
        (
            _code(one["name"]),
            one["in"],
            "needed" if one["required"] else _code(json.dumps(one["schema"].get("default"))),
            one.get("description", ""),
        )
        for one in operation.get("parameters", ())
    ]
    answers = [(code, found["description"]) for code, found in operation["responses"].items()]
    parts = [
        f"## {method} {path}",
        f"{operation['summary']}.",
        operation.get("description", ""),
        f"Token scope: `{operation['x-scope']}`." if operation.get("x-scope") else "",
        _table("parameter", "in", "default", "meaning", rows=inputs) if inputs else "",
        _table("status", "answer", rows=answers),
    ]
    return "\n" + "\n\n".join(part for part in parts if part) + "\n"


def python() -> str:
    """Return the names that the library exports, for mkdocstrings to fill in."""
    parts = [
        "# Python\n\nThe names of `relayd`. [Questions](questions.md) has what its methods take.\n"
    ]
    homes = {name: f"{home}.{name}" for name, home in relayd._HOME.items()}
    for name, home in sorted(homes.items()):
        parts.append(f"\n## relayd.{name}\n\n::: {home}\n")
    return "".join(parts)


def extending() -> str:
    """Return the modules that other distributions build on, for mkdocstrings to fill in."""
    told = "What [questions, importers and emitters](../extend.md) of your own build on."
    parts = (f"\n## {module}\n\n::: {module}\n" for module in _TO_EXTEND)
    return f"# Extending\n\n{told}\n{''.join(parts)}"


def glossary() -> str:
    """Return the words that `relayd help` knows."""
    content = tomllib.loads((_ROOT / "configs" / "glossary.toml").read_text(encoding="utf-8"))
    terms = sorted(content["term"], key=lambda term: term["name"].casefold())
    rows = ((f"**{t['name']}**", t["text"], f"[more](../{t['page']})") for t in terms)
    return "# Glossary\n\n`relayd help TERM` says these, too.\n\n" + _table(
        "term", "meaning", "page", rows=rows
    )


def _table(*head: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
