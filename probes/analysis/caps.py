"""A VM's egress and ingress cap from one-to-many and many-to-one probes.

Under the hose model a VM's rates to all its peers add up to its cap at most. A probe that loads
several peers at once shows the cap if the sum stays below what the peers could have taken one by
one; otherwise the peers were the limit, and the sum is only a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.errors import InputError
from planner.network import Estimate
from planner.units import MBPS_PER_GBPS
from probes.importers.steady import Interval

# 90th percentile of the error of one short probe of a cap, as for aggregates.
CAP_NOISE = 0.05
# The sum is the VM's limit if it stays this far below what the peers reach alone.
HELD_BACK = 0.93
# Where the cap was not reached, it may be anything from there; twice as much stands for that.
OPEN_ABOVE = 2.0
LEAST_TOGETHER_S = 1.5
"""Peers that were at work together for less don't show the cap."""


class Ended(NamedTuple):
    """What a peer's test carried in consecutive intervals, and when the last of them ended."""

    at_s: float
    intervals: Sequence[Interval]

    @property
    def began_s(self) -> float:
        """When the first interval began."""
        return self.at_s - sum(interval.seconds for interval in self.intervals)

    def mean_mbps(self, from_s: float, until_s: float) -> float:
        """Return the mean rate over a part of the test."""
        megabits, end_s = 0.0, self.at_s
        for interval in reversed(self.intervals):
            begin_s = end_s - interval.seconds
            megabits += interval.mbps * max(0.0, min(end_s, until_s) - max(begin_s, from_s))
            end_s = begin_s
        return megabits / (until_s - from_s)


def together_mbps(tests: Mapping[str, Ended]) -> dict[str, float]:
    """Return what each peer had in the second whose total is the median of all seconds.

    Peers take turns in the hub's queue, so that each one's own median can't be added up: only
    rates of the same moment share the cap. Tests that were started together neither begin nor end
    together, and those that go on take what the others leave (in the lab, a last second carried
    up to 1.5 times the cap): only while all of them ran does anything count.

    Parameters
    ----------
    tests : mapping
        Peer to its test, by one clock.

    Raises
    ------
    InputError
        If all ran together for less than :data:`LEAST_TOGETHER_S`.
    """
    begin_s = max(test.began_s for test in tests.values())
    end_s = min(test.at_s for test in tests.values())
    if end_s - begin_s < LEAST_TOGETHER_S:
        raise InputError(
            "cap probe",
            f"had all {len(tests)} peers at work for {max(0.0, end_s - begin_s):.1f} s only",
            remedy="Measure again when hosts and controller are less busy.",
        )
    # As many whole seconds as fit; the first may still be getting up to speed, a median forgives.
    seconds = int(end_s - begin_s + 1e-6)
    step_s = (end_s - begin_s) / seconds
    rates = []
    for second in range(seconds):
        from_s = begin_s + second * step_s
        rates.append({peer: t.mean_mbps(from_s, from_s + step_s) for peer, t in tests.items()})
    rates.sort(key=lambda by_peer: sum(by_peer.values()))
    return rates[len(rates) // 2]


def cap_estimate(
    together_mbps: Mapping[str, float],
    alone_mbps: Mapping[str, float | None],
    *,
    measured_at_s: float,
) -> Estimate:
    """Return a VM's cap in Gbit/s.

    Parameters
    ----------
    together_mbps : mapping
        Peer to the rate it had while all ran at once.
    alone_mbps : mapping
        Peer to the saturated rate of that pair alone. A peer of which it is not known (None or
        left out) is taken to be able to take more: probes are to be laid out so
        (:func:`probes.campaign.selection.cap_tasks`).
    measured_at_s : float

    Returns
    -------
    Estimate
        ``high`` is twice ``expected`` where the cap was not reached: a lower bound only.

    Raises
    ------
    InputError
        If there is no peer, or nothing got through to any.
    """
    total_gbps = sum(together_mbps.values()) / MBPS_PER_GBPS
    if total_gbps <= 0:
        raise InputError("cap probe", "moved nothing", value=dict(together_mbps))
    alone = [alone_mbps.get(peer) for peer in together_mbps]
    known = [mbps for mbps in alone if mbps is not None]
    reached = len(known) < len(alone) or total_gbps < HELD_BACK * sum(known) / MBPS_PER_GBPS
    peers = f"{len(together_mbps)} peers at once"
    return Estimate(
        total_gbps / (1 + CAP_NOISE),
        total_gbps,
        total_gbps * (1 + CAP_NOISE if reached else OPEN_ABOVE),
        "measured",
        measured_at_s,
        1,
        basis=peers if reached else f"{peers}, which could take no more: a lower bound",
    )
