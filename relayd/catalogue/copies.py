"""Tools that copy between buckets, and prices of requests: ``configs/copies.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from relayd.catalogue.files import built_in_folder

REQUESTS = "Requests"  # the first word of the names of fees for a transfer's objects


@cache
def copies() -> dict[str, Any]:
    """Return the file: ``tool`` by what ``--emit`` calls it, and ``requests`` by provider."""
    return tomllib.loads((built_in_folder() / "copies.toml").read_text())


def filled(lines: str, known: Mapping[str, object]) -> str:
    """Return lines with values in place of their names between ``@``."""
    return re.sub(r"@(\w+)@", lambda found: str(known[found[1]]), lines)


def shell(name: str, **known: object) -> str:
    """Return lines of the table ``lines``, with values in place of their names."""
    return filled(copies()["lines"][name], known)
