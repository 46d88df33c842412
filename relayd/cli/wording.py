"""Errors as a command line says them: fields by their options, as text or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from planner.fields.specified import Specified, fields_of
from planner.model.errors import InputError, RelaydError

Renamed: TypeAlias = Mapping[str, str]
"""Name of a field to what its option is called by a command."""
NONE: Renamed = MappingProxyType({})


def worded(error: RelaydError, request: type[Specified] | None, renamed: Renamed = NONE) -> str:
    """Return what went wrong, with options in place of the names of a request's fields.

    An error begins with the field's name; a remedy has other fields' names between backticks.
    """
    text, options = str(error), _options(request, renamed)
    if isinstance(error, InputError):
        text = _field(error.field, options) + text[len(error.field) :]
    return _remedy(text, options)


def worded_json(
    error: RelaydError, request: type[Specified] | None, renamed: Renamed = NONE
) -> str:
    """Return what went wrong as a JSON object under ``error``, worded alike.

    It has ``exit_code`` and ``detail``, and of bad input ``field``, ``problem``, ``value`` and
    ``remedy``; of an unknown or ambiguous region also ``near``.
    """
    found: dict[str, object] = {
        "exit_code": error.exit_code,
        "detail": worded(error, request, renamed),
    }
    if isinstance(error, InputError):
        options = _options(request, renamed)
        found |= {
            "field": _field(error.field, options),
            "problem": error.problem,
            "value": error.value,
            "remedy": error.remedy and _remedy(error.remedy, options),
        }
        near = getattr(error, "near", ()) or getattr(error, "matches", ())
        found |= {"near": list(near)} if near else {}
    return json.dumps({"error": found}, indent=2, default=str)


def _options(request: type[Specified] | None, renamed: Renamed) -> dict[str, str]:
    fields = fields_of(request).values() if request else ()
    return {**renamed} | {
        field.key: renamed.get(field.name, field.option)
        for field in fields
        if field.option and field.option.startswith("--")
    }


def _field(name: str, options: Mapping[str, str]) -> str:
    return re.sub(r"^[\w-]+", lambda found: options.get(found[0], found[0]), name)


def _remedy(text: str, options: Mapping[str, str]) -> str:
    return re.sub(r"`(\w+)`", lambda name: options.get(name[1], name[0]), text)
