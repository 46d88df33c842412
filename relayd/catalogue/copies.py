"""Tools that copy between buckets, and prices of requests: ``configs/copies.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from relayd.catalogue.files import built_in_folder


@cache
def copies() -> dict[str, Any]:
    """Return the file: ``tool`` by what ``--emit`` calls it, and ``requests`` by provider."""
    return tomllib.loads((built_in_folder() / "copies.toml").read_text())
