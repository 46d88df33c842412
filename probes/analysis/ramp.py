"""How throughput grows with the number of connections: ``a(k) = min(k f, A)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

from planner.model.errors import InputError

# The flat part was reached if the line through the first points, drawn on, is this much above it.
CLEARLY_BELOW_LINE = 1.15
LEAST_GAIN = 0.05
"""Connections that bring less are not worth adding: the flat part is reached."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A fitted ramp.

    Attributes
    ----------
    per_flow_mbps, saturated_mbps : float
        f and A. Where ``saturated`` is False, A is what the most connections reached: a lower
        bound. Where it is true already of the fewest connections, f is a lower bound.
    saturated : bool
        Whether the flat part was reached.
    error : float
        Root mean square of the relative deviations from the fit.
    """

    per_flow_mbps: float
    saturated_mbps: float
    saturated: bool
    error: float

    @property
    def knee_connections(self) -> float:
        """Connections from which more bring nothing: ``A / f``."""
        return self.saturated_mbps / self.per_flow_mbps

    def mbps(self, connections: int) -> float:
        """Return the fitted throughput of a number of connections."""
        return min(connections * self.per_flow_mbps, self.saturated_mbps)


def next_connections(
    measured_mbps: Mapping[int, float], *, most: int = 128, gain: float = LEAST_GAIN
) -> int | None:
    """Return how many connections to try next, or None to stop.

    1, 2, 4, ... and at last ``most``, until the latest brought less than ``gain`` over the best of
    fewer. 128 is what iperf3 allows.

    Parameters
    ----------
    measured_mbps : mapping
        Connections to Mbit/s so far; empty at first.
    """
    if not measured_mbps:
        return 1
    latest = max(measured_mbps)
    if latest >= most or saturates(measured_mbps, gain=gain):
        return None
    return min(2 * latest, most)


def saturates(measured_mbps: Mapping[int, float], *, gain: float = LEAST_GAIN) -> bool:
    """Whether the most connections brought less than ``gain`` over the best of fewer."""
    latest = max(measured_mbps, default=0)
    fewer = [mbps for count, mbps in measured_mbps.items() if count < latest]
    return bool(fewer) and measured_mbps[latest] < max(fewer) * (1 + gain)


def ramp_steps(detail: Mapping[str, Any]) -> dict[int, float]:
    """Return the connections and Mbit/s of a ramp that a sample's detail tells of; else nothing."""
    steps = detail.get("ramp")
    if not isinstance(steps, dict):
        return {}
    return {
        int(count): float(mbps)
        for count, mbps in steps.items()
        if str(count).isdecimal() and isinstance(mbps, int | float)
    }


def fit_ramp(measured_mbps: Mapping[int, float]) -> Ramp:
    """Fit ``min(k f, A)`` by least squares of the logarithms.

    For each place where the line may turn flat, f and A are geometric means of either side; the
    place with the least error wins.

    Parameters
    ----------
    measured_mbps : mapping
        Connections to Mbit/s.

    Raises
    ------
    InputError
        If there is nothing, or a figure not above 0.
    """
    if not measured_mbps or min(measured_mbps.values()) <= 0 or min(measured_mbps) < 1:
        raise InputError(
            "ramp", "needs throughputs above 0 of 1 or more connections", value=dict(measured_mbps)
        )
    points = sorted(measured_mbps.items())
    counts = [log(count) for count, _ in points]
    values = [log(mbps) for _, mbps in points]
    best: tuple[float, float, float] = (inf, 0.0, 0.0)
    for rising in range(1, len(points) + 1):
        flow = _mean([v - c for v, c in zip(values[:rising], counts[:rising], strict=True)])
        flat = _mean(values[rising:]) if rising < len(points) else flow + counts[-1]
        squares = sum((min(flow + c, flat) - v) ** 2 for v, c in zip(values, counts, strict=True))
        # A straight line is the simpler story: a bend has to explain more than rounding.
        if squares < best[0] - 1e-12:
            best = (squares, flow, flat)
    squares, flow, flat = best
    saturated = flow + counts[-1] - flat > log(CLEARLY_BELOW_LINE)
    reached = exp(flat) if saturated else max(exp(flat), points[-1][1])
    return Ramp(exp(flow), reached, saturated, sqrt(squares / len(points)))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
