"""Results of runs of plans: verifications of a pair of regions, and what transfers achieved."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.estimate import SECONDS_PER_DAY
from planner.model.units import gbps_text

RECENT_S = 48 * 3600.0
MEASURING_ERROR = 0.05
"""Relative error of one measurement with many connections, 90th percentile on the January 2022
grid: bounds of what one run shows are no closer than that."""


@dataclass(frozen=True, slots=True)
class VerifiedPath:
    """A relayed path that was run by itself.

    Attributes
    ----------
    connections : int
        Of one VM pair.
    achieved_gbps : float
        Of one VM pair.
    at_s : float
        Seconds since 1970 (UTC).
    """

    regions: tuple[str, ...]
    connections: int
    achieved_gbps: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Verified:
    """The last verification of a pair of regions.

    Attributes
    ----------
    low_gbps, expected_gbps, high_gbps, achieved_gbps : float
        What was predicted of the plan, with the measurement's own error, and what it carried.
    verdict, snapshot_id : str
        Of the plan that was run.
    at_s : float
        Seconds since 1970 (UTC).
    paths : tuple of VerifiedPath
        The newest of each relayed path between the two.
    """

    src: str
    dst: str
    verdict: str
    snapshot_id: str
    low_gbps: float
    expected_gbps: float
    high_gbps: float
    achieved_gbps: float
    at_s: float
    paths: tuple[VerifiedPath, ...] = ()

    @property
    def held(self) -> bool:
        """Return whether the plan's rate was within the predicted bounds."""
        return self.low_gbps <= self.achieved_gbps <= self.high_gbps

    def text(self, now_s: float) -> str:
        """Return it as a clause: ``verified 2 h ago: 4.9 of 5.0 Gbit/s``."""
        figures = f"{gbps_text(self.achieved_gbps)} of {gbps_text(self.expected_gbps)} Gbit/s"
        return f"verified {ago(now_s - self.at_s)}: {figures}"


@dataclass(frozen=True, slots=True)
class AchievedShare:
    """The share of their plans' rates that the last transfers of a pair, or of a label, reached.

    Attributes
    ----------
    src, dst, label : str
        Region ids, or the label; what it is not of is empty.
    median, low, high : float
        With the 5th and the 95th percentile.
    transfers : int
    """

    src: str
    dst: str
    label: str
    median: float
    low: float
    high: float
    transfers: int


def ago(seconds: float) -> str:
    """Return an age as words, as coarse as ages are looked at: ``39 h ago``."""
    age_s = max(0.0, seconds)
    if age_s >= 730 * SECONDS_PER_DAY:
        return f"{age_s / (365.25 * SECONDS_PER_DAY):.1f} years ago"
    for unit, size_s, below_s in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, RECENT_S)):
        if age_s < below_s:
            return f"{age_s // size_s:.0f} {unit} ago"
    return f"{age_s // SECONDS_PER_DAY:.0f} d ago"
