"""The stability promise: paths, keys and parameters under /v1 may be added, never lost.

``contract.txt`` is what was promised so far, one line each. After adding to the API, run
``python -m tests.contract.test_contract`` to add to the promise. Lines are never removed, but for
what serves internal operations alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.model.baseline.modelled_links import baseline_network
from relayd.catalogue.loading import load_catalogue
from relayd.http.answers import answer_bytes
from relayd.http.description import document
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS
from relayd.sources.wan import Wan

_REFERENCE = re.compile("#/components/schemas/([A-Za-z]+)")
CONTRACT = Path(__file__).with_name("contract.txt")


def promised() -> Iterator[str]:
    """Yield a line for each thing that a client may rely on."""
    api = json.loads(document())
    schemas = api["components"]["schemas"]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            if "internal" in operation["tags"]:
                continue
            yield f"{method.upper()} {path} needs {operation.get('x-scope', 'nothing')}"
            for parameter in operation.get("parameters", []):
                name = f"{method.upper()} {path} {parameter['in']} {parameter['name']}"
                yield f"{name}: {_kind(parameter['schema'])}"
            for kind in operation.get("requestBody", {}).get("content", {}):
                yield f"{method.upper()} {path} takes {kind}"
            for status, answer in operation["responses"].items():
                for kind, content in answer.get("content", {}).items():
                    if int(status) < 300:
                        yield f"{method.upper()} {path} gives {kind} {_kind(content['schema'])}"
    for name, schema in schemas.items():
        for key, value in schema.get("properties", {}).items():
            yield f"{name}.{key}: {_kind(value)}"


def needed() -> set[str]:
    """Return what a client must send: here, it is additions that break."""
    api = json.loads(document())
    asked = ("Request", "Question", "Given", "Batch", "Demand")
    bodies = {
        f"must send {name}.{key}"
        for name, schema in api["components"]["schemas"].items()
        if name.endswith(asked)
        for key in schema.get("required", [])
    }
    parameters = {
        f"must send {method.upper()} {path} {parameter['name']}"
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", [])
        if parameter["required"]
    }
    return bodies | parameters


def sent() -> set[str]:
    """Return the names of the schemas of bodies and query strings, and of those in them."""
    api = json.loads(document())
    bodies = [
        operation.get("requestBody")
        for methods in api["paths"].values()
        for operation in methods.values()
    ]
    found: set[str] = set()
    new = {"PlanQuery", *_REFERENCE.findall(json.dumps(bodies))}
    while new:
        found |= new
        schemas = [api["components"]["schemas"][name] for name in new]
        new = set(_REFERENCE.findall(json.dumps(schemas))) - found
    return found


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(sorted({_kind(option) for option in schema["anyOf"]}))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def test_nothing_that_was_promised_is_gone() -> None:
    lines = CONTRACT.read_text().splitlines()
    may = {line for line in lines if not line.startswith("must send")}
    assert len(may) > 200
    now = dict(line.rsplit(": ", 1) for line in promised() if ": " in line)
    assert {line for line in may - set(promised()) if not is_wider(line, now)} == set()


def is_wider(promise: str, now: dict[str, str]) -> bool:
    """Whether what clients may send there is still accepted, and something else is, too."""
    subject, _, kinds = promise.rpartition(": ")
    is_sent = " query " in subject or subject.partition(".")[0] in sent()
    return is_sent and set(kinds.split(" or ")) < set(now.get(subject, "").split(" or "))


def test_nothing_more_is_asked_of_clients_than_was() -> None:
    must = {line for line in CONTRACT.read_text().splitlines() if line.startswith("must send")}
    assert needed() - must == set()


def test_the_contract_is_up_to_date() -> None:
    assert set(promised()) | needed() <= set(CONTRACT.read_text().splitlines())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.name)
def test_answers_have_the_keys_that_were_promised(question: Question) -> None:
    catalogue = load_catalogue(())
    wan = Wan(catalogue, baseline_network(catalogue))
    answer = json.loads(answer_bytes(wan, question.request.from_json(question.example)))
    promises = [line.partition(":")[0].split(".") for line in CONTRACT.read_text().splitlines()]
    keys = {key for name, *rest in promises for key in rest if name == question.answer.__name__}
    assert len(keys) > 5
    assert keys <= answer.keys()


def main() -> None:
    """Add what is new to the promise."""
    old = set(CONTRACT.read_text().splitlines()) if CONTRACT.exists() else set()
    CONTRACT.write_text("\n".join(sorted(old | set(promised()) | needed())) + "\n")


if __name__ == "__main__":
    main()
