"""The ramp of throughput over the number of connections: ``a(k) = min(k f, A)``."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, inf, log
from statistics import fmean
from typing import Any, NamedTuple

from planner.model.errors import InputError

# The flat part was reached if the line through the first points, drawn on, is this much above it.
CLEARLY_BELOW_LINE = 1.15
LEAST_GAIN = 0.05
"""Connections that bring less are not worth adding: the flat part is reached."""


class Ramp(NamedTuple):
    """A fitted ramp."""

    # f: a lower bound where ``saturated`` is true already of the fewest connections
    per_flow_mbps: float
    # A: where ``saturated`` is False, what the most connections reached, a lower bound
    saturated_mbps: float
    saturated: bool  # whether the flat part was reached

    @property
    def knee_connections(self) -> float:
        """Connections from which more bring nothing: ``A / f``."""
        return self.saturated_mbps / self.per_flow_mbps


def next_connections(measured_mbps: Mapping[int, float], *, most: int = 128) -> int | None:
    """Return the number of connections to try next, or None to stop.

    1, 2, 4, ... and at last ``most``, until the latest brought less than 5 % over the best of
    fewer. 128 is what iperf3 allows.
    """
    latest = max(measured_mbps, default=0)
    if latest >= most or saturates(measured_mbps):
        return None
    return min(2 * latest, most) or 1


def saturates(measured_mbps: Mapping[int, float]) -> bool:
    """Tell whether the most connections brought less than 5 % over the best of fewer."""
    latest = max(measured_mbps, default=0)
    fewer = [mbps for count, mbps in measured_mbps.items() if count < latest]
    return bool(fewer) and measured_mbps[latest] < max(fewer) * (1 + LEAST_GAIN)


def ramp_steps(detail: Mapping[str, Any]) -> dict[int, float]:
    """Return the connections and Mbit/s of the ramp in a sample's detail; empty without one."""
    steps = detail.get("ramp")
    return {
        int(count): float(mbps)
        for count, mbps in (steps.items() if isinstance(steps, dict) else ())
        if str(count).isdecimal() and isinstance(mbps, int | float)
    }


def fit_ramp(measured_mbps: Mapping[int, float]) -> Ramp:
    """Fit ``min(k f, A)`` to Mbit/s by connections, by least squares of the logarithms.

    For each place where the line may turn flat, f and A are geometric means of either side; the
    place with the least error wins.

    Raises InputError if there is nothing, or a figure not above 0.
    """
    if not measured_mbps or min(measured_mbps.values()) <= 0 or min(measured_mbps) < 1:
        problem = "needs throughputs above 0 of 1 or more connections"
        raise InputError("ramp", problem, value=dict(measured_mbps))
    points = [(log(count), log(mbps)) for count, mbps in sorted(measured_mbps.items())]
    most = points[-1][0]
    best = (inf, 0.0, 0.0)
    for rising in range(1, len(points) + 1):
        flow = fmean(value - count for count, value in points[:rising])
        flat = fmean(v for _, v in points[rising:]) if rising < len(points) else flow + most
        squares = sum((min(flow + count, flat) - value) ** 2 for count, value in points)
        # A straight line is the simpler story: a bend has to explain more than rounding.
        if squares < best[0] - 1e-12:
            best = (squares, flow, flat)
    _, flow, flat = best
    saturated = flow + most - flat > log(CLEARLY_BELOW_LINE)
    reached = exp(flat) if saturated else max(exp(flat), exp(points[-1][1]))
    return Ramp(exp(flow), reached, saturated)
