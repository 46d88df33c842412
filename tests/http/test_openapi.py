"""The description of the API is right, and the service keeps to it whatever is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from relayd.http.description.documentation import EXAMPLES
from relayd.http.description.openapi import document
from relayd.http.routes.all import ROUTES
from tests.http.running import Served, served
from tests.properties import examples

API = json.loads(document())
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Streams without an end, pages for people, and what would start real work.
LEFT_OUT = r"^/(v1/events|docs)$"
LISTED = [route for route in ROUTES if route.documented]


def test_the_description_is_valid_openapi() -> None:
    validate(API)
    assert API["openapi"].startswith("3.1")
    assert len(API["paths"]) == len({route.path for route in LISTED})


def test_the_service_publishes_this_description(service: Served) -> None:
    assert service.get("/openapi.json").json == API


def test_whatever_is_sent_the_service_keeps_to_its_description(store: Path, tmp_path: Path) -> None:
    with served(store) as service:
        schema = schemathesis.openapi.from_dict(API).exclude(path_regex=LEFT_OUT)
        names = []
        for result in schema.get_all_operations():
            operation = result.ok()  # type: ignore[union-attr]  # Ok or Err; Err raises
            names.append(operation.label)
            fuzz(operation, service.url)
        assert len(names) >= 16
        assert service.get("/v1/plans?src=us-east&dst=sa").status == 200


def fuzz(operation: schemathesis.schemas.APIOperation, url: str) -> None:  # type: ignore[type-arg]
    from hypothesis import given

    @settings(
        max_examples=examples(15),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=operation.as_strategy())
    def holds(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(base_url=url, checks=CHECKS)

    holds()


def test_documentation_is_whole_and_loads_nothing_from_elsewhere(service: Served) -> None:
    page = service.get("/docs").content.decode()
    for route in LISTED:
        assert f'id="{route.name}"' in page
    for name in API["components"]["schemas"]:
        assert f'id="model-{name}"' in page
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)
    for name in ("docs.js", "docs.css"):
        assert "http" not in service.get(f"/{name}").content.decode()


def test_its_examples_work(service: Served) -> None:
    paths = {
        schema["$ref"].rpartition("/")[2]: path
        for path, methods in API["paths"].items()
        for schema in [
            methods.get("post", {})
            .get("requestBody", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema", {})
        ]
        if schema
    }
    for model, example in EXAMPLES.items():
        if model == "SamplesGiven":
            continue  # would change the service that all tests share
        assert service.ask("POST", paths[model], example).status == 200, model
