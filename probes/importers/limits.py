"""Which figures can be a measurement at all."""

from __future__ import annotations

import math

from probes.samples import Metric

MAX_RATE_MBPS = 1e8
"""100 Tbit/s: some hundred times the fastest network card of a VM (3.2 Tbit/s, 2024)."""

MAX_RTT_MS = 60_000.0
"""60 s: beyond TCP's own timeout for one reply (RFC 6298 lets it be capped there)."""

MAX_CONNECTIONS = 65_535
MAX_DURATION_S = 31 * 86_400.0
MAX_INTERVALS = 10**6

OF_ONE_VM = frozenset({"egress_cap_mbps", "ingress_cap_mbps"})
"""Metrics whose source and destination are one region: the VM's."""

# A time in seconds since 1970 lies between 1973 and 2286; milliseconds do not fit in here.
MIN_TIME_S, MAX_TIME_S = 1e8, 1e10


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


def fault(metric: Metric, value: float | None, column: str) -> str:
    """Why a figure can't be a measurement of this metric; ``""`` if it can.

    Parameters
    ----------
    value : float | None
        In the unit of the metric; None if it was no number.
    column : str
        What the file calls the figure.
    """
    if value is None:
        return f"{column} is not a number"
    if math.isnan(value):
        return f"{column} is NaN"
    if math.isinf(value):
        return f"{column} is infinite"
    if value < 0:
        return f"{column} is negative"
    if metric == "loss_pct":
        return f"{column} is over 100 %" if value > 100 else ""
    if value == 0 and metric != "jitter_ms":
        return f"{column} is zero"
    if metric == "transfer_s":
        return f"{column} is over 31 days" if value > MAX_DURATION_S else ""
    if metric in ("rtt_ms", "jitter_ms"):
        return f"{column} is over 60 s" if value > MAX_RTT_MS else ""
    return f"{column} is over 100 Tbit/s" if value > MAX_RATE_MBPS else ""
