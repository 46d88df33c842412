"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(at_s: float) -> str:
    """Return a time, in seconds since 1970, by RFC 3339 in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
