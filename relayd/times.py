"""Times as text, in UTC: here because the planner keeps no time, and every room needs them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta


def until(written: str) -> str:
    """Return a time of day here (``17:30``) as the seconds until then; other words as they are."""
    if not (clock := re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", written.strip())):
        return written
    now = datetime.now(UTC).astimezone()
    then = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
    return f"{(then - now) / timedelta(seconds=1) % 86400:.0f}s"


def utc_text(at_s: float) -> str:
    """Return a time, in seconds since 1970, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_date(at_s: float) -> str:
    """Return the UTC date of a time in seconds since 1970."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


def seconds_of(written: str) -> float:
    """Return an ISO 8601 time in seconds since 1970; a time without a zone is UTC.

    Raises ValueError if it is no such time.
    """
    moment = datetime.fromisoformat(written)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
