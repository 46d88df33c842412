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
    began_s = {
        name: one.at_s - sum(i.seconds for i in one.intervals) for name, one in tests.items()
    }
    begin_s = max(began_s.values()) + BEGIN_S
    end_s = min(test.at_s for test in tests.values()) - END_S
    if end_s - begin_s < LEAST_TOGETHER_S - 1e-6:
        raise InputError(
            "cap probe",
            f"had all {len(tests)} peers at work for {max(0.0, end_s - begin_s):.1f} s only",
            remedy="Measure again when hosts and controller are less busy.",
        )
    found = {}
    for name, test in tests.items():
        seconds, rates = np.array(test.intervals).T
        ends_s = began_s[name] + np.append(0.0, seconds.cumsum())
        megabits = np.append(0.0, (seconds * rates).cumsum())
        before, after = np.interp((begin_s, end_s), ends_s, megabits)
        found[name] = float(after - before) / (end_s - begin_s)
    return found
