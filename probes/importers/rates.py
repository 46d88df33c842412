"""The figure of one test, and what its intervals show: one way for all tools.

TCP: a median after the transient (:mod:`probes.analysis.series.steady`); where the rate falls,
rises or goes back and forth for good later on, the level that lasts, and the changes are kept with
the sample (:mod:`probes.analysis.steady_state`), as campaigns keep them. UDP: what arrived in the
best five seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from probes.analysis.evidence import TooFewError
from probes.analysis.path_capacity import WINDOW_S, path_capacity
from probes.analysis.series.steady import MIN_INTERVALS, Interval, steady_rate
from probes.analysis.steady_state import changes_as_json, steady_state

LATE = ("drop", "rise", "two-level")
"""Patterns that a median after the transient would mix; bursts and slow start are the transient."""


class TcpRate(NamedTuple):
    """What the intervals of a test say.

    Attributes
    ----------
    mbps, duration_s : float
        The rate that lasts, and how long it was seen.
    intervals : int
        That it is the median of.
    detail : dict
        For the sample.
    """

    mbps: float
    duration_s: float
    intervals: int
    detail: dict[str, Any]


def rate_of(intervals: Sequence[Interval], side: str, *, warmed_up: bool) -> TcpRate | None:
    """Return the rate of a test; None where its intervals do not show it.

    Parameters
    ----------
    intervals : sequence of Interval
        In order of time, without omitted ones.
    side : str
        Who counted them, for the sample's detail.
    warmed_up : bool
        Whether slow start was left out already.
    """
    if len(intervals) < MIN_INTERVALS:
        return None
    found = steady_state(intervals, warmed_up=warmed_up)
    changes = found.findings if found else ()
    if found is not None and any(change.pattern in LATE for change in changes):
        usual_s = sum(interval.seconds for interval in intervals) / len(intervals)
        count = max(1, round(found.duration_s / usual_s))
        return TcpRate(
            found.mbps,
            found.duration_s,
            count,
            {
                "steady": f"median of {count} intervals at the {side}, after the last change",
                "findings": changes_as_json(changes),
            },
        )
    steady = steady_rate(intervals, warmed_up=warmed_up)
    if steady is None:
        return None
    detail: dict[str, Any] = {"steady": f"median of {steady.intervals} intervals at the {side}"}
    if steady.transient_mbps is not None:
        detail["transient_s"] = round(steady.transient_s, 3)
        detail["transient_mbps"] = steady.transient_mbps
    if any(change.pattern == "burst" for change in changes):
        detail["findings"] = changes_as_json(changes)
    return TcpRate(steady.mbps, steady.duration_s, steady.intervals, detail)


class BestWindow(NamedTuple):
    """The figure of a UDP test, and what is kept with it."""

    mbps: float
    detail: dict[str, Any]


def best_window(
    received: Sequence[Interval], mean_mbps: float, sent_mbps: float | None
) -> BestWindow:
    """Return what arrived in the best five seconds of a UDP test, or its mean.

    Parameters
    ----------
    received : sequence of Interval
        The receiver's intervals; without five seconds of them, the mean stands.
    mean_mbps : float
        What arrived over the whole test.
    sent_mbps : float | None
        What was sent.
    """
    try:
        found = path_capacity(received, sent_mbps)
    except TooFewError:
        return BestWindow(mean_mbps, {})
    detail = {"mean_mbps": mean_mbps, "window_s": WINDOW_S, "lower_bound": found.is_lower_bound}
    return BestWindow(found.mbps, detail)
