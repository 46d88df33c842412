"""Rates of a VM's peers while all were at work: under the hose model, its cap at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.model.errors import InputError
from probes.analysis.steady_state import Interval

CAP_NOISE = 0.05
"""90th percentile of the error of one short probe of a cap, as for aggregates."""
BEGIN_S, END_S = 0.75, 0.5
"""Excluded from the time in which all peers were at work: the last to begin is not up to speed at
once, and the end of a test is known only to some tenths of a second."""
LEAST_TOGETHER_S = 1.0
"""Peers that were at work together for less don't show the cap."""


class PeerTest(NamedTuple):
    """A peer's test: its consecutive intervals, and the time at which the last of them ended."""

    at_s: float
    intervals: Sequence[Interval]

    @property
    def began_s(self) -> float:
        """Begin of the first interval."""
        return self.at_s - sum(interval.seconds for interval in self.intervals)

    def mean_mbps(self, from_s: float, until_s: float) -> float:
        """Return the mean rate over a part of the test."""
        seconds, rates = np.array(self.intervals).T
        ends_s = self.began_s + np.append(0.0, seconds.cumsum())
        megabits = np.append(0.0, (seconds * rates).cumsum())
        begin, end = np.interp((from_s, until_s), ends_s, megabits)
        return float(end - begin) / (until_s - from_s)


def together_mbps(tests: Mapping[str, PeerTest]) -> dict[str, float]:
    """Return the mean rate of each peer while all were at work.

    Peers take turns in the hub's queue, so that only rates of the same time add up to the cap.
    Tests that were started together neither begin nor end together, and those that go on take
    what the others leave (in the lab, a last second carried up to 1.5 times the cap): only while
    all of them ran does anything count.

    Parameters
    ----------
    tests : mapping
        Peer to its test, by one clock. The shorter the intervals, the less of what a peer had
        alone is taken for what it had with others: a quarter of a second leaves under 1 % in the
        lab, a whole second up to 5 %.

    Raises
    ------
    InputError
        If all ran together for less than :data:`LEAST_TOGETHER_S`, :data:`BEGIN_S` and
        :data:`END_S` aside.
    """
    begin_s = max(test.began_s for test in tests.values()) + BEGIN_S
    end_s = min(test.at_s for test in tests.values()) - END_S
    if end_s - begin_s < LEAST_TOGETHER_S - 1e-6:
        raise InputError(
            "cap probe",
            f"had all {len(tests)} peers at work for {max(0.0, end_s - begin_s):.1f} s only",
            remedy="Measure again when hosts and controller are less busy.",
        )
    return {peer: test.mean_mbps(begin_s, end_s) for peer, test in tests.items()}
