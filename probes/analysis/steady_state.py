"""The steady rate in a test's intervals, and what else they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from probes.importers.steady import Interval

Pattern: TypeAlias = Literal["slow-start", "burst", "drop", "rise", "two-level"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a series that is not the steady rate.

    Attributes
    ----------
    pattern : Pattern
    at_s, at_gb : float
        When the rate changed: seconds and volume since the start.
    before_mbps, after_mbps : float
    """

    pattern: Pattern
    at_s: float
    at_gb: float
    before_mbps: float
    after_mbps: float


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The steady rate and what was found.

    Attributes
    ----------
    mbps, low_mbps, high_mbps : float
        Median after the transient (or after the last change) and its 90 % bounds.
    duration_s : float
        Time that it was taken from.
    findings : tuple of Finding
    """

    mbps: float
    low_mbps: float
    high_mbps: float
    duration_s: float
    findings: tuple[Finding, ...]


def steady_state(intervals: Sequence[Interval], *, warmed_up: bool) -> SteadyState | None:
    """Return the steady rate of one test; None where the intervals can't tell."""
    raise NotImplementedError
