"""On how many examples a property, or seeds a comparison, is tried."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """Return the number that a test asks for, or the few of the profile ``quick``."""
    few: int = settings.get_profile("quick").max_examples
    return min(count, few) if settings().max_examples == few else count


def cases(count: int) -> int:
    """Return how many cases of a long comparison to try: in CI a fifth, always the same ones."""
    return examples(count // 5 if settings().derandomize else count)
