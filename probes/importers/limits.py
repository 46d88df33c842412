"""Limits of figures that can be a measurement at all."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from probes.samples import MAX_CONNECTIONS, MAX_DURATION_S, Metric

MAX_RATE_MBPS = 1e8
"""100 Tbit/s: some hundred times the fastest network card of a VM (3.2 Tbit/s, 2024)."""

MAX_RTT_MS = 60_000.0
"""60 s: beyond TCP's own timeout for one reply (RFC 6298 lets it be capped there)."""

OF_ONE_VM = frozenset({"egress_cap_mbps", "ingress_cap_mbps"})
"""Metrics whose source and destination are one region: the VM's."""


def number(cell: str) -> float | None:
    """Read a figure, NaN and infinities included; None where it is none.

    Python's own spelling of digit groups (``1_000``) is no figure of any measuring tool.
    """
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def connections(cell: str) -> int | None:
    """Read a number of TCP connections; None where it is none."""
    count = number(cell)
    if count is None or not 1 <= count <= MAX_CONNECTIONS or count != int(count):
        return None
    return int(count)


def duration_s(cell: str, factor: float = 1.0) -> float | None:
    """Read the length of a test, in units of so many seconds; None where it is none."""
    seconds = (number(cell) or 0.0) * factor
    return seconds if 0 < seconds <= MAX_DURATION_S else None


def are_possible(metric: Metric, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the values in which :func:`fault` finds none."""
    above_zero = values >= 0 if metric in _MAY_BE_ZERO else values > 0
    return above_zero & (values <= _most(metric)[0])


def fault(metric: Metric, value: float | None, column: str) -> str:
    """Explain why a figure can't be a measurement of this metric; ``""`` if it can.

    Parameters
    ----------
    value : float | None
        In the unit of the metric; None if it was no number.
    column : str
        Name of the figure in the file.
    """
    if value is None:
        return f"{column} is not a number"
    if math.isnan(value):
        return f"{column} is NaN"
    if math.isinf(value):
        return f"{column} is infinite"
    if value < 0:
        return f"{column} is negative"
    if value == 0 and metric not in _MAY_BE_ZERO:
        return f"{column} is zero"
    most, in_words = _most(metric)
    return f"{column} is over {in_words}" if value > most else ""


_MAY_BE_ZERO = ("loss_pct", "jitter_ms")


def _most(metric: Metric) -> tuple[float, str]:
    """Return the most that a figure can be, and the same in words."""
    if metric == "loss_pct":
        return 100.0, "100 %"
    if metric == "transfer_s":
        return MAX_DURATION_S, "31 days"
    if metric in ("rtt_ms", "jitter_ms"):
        return MAX_RTT_MS, "60 s"
    return MAX_RATE_MBPS, "100 Tbit/s"
