"""How often bounds held what was measured later."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often bounds of 90 % held.

    Attributes
    ----------
    predictions : int
    share : float | None
        Of later measurements that lay within the bounds; None without any.
    low, high : float | None
        Between which the share of many more lies with 95 % (Wilson, "Probable inference, the law
        of succession, and statistical inference", 1927), if they were independent.
    """

    predictions: int
    share: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, held: int, predictions: int) -> Coverage:
        """Return the coverage of so many predictions, of which some held."""
        if not predictions:
            return cls(0, None, None, None)
        share, squared = held / predictions, NORMAL_95**2 / predictions
        middle = (share + squared / 2) / (1 + squared)
        half = sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
        return cls(predictions, share, max(0.0, middle - half), min(1.0, middle + half))
