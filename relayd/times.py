"""Times as text, in UTC: here because the planner keeps no time, and every room needs them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(at_s: float) -> str:
    """Return a time, in seconds since 1970, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_date(at_s: float) -> str:
    """Return the UTC date of a time in seconds since 1970."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


def seconds_of(written: str) -> float:
    """Return an ISO 8601 time in seconds since 1970; a time without a zone is UTC.

    Raises
    ------
    ValueError
        If it is no such time.
    """
    moment = datetime.fromisoformat(written)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
