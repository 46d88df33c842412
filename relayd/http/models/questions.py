"""Questions over HTTP: the names of their schemas, the limits of the service, and their list.

What a question takes is specified in its request class (:mod:`planner.fields`).
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from pydantic import ConfigDict, Field

from planner.fields.kinds import ByPlace
from planner.fields.specified import Items, Specified, fields_of, schema_of
from planner.model.errors import InputError
from relayd.http.models.common import ResponseModel, answer, many, model_of
from relayd.questions.registry import Question

SCHEMA_NAMES = {
    "transfer": "PlanRequest",
    "shuffle": "ShuffleQuestion",
    "broadcast": "BroadcastQuestion",
    "schedule": "ScheduleQuestion",
    "place-reduce": "ReduceQuestion",
    "place-tasks": "TasksQuestion",
    "comparison": "ComparisonQuestion",
    "replan": "ReplanQuestion",
}
"""The names of request schemas in the description of the API, which clients may rely on."""

MOST: dict[str, dict[str, float]] = {
    "transfer": {"outcomes": 1000, "leases": 100},
    "shuffle": {"demands": 10_000},
    "broadcast": {"destinations": 100},
    "schedule": {"transfers": 1000, "tariffs": 200, "explain": 100},
    "place-tasks": {"tasks": 500, "traffic": 10_000, "vms": 200, "time_limit_s": 20.0},
}
"""What the service takes at most, where that is less than the specification allows: entries of a
list, or a number."""


def check_limits(question: Question, request: Specified) -> None:
    """Check a request against the limits of the service.

    Raises
    ------
    InputError
        Naming the field.
    """
    for field in fields_of(question.request).values():
        most = MOST.get(question.name, {}).get(field.key)
        value = getattr(request, field.name)
        size = len(value) if isinstance(value, Sized) else value
        if most is not None and size > most:
            raise InputError(
                field.key,
                f"must be at most {most:g} for this service",
                value=size,
                remedy="Ask for less at a time, or use the library.",
            )


def request_schemas(question: Question) -> dict[str, Any]:
    """Return the schema of a question's body and those that it refers to, by name."""
    found: dict[str, Any] = {}

    def referring(schema: Any) -> Any:
        if isinstance(schema, list):
            return [referring(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        schema = {key: referring(value) for key, value in schema.items()}
        if schema.get("type") != "object" or "title" not in schema:
            return schema
        found[schema["title"]] = schema
        return {"$ref": f"#/components/schemas/{schema['title']}"}

    name = SCHEMA_NAMES[question.name]
    schema = schema_of(question.request) | {"title": name}
    for key, most in MOST.get(question.name, {}).items():
        bounded = schema["properties"][key]
        for branch in bounded.get("anyOf", [bounded]):
            for limit in ("maxItems", "maxProperties", "maximum"):
                if limit in branch:
                    branch[limit] = most
    referring(schema)
    return found


def query_schema(question: Question) -> dict[str, Any]:
    """Return the schema of a question's query string: no fields by place, and no rows."""
    schema = schema_of(question.request)
    for field in fields_of(question.request).values():
        if isinstance(field.kind, ByPlace | Items):
            del schema["properties"][field.key]
    return schema | {"title": "PlanQuery"}


class QuestionField(ResponseModel):
    """A field of a question; further keys depend on its kind, such as `unit` or `choices`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(description="Its key in JSON, and in problems.")
    kind: str = Field(description="`volume`, `duration`, `choice`, `flag`, `region`, ...")
    required: bool
    optional: bool = Field(description="Whether null stands for no such limit.")
    default: Any = Field(description="null if it is required.")
    label: str
    group: str
    help: str
    example: str | None = Field(description="A value as a person writes it.")
    option: str | None = Field(description="Its option on the command line.")


QUESTION = model_of(
    "QuestionSeen",
    "A question: where to ask it, and its fields.",
    name=str,
    method=(str, "Of the library and of clients."),
    path=str,
    command=(str, "On the command line."),
    summary=str,
    example=(dict[str, Any], "A body that can be sent."),
    fields=list[QuestionField],
)
QUESTIONS_ANSWER = answer("Questions", "All questions.", questions=many(QUESTION))
