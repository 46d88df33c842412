"""Errors as a command line says them: fields by their options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.fields.specified import fields_of
from planner.model.errors import InputError, RelaydError

if TYPE_CHECKING:
    from planner.fields.specified import Specified


def worded(
    error: RelaydError, request: type[Specified] | None, renamed: Mapping[str, str] = {}
) -> str:
    """Return what went wrong, with options in place of the names of a request's fields.

    An error begins with the field's name; a remedy has other fields' names between backticks.
    """
    text = str(error)
    if request is None:
        return text
    options = {
        field.key: renamed.get(field.name, field.option)
        for field in fields_of(request).values()
        if field.option and field.option.startswith("--")
    }
    if isinstance(error, InputError):
        name = re.match(r"\w*", error.field)
        if name and name[0] in options:
            text = options[name[0]] + text[name.end() :]
    return re.sub(r"`(\w+)`", lambda name: options.get(name[1], name[0]), text)
