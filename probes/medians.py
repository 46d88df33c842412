"""The median, without :mod:`statistics`: loading that takes as long as a thousand links."""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """Return the median of at least one value."""
    ordered = sorted(values)
    if len(ordered) == 1:  # most links were tested once
        return ordered[0]
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
