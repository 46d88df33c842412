"""Tools that assistants call: a name, a schema of what it takes, and a function.

They only read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from planner.fields.specified import schema_of
from planner.model.document import as_json
from planner.model.errors import InputError
from planner.transfer.request import TransferRequest
from relayd.http.campaigns import forecast
from relayd.http.models import CampaignRequest
from relayd.http.problems import invalid
from relayd.questions.explanations import explanation, terms
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS
from relayd.sources.wan import Wan
from relayd.store import Location

Arguments: TypeAlias = Mapping[str, Any]
Call: TypeAlias = Callable[[Wan, Arguments], dict[str, Any]]

MOST_LINKS = 200
MOST_VARIANTS = 20
_COMPARED = ("plan_id", "verdict", "throughput_gbps", "duration_s", "cost_usd", "vms", "reason")
_NAME = {"type": "string", "description": "A region's id, city or alias, such as sa or Tokyo."}


class AssistantTool(NamedTuple):
    """A tool."""

    name: str
    description: str  # for the assistant, which chooses tools by it
    schema: dict[str, Any]  # JSON schema of the arguments, an object
    call: Call
    """Returns the answer as JSON types; raises RelaydError, whose text is for the assistant,
    too."""


def _tool(
    name: str, description: str, /, *, required: Sequence[str] = (), **properties: dict[str, Any]
) -> Callable[[Call], AssistantTool]:
    """Make a tool of a function that reads."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    schema |= {"required": [*required]} if required else {}
    return lambda call: AssistantTool(name, description, schema, call)


def tools(location: Location, fleet: Path | None) -> Sequence[AssistantTool]:
    """Return all tools; campaigns can be forecast with a fleet file alone."""
    found = [*map(_of_question, QUESTIONS), _compare, _regions, _links, _explain]
    if fleet is not None:
        found.append(_forecast(location, fleet))
    return found


def _of_question(question: Question) -> AssistantTool:
    def call(wan: Wan, arguments: Arguments) -> dict[str, Any]:
        answer: dict[str, Any] = wan.ask(question.request.from_json(arguments)).model_dump("json")
        return answer

    return AssistantTool(
        question.method,
        f"{question.summary}. The answer has its reason and, where it plans transfers, the price "
        "and how sure it is. Changes nothing.",
        schema_of(question.request),
        call,
    )


@_tool(
    "compare",
    "Plan a transfer as asked and with changes (another VM type, more VMs, no relay, another "
    "destination), and return rate, time and price of each.",
    required=("transfer", "variants"),
    transfer=schema_of(TransferRequest),
    variants={
        "type": "array",
        "maxItems": MOST_VARIANTS,
        "items": {"type": "object"},
        "description": 'Fields to change in each, such as {"relays": "none"}.',
    },
)
def _compare(wan: Wan, arguments: Arguments) -> dict[str, Any]:
    transfer, variants = arguments.get("transfer"), arguments.get("variants")
    if not isinstance(transfer, dict) or not isinstance(variants, list):
        raise InputError("transfer, variants", "must be an object and a list of objects")
    if len(variants) > MOST_VARIANTS:
        raise InputError("variants", f"are more than {MOST_VARIANTS}", value=len(variants))
    answers = []
    for change in ({}, *variants):
        if not isinstance(change, dict):
            raise InputError("variants", "must be objects: the fields to change", value=change)
        plan = wan.ask(TransferRequest.from_json({**transfer, **change})).model_dump("json")
        answers.append({"change": change, **{name: plan[name] for name in _COMPARED}})
    return {"plans": answers}


@_tool("regions", "List all regions, or say which region a name stands for.", name=_NAME)
def _regions(wan: Wan, arguments: Arguments) -> dict[str, Any]:
    if not (name := arguments.get("name")):
        return {"regions": [region.id for region in wan.regions()]}
    found = wan.resolve(str(name), "name")
    site = wan.sites().get(found.region_id)
    return {
        "region": found.region_id,
        "note": found.note,
        "vm_type": site.vm_type if site else wan.catalogue.vm_type(found.region_id).id,
    }


@_tool(
    "links",
    "Show what is known of links: round-trip time, throughput of one connection and of many, "
    "each with bounds, whether measured or inferred, by what rule, from how many samples and when.",
    src=_NAME,
    dst=_NAME,
)
def _links(wan: Wan, arguments: Arguments) -> dict[str, Any]:
    ends = [str(arguments[end]) if arguments.get(end) else None for end in ("src", "dst")]
    found = list(wan.links(*ends))
    return {
        "links": [as_json(link) for link in found[:MOST_LINKS]],
        "left_out": max(0, len(found) - MOST_LINKS),
        "snapshot": asdict(wan.snapshot),
    }


@_tool(
    "explain",
    "Explain a term of the answers or a field of a question, such as verdict, margin or per-flow; "
    "without one, list all terms.",
    term={"type": "string", "description": "A word of an answer, or field."},
)
def _explain(_wan: Wan, arguments: Arguments) -> dict[str, Any]:
    return explanation(str(arguments["term"])) if arguments.get("term") else {"terms": terms()}


def _forecast(location: Location, fleet: Path) -> AssistantTool:
    def call(wan: Wan, arguments: Arguments) -> dict[str, Any]:
        try:
            request = CampaignRequest.model_validate(arguments)
        except ValidationError as error:
            raise invalid(error) from None
        return forecast(wan, fleet, location, request.model_dump())

    return AssistantTool(
        "forecast_campaign",
        "Say what measuring with the fleet would send, take and cost. Measures nothing.",
        CampaignRequest.model_json_schema(),
        call,
    )
