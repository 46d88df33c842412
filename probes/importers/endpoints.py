"""Region names as tools write them, split into region and zone."""

from __future__ import annotations

import re
from functools import lru_cache

from planner.model.errors import InputError

_REGION = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}:[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# gcp:europe-west6-a is zone a of europe-west6; aws:us-east-1a is zone a of us-east-1. Azure
# numbers its zones per subscription and writes them apart from the region.
_GCP_ZONE = re.compile(r"(gcp:[a-z0-9-]+\d)-([a-z])")
_AWS_ZONE = re.compile(r"(aws:[a-z]{2}(?:-[a-z]+)+-\d)([a-z])")


@lru_cache(65_536)  # a file of a million rows repeats a hundred names
def split(name: str) -> tuple[str, str] | None:
    """Split a name into region id and zone; the zone is ``""`` where none is named."""
    stripped = name.strip()
    if match := _GCP_ZONE.fullmatch(stripped) or _AWS_ZONE.fullmatch(stripped):
        return match[1], match[2]
    return (stripped, "") if _REGION.fullmatch(stripped) else None


def stated(field: str, name: str, file: str, tool: str) -> tuple[str, str]:
    """Split a region that the user stated for a file that names none.

    Raises
    ------
    InputError
        If it is missing or not ``provider:region``.
    """
    if not name:
        remedy = f"Say {field} provider:region, such as {field} aws:us-east-1."
        raise InputError(
            field,
            f"is needed, because {file} is {tool} output, which names no regions",
            remedy=remedy,
        )
    found = split(name)
    if found is None:
        raise InputError(
            field, "is not provider:region", value=name, remedy="Such as aws:us-east-1."
        )
    return found
