"""The share of later measurements that bounds held."""

from __future__ import annotations

from dataclasses import dataclass

from probes.analysis.evidence import share_bounds


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of predictions whose bounds of 90 % held.

    Attributes
    ----------
    predictions : int
    share : float | None
        Of later measurements that lay within the bounds; None without any.
    low, high : float | None
        The 95 % confidence interval of the share, if predictions are independent.
    """

    predictions: int
    share: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, held: int, predictions: int) -> Coverage:
        """Return the coverage of a number of predictions, some of which held."""
        if not predictions:
            return cls(0, None, None, None)
        return cls(predictions, held / predictions, *share_bounds(held, predictions))
