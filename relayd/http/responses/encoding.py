"""JSON as bytes."""

from __future__ import annotations

from typing import Any

import orjson


def encoded(value: Any) -> bytes:
    """Return dicts, lists and dataclasses as JSON; NaN becomes null."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
