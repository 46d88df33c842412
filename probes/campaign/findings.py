"""The findings of a probe: one sample of its runs, and remarks on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from planner.model.units import volume_text
from probes.analysis.steady_state import changes_as_json, steady_state
from probes.samples import Sample
from probes.tools.interface import Result


@dataclass
class Findings:
    """What a probe has found and sent so far; filled in as it runs, so that a failure keeps it.

    Attributes
    ----------
    samples : list of Sample
    sent : list of (source host, destination host, GB)
    busy_s : float
        How long tools were at work.
    notes : list of str
    most_gb : float
        What it may send; infinite for no limit.
    parts : int
        How many of the probe's parts have ended.
    kept : int
        How many samples these gave: they count, whatever becomes of the rest.
    """

    samples: list[Sample] = field(default_factory=list)
    sent: list[tuple[str, str, float]] = field(default_factory=list)
    busy_s: float = 0.0
    notes: list[str] = field(default_factory=list)
    most_gb: float = inf
    parts: int = 0
    kept: int = 0

    def end_part(self) -> None:
        """Keep what a part has found."""
        self.parts += 1
        self.kept = len(self.samples)

    def again(self, most_gb: float) -> Findings:
        """Return those of another attempt, which begins with what parts that ended have found."""
        found = self.samples[: self.kept]
        return Findings(found, most_gb=most_gb, parts=self.parts, kept=self.kept)

    @property
    def left_gb(self) -> float:
        """What may still be sent."""
        return max(0.0, self.most_gb - sum(gb for _, _, gb in self.sent))


def steady_sample(results: Sequence[Result], findings: Findings) -> Sample:
    """Return one sample of the runs of one test; note what else they show."""
    sample = results[0].samples[0]
    intervals = [interval for result in results for interval in result.intervals]
    found = steady_state(intervals, warmed_up=True) if intervals else None
    if found is None:
        return sample
    sample = sample.with_detail(
        low_mbps=round(found.low_mbps, 3), high_mbps=round(found.high_mbps, 3)
    )
    if found.findings:
        sample = sample.with_detail(findings=changes_as_json(found.findings))
        findings.notes += [
            f"{change.pattern} from {change.before_mbps:.4g} to {change.after_mbps:.4g} Mbit/s "
            f"after {change.at_s:.0f} s and {volume_text(change.at_gb)}"
            for change in found.findings
            if change.pattern != "slow-start"
        ]
    mbps = found.mbps
    if sample.connections == 1 and not found.findings:
        # One flow sends a window a round trip. A second holds few of them, and a median of such
        # counts is off by up to one; the mean over all seconds is off by much less.
        mbps = sum(i.mbps * i.seconds for i in intervals) / sum(i.seconds for i in intervals)
    return sample._replace(
        value=mbps, duration_s=found.duration_s, warmed_up=True, intervals=len(intervals)
    )


def steady_mbps(result: Result) -> float:
    """Return the steady rate of a run, or its mean where the intervals do not show it."""
    found = steady_state(result.intervals, warmed_up=True) if result.intervals else None
    return found.mbps if found else result.samples[0].value
