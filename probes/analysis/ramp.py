"""How throughput grows with the number of connections: ``a(k) = min(k f, A)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ramp:
    """A fitted ramp.

    Attributes
    ----------
    per_flow_mbps, saturated_mbps : float
        f and A; A is a lower bound where ``saturated`` is False.
    saturated : bool
        Whether the flat part was reached.
    error : float
        Root mean square of relative deviations from the fit.
    """

    per_flow_mbps: float
    saturated_mbps: float
    saturated: bool
    error: float


def next_connections(
    measured_mbps: Mapping[int, float], *, most: int = 128, gain: float = 0.05
) -> int | None:
    """Return how many connections to try next (1, 2, 4, ...), or None to stop."""
    raise NotImplementedError


def fit_ramp(measured_mbps: Mapping[int, float]) -> Ramp:
    """Fit ``min(k f, A)``; connections to Mbit/s."""
    raise NotImplementedError
