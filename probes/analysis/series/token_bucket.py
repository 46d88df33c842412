"""Token buckets of burstable VMs: how deep they are and how fast they fill again.

Such a VM sends at its peak until its tokens are spent, then at the rate at which they come; what it
does not use fills the bucket again ("To Relay or Not to Relay for Inter-Cloud Transfers?", HotCloud
2018, leaves burstable VMs open; "Network throughput in Amazon EC2", Computer Networks 2015, sees
the spike at the start). With peak p, sustained rate r and depth B, a test that finds b tokens runs
at p for ``b / (p - r)``. After a pause t, ``b = min(B, r t)`` with the refill rate r. A limit that
applies to each transfer anew looks alike in one test; tests with short pauses tell the two apart.

The refill rate is read from what was sent: the bucket is empty when the rate falls, in one test and
in the next; if it was not full in between, what was sent meanwhile is what came in. So it matters
little how long a test took to start, and in which report the rate fell. Tokens found after a pause,
over the pause, would be off by a tenth for two seconds in which a queue drains or a test starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.evidence import require

Refilling: TypeAlias = Literal["bucket", "anew", "undecided"]
FEWEST_TESTS = 3
FULL = 0.9
"""Of the depth: a test that found more had a full bucket."""
PARTLY = 0.8
"""Of the depth: one that found less had waited too short, and tells how fast it fills."""
TOO_SHORT = 0.5
"""Of the time that filling at the sustained rate takes: who finds a full bucket sooner has one of
its own."""


class BurstTest(NamedTuple):
    """One test of a VM, at any destination.

    Attributes
    ----------
    begin_s, end_s : float
        Seconds since 1970.
    burst_s, burst_gb : float
        How long the higher rate lasted, and what was sent by then: a report in which the rate falls
        may count to either.
    peak_mbps, sustained_mbps : float
        Before and after.
    after_gb : float | None
        What was sent after it, to the end of the test; None where that is not known but by the
        sustained rate.
    """

    begin_s: float
    end_s: float
    burst_s: float
    burst_gb: float
    peak_mbps: float
    sustained_mbps: float
    after_gb: float | None = None

    @property
    def empty_s(self) -> float:
        """When its bucket was empty, in seconds since 1970."""
        return self.begin_s + self.burst_s

    @property
    def later_gb(self) -> float:
        """What was sent after that."""
        if self.after_gb is not None:
            return self.after_gb
        return (self.end_s - self.empty_s) * self.sustained_mbps / MBPS_PER_GBPS / BITS_PER_BYTE

    @property
    def tokens_gb(self) -> float:
        """What it could send beyond the sustained rate."""
        lasting_gb = self.burst_s * self.sustained_mbps / MBPS_PER_GBPS / BITS_PER_BYTE
        return max(0.0, self.burst_gb - lasting_gb)


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A VM's bucket.

    Attributes
    ----------
    tests : int
    peak_mbps, sustained_mbps : float
    depth_gb : float
        Tokens of a full bucket: what may be sent beyond the sustained rate.
    volume_gb : float
        What is sent at the peak until a full bucket is empty.
    refill_mbps : float | None
        Median of those measured between tests of which the later found it partly filled; None with
        fewer than two.
    refills_mbps : tuple of float
        Each of them.
    refilling : Refilling
        ``bucket`` where pauses were seen to fill it; ``anew`` where each test had the whole of it,
        whatever the pause; ``undecided`` where all pauses were long.
    """

    tests: int
    peak_mbps: float
    sustained_mbps: float
    depth_gb: float
    volume_gb: float
    refill_mbps: float | None
    refills_mbps: tuple[float, ...]
    refilling: Refilling


def token_bucket(tests: Sequence[BurstTest]) -> TokenBucket:
    """Return the bucket that tests of one VM show, each of which ran until it was empty.

    Parameters
    ----------
    tests : sequence of BurstTest
        In order of time.

    Raises
    ------
    TooFewError
        If there are fewer than three.
    """
    require("tests whose rate fell", len(tests), FEWEST_TESTS)
    peak, sustained = (
        median(values)
        for values in zip(*((t.peak_mbps, t.sustained_mbps) for t in tests), strict=True)
    )
    most = max(test.tokens_gb for test in tests)
    depth_gb = median(test.tokens_gb for test in tests if test.tokens_gb >= FULL * most)
    pauses_s = [max(1e-9, b.begin_s - a.end_s) for a, b in pairwise(tests)]
    tokens_gb = [test.tokens_gb for test in tests[1:]]
    to_mbps = MBPS_PER_GBPS * BITS_PER_BYTE
    partly = [
        (a.later_gb + b.burst_gb) * to_mbps / max(1e-9, b.empty_s - a.empty_s)
        for a, b in pairwise(tests)
        if b.tokens_gb < PARTLY * depth_gb
    ]
    fills_s = depth_gb * to_mbps / sustained if sustained > 0 else 0.0
    sooner = [
        gb >= FULL * depth_gb
        for gb, pause_s in zip(tokens_gb, pauses_s, strict=True)
        if pause_s < TOO_SHORT * fills_s
    ]
    refilling: Refilling = "undecided"
    if len(partly) >= 2:
        refilling = "bucket"
    elif len(sooner) >= 2 and all(sooner):
        refilling = "anew"
    return TokenBucket(
        len(tests),
        peak,
        sustained,
        depth_gb,
        depth_gb * peak / (peak - sustained),
        median(partly) if refilling == "bucket" else None,
        tuple(partly),
        refilling,
    )
