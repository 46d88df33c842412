"""The rate of one test, and the changes in its intervals: one way for all tools.

TCP: a median after the transient (:mod:`probes.analysis.steady_state`); where the rate falls,
rises or goes back and forth for good later on, the level that lasts, and the changes are kept with
the sample, as campaigns keep them. UDP: the rate of arrival in the best five seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.evidence import TooFewError
from probes.analysis.steady_state import LASTING, Interval, changes_as_json, steady_state
from probes.analysis.udp import WINDOW_S, path_capacity
from probes.importers import limits
from probes.importers.options import ImportedRow, ImportOptions
from probes.metrics import MAX_DURATION_S, Metric, throughput_of
from probes.samples import SkippedRow

MIN_INTERVALS = 8
"""Fewer intervals do not show the rate after the transient of a short test."""
PACED_SHARE = 0.9
"""A test that reaches this share of its target rate was held back by the target."""
PACED = "paced: the rate is what was asked for, not what the path gives"
WENT_DOWN = "nothing came in the last seconds of the test: the path went down, or one of its ends"
LEAST_SILENCE_S = 3.0
"""Stalls may stand at the end of a test; longer than this and than twice any stall, it is over."""


class RateTest(NamedTuple):
    """A test as a file has it.

    Attributes
    ----------
    at_s : float
        Seconds since 1970 (UTC).
    tool : str
        Its name, with its version after a space.
    streams : int | None
        None where the file does not state it, of UDP alone.
    mbps, seconds : float | None
        Rate of arrival over the whole test, and its length.
    intervals : sequence of Interval
        In order of time, without omitted ones; of UDP the receiver's.
    side : str
        The side that counted them.
    warmed_up : bool
        Whether slow start was left out already.
    paced_at_mbps, paced_by : float and str
        The least rate to which the sender's options held all streams, and the options; 0 without,
        and ``""`` where the intervals alone show it.
    sent_mbps : float | None
        Of UDP, where it is known.
    detail, more : mapping
        For the sample's detail, before and after the figures of intervals.
    omitted : sequence of Interval
        Those left out as a warm-up.
    way : mapping
        For the end of the detail; ``reverse`` is there if data flowed from the stated destination
        to the source.
    """

    at_s: float
    tool: str
    streams: int | None
    mbps: float
    seconds: float | None
    intervals: Sequence[Interval]
    side: str = "receiver"
    is_udp: bool = False
    warmed_up: bool = False
    paced_at_mbps: float = 0.0
    paced_by: str = "-b or -R"
    sent_mbps: float | None = None
    detail: Mapping[str, Any] = {}
    more: Mapping[str, Any] = {}
    omitted: Sequence[Interval] = ()
    way: Mapping[str, Any] = {}

    def row(self, line: int, options: ImportOptions) -> ImportedRow:
        """Return the sample of the test, or the reason why it is none."""
        if self.seconds is None or not 0 < self.seconds <= MAX_DURATION_S:
            return SkippedRow(line, "the duration of the test is missing or no duration")
        metric: Metric = "udp_mbps"
        if not self.is_udp:
            metric = throughput_of(self.streams)
        mbps, duration_s, intervals, of_intervals = _lasting(self)
        if problem := limits.fault(metric, mbps, "the rate"):
            return SkippedRow(line, problem)
        detail = {**self.detail, **of_intervals, **self.more}
        if not self.is_udp and 0 < self.paced_at_mbps * PACED_SHARE <= mbps:
            if not self.paced_by:
                metric = "aggregate_mbps"  # of which there are lower bounds
            elif not options.force:
                return SkippedRow(line, f"{PACED} ({self.paced_by})")
            detail["paced_at_mbps"] = self.paced_at_mbps
        if not self.is_udp and _went_down(self.intervals) and not options.force:
            return SkippedRow(line, WENT_DOWN)
        return options.sample(
            metric,
            mbps,
            self.at_s,
            self.tool,
            {**detail, **self.way},
            reverse="reverse" in self.way,
            connections=self.streams,
            duration_s=duration_s,
            warmed_up=self.is_udp or self.warmed_up or intervals is not None,
            intervals=intervals,
        )


def _went_down(intervals: Sequence[Interval]) -> bool:
    """Whether data stopped for good in a test."""
    stalls_s = [0.0]
    for is_silent, run in groupby(intervals, lambda one: one.mbps <= 0):
        stalls_s.append(is_silent * sum(one.seconds for one in run))
    return stalls_s[-1] >= max(LEAST_SILENCE_S, 2 * max(stalls_s[:-1], default=0.0))


def _lasting(test: RateTest) -> tuple[float, float | None, int | None, dict[str, Any]]:
    """Return the rate that lasts, its time in s, how many intervals it is of, and the detail.

    Of UDP that is the rate of the best five seconds; it is the mean where intervals do not show it.
    """
    whole = test.mbps, test.seconds, None, dict[str, Any]()
    if test.is_udp:
        with suppress(TooFewError):
            best_mbps, bound = path_capacity(test.intervals, test.sent_mbps)
            told = {"mean_mbps": test.mbps, "window_s": WINDOW_S, "lower_bound": bound}
            return best_mbps, test.seconds, None, told
        return whole
    found = steady_state(test.intervals, warmed_up=test.warmed_up)
    if found is None or len(test.intervals) < MIN_INTERVALS:
        return whole
    patterns = {change.pattern for change in found.findings}
    is_late = not patterns.isdisjoint(LASTING)
    figure = "mean" if found.is_mean else "median"
    steady = f"{figure} of {found.intervals} intervals at the {test.side}"
    detail: dict[str, Any] = {"received_mbps": test.mbps}
    if found.mean_error:
        detail["mean_error"] = found.mean_error
    detail["steady"] = f"{steady}, after the last change" if is_late else steady
    if found.transient_mbps is not None and not is_late:
        detail["transient_s"] = round(found.transient_s, 3)
        detail["transient_mbps"] = found.transient_mbps
    if patterns - {"slow-start"}:
        detail["findings"] = changes_as_json(found.findings)
        if test.omitted:
            detail["omitted_s"] = round(sum(interval.seconds for interval in test.omitted), 3)
            megabits = sum(interval.seconds * interval.mbps for interval in test.omitted)
            detail["omitted_gb"] = round(megabits / MBPS_PER_GBPS / BITS_PER_BYTE, 6)
    return found.mbps, found.duration_s, found.intervals, detail
