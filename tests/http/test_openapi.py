"""The description of the API is right; `tests/test_fuzzing.py` holds the service to it."""

from __future__ import annotations

import json
import re

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from relayd.http.description import ALL_ROUTES as ROUTES
from relayd.http.description import document
from relayd.questions.registry import QUESTIONS
from tests.http.running import Served

DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
API = json.loads(document())
LISTED = [route for route in ROUTES if route.documented]


def test_the_description_is_valid_openapi() -> None:
    validate(API)
    assert API["openapi"].startswith("3.1")
    assert len(API["paths"]) == len({route.path for route in LISTED})


def test_the_service_publishes_this_description(service: Served) -> None:
    assert service.get("/openapi.json").json == API


def test_its_page_loads_nothing_from_elsewhere(service: Served) -> None:
    page = service.get("/docs").content.decode()
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)
    for name in ("page.js", "style.css"):
        assert "http" not in service.get(f"/assets/docs/{name}").content.decode()


def test_what_is_read_fits_its_schema(service: Served) -> None:
    of_all = {"$schema": DRAFT_2020_12, "components": API["components"]}
    read = 0
    for path, methods in API["paths"].items():
        asked = methods.get("get", {})
        content = asked.get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema and not any(each.get("required") for each in asked.get("parameters", [])):
            answer = service.get(path)
            if answer.status == 200:  # of what a service without a fleet has
                Draft202012Validator({**of_all, **schema}).validate(answer.json)
                read += 1
    assert read > 10


def test_its_examples_work(service: Served) -> None:
    answered = set()
    for path, methods in API["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        example = content.get("application/json", {}).get("example")
        if example is None or path.startswith(("/v1/samples", "/v1/transfers", "/v1/pools")):
            continue  # these would change the service that all tests share, or want a pool
        assert service.ask("POST", path, example).status == 200, path
        answered.add(path)
    apart = {"/v1/plans/batch", "/v1/decisions", "/v1/demands"}
    assert answered == {*apart, *(question.path for question in QUESTIONS)}


def test_questions_are_described_as_they_are_specified(service: Served) -> None:
    found = service.get("/v1/questions").json["questions"]
    assert [each["name"] for each in found] == [question.name for question in QUESTIONS]
    for each, question in zip(found, QUESTIONS, strict=True):
        schema = API["components"]["schemas"][question.schema_name]
        without_effect = {n for n, value in schema["properties"].items() if "deprecated" in value}
        assert {f["name"] for f in each["fields"]} == schema["properties"].keys() - without_effect
        required = {field["name"] for field in each["fields"] if field["required"]}
        assert required == set(schema["required"])
    plan = {field["name"]: field for field in found[0]["fields"]}
    assert plan["volume_gb"]["unit"] == "GB"
    assert plan["volume_gb"]["option"] == "--volume"
    assert dict(plan["objective"]["choices"])["cost"] == "least cost"


def test_a_query_takes_what_people_write(service: Served) -> None:
    asked = "src=us-east&dst=sa&volume_gb=1TB&deadline_s=2d&avoid=provider:azure&avoid=country:DE"
    there = service.get(f"/v1/plans?{asked}")
    body = {"src": "us-east", "dst": "sa", "volume_gb": 1000, "deadline_s": 172800}
    rules = {"avoid": ["provider:azure", "country:DE"]}
    assert there.json == service.ask("POST", "/v1/plans", {**body, **rules}).json
    refused = service.get("/v1/plans?src=us-east&dst=sa&vm_types=aws=t2.micro")
    assert (refused.status, refused.json["field"]) == (422, "vm_types")
