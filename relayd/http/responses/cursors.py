"""Cursors: the position where a page ended, opaque to clients."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TypeVar

from planner.model.errors import InputError

T = TypeVar("T")


def cursor(*parts: str | int) -> str:
    """Return a cursor for the last entry of a page."""
    return base64.urlsafe_b64encode("\n".join(str(part) for part in parts).encode()).decode()


def page_of(
    found: list[T], limit: int, end_of: Callable[[T], tuple[str | int, ...]]
) -> tuple[list[T], str | None]:
    """Return a page, and its cursor if more was found than the page holds.

    Parameters
    ----------
    found : list
        One entry more than the page, if there are as many.
    limit : int
        Entries of the page.
    end_of : callable
        The parts of the cursor of an entry.
    """
    page = found[:limit]
    return page, cursor(*end_of(page[-1])) if len(found) > limit else None


def position(text: str | None, parts: int) -> list[str] | None:
    """Return the parts that :func:`cursor` was given; None for the first page.

    Raises
    ------
    InputError
        If it is not a cursor of this path.
    """
    if text is None:
        return None
    try:
        found = base64.b64decode(text.encode(), altchars=b"-_", validate=True).decode().split("\n")
    except (binascii.Error, UnicodeError, ValueError):
        found = []
    if len(found) != parts:
        raise InputError(
            "cursor",
            "is not one that this path gave",
            value=text,
            remedy="Give `next_cursor` of the page before, or none for the first page.",
        )
    return found


def whole_position(text: str | None) -> int:
    """Return a cursor's number; 0 for the first page."""
    found = position(text, 1)
    if found is None:
        return 0
    if not (found[0].isascii() and found[0].isdigit() and len(found[0]) <= 18):
        raise InputError("cursor", "is not one that this path gave", value=text)
    return int(found[0])
