"""On how many examples a property, or seeds a comparison, is tried."""

from __future__ import annotations

from hypothesis import settings

_FEWEST_IN_CI = 10


def examples(count: int) -> int:
    """Return the number that a test asks for: in CI a third of it, in ``quick`` few."""
    few: int = settings.get_profile("quick").max_examples
    if settings().max_examples == few:
        return min(count, few)
    return max(count // 3, _FEWEST_IN_CI) if settings().derandomize else count


def cases(count: int) -> int:
    """Return how many cases of a long comparison to try: in CI a fifth, always the same ones."""
    return count // 5 if settings().derandomize else examples(count)
