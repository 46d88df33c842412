"""When a median is known well enough to stop measuring."""

from __future__ import annotations

from collections.abc import Sequence


def median_interval(values: Sequence[float], confidence: float = 0.9) -> tuple[float, float] | None:
    """Return order-statistic bounds of the median; None where there are too few values."""
    raise NotImplementedError


def may_stop(values: Sequence[float], *, within: float = 0.03, confidence: float = 0.9) -> bool:
    """Whether a test may stop, asked after every interval."""
    raise NotImplementedError
