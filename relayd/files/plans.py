"""Earlier plans as input: the object, its document, or its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError  # takes 70 ms

from planner.fields.json_text import read_json
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.transfer.plan import Plan

_REMEDY = "Give a plan or its JSON."


def document_of(
    plan: Answer | Mapping[str, Any] | str, name: str | None = None
) -> Mapping[str, Any]:
    """Return a plan of any kind as a document, without checking its content.

    Parameters
    ----------
    plan : Answer, mapping or str
        Or its JSON.
    name : str, optional
        Of the file that it is from, for errors.

    Raises
    ------
    InputError
        If it is no JSON object.
    """
    if isinstance(plan, Answer):
        return plan.model_dump("json")
    found: object = plan
    if isinstance(plan, str):
        try:
            found = read_json(plan)
        except ValueError as fault:
            raise InputError("plan", str(fault), value=name, remedy=_REMEDY) from None
    if not isinstance(found, Mapping):
        raise InputError(
            "plan", "is not a plan", value=name or type(found).__name__, remedy=_REMEDY
        )
    return found


def plan_of(plan: Answer | Mapping[str, Any] | str) -> Plan:
    """Return the plan of one transfer, and check that it is complete.

    Raises
    ------
    InputError
        If it is no such plan; names the first thing that is wrong.
    """
    if isinstance(plan, Plan):
        return plan
    try:
        return TypeAdapter(Plan).validate_python(document_of(plan))
    except ValidationError as faults:
        first = faults.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            "plan", f"is not a plan of one transfer: {place}: {first['msg']}", remedy=_REMEDY
        ) from None
