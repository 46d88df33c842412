"""Rates that fall after a time or a volume: lasting rates, and token buckets as the cause.

Tests that end before the fall do not show the lasting rate: from the USA to Europe, Azure's rate
fell to half after 8 to 10 GB, or some 100 s, in three of four tests (Computer Networks 2016), and
short tests find the first rate alone. Where long tests show the fall, they alone make the estimate.

Burstable VMs send at their peak until their tokens are spent, then at the rate at which these come;
what they do not use fills the bucket again ("To Relay or Not to Relay for Inter-Cloud Transfers?",
HotCloud 2018, leaves burstable VMs open; "Network throughput in Amazon EC2", Computer Networks
2015, sees the spike at the start). With peak p, sustained rate r and depth B, a test that finds b
tokens runs at p for ``b / (p - r)``. After a pause t, ``b = min(B, r t)`` with the refill rate r. A
limit that each transfer has of its own looks alike in one test; tests with short pauses tell the
two apart.

The refill rate is read from the volume sent: the bucket is empty when the rate falls, in one test
and in the next; if it was not full in between, that volume came in meanwhile. So it matters
little how long a test took to start, and in which report the rate fell. Tokens found after a pause,
over the pause, would be off by a tenth for two seconds in which a queue drains or a test starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from planner.model.estimate import CutCause, RateCut
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.evidence import require
from probes.analysis.steady_state import changes_in
from probes.samples import Sample

LONG_ENOUGH = 1.2
"""Times the time after which a rate falls: a test that lasts longer would have seen it."""
MOST_CONTRADICTING = 0.5
Refilling: TypeAlias = Literal["bucket", "per-test", "undecided"]
FEWEST_TESTS = 3
FULL = 0.9
"""Of the depth: a test that found more had a full bucket."""
PARTLY = 0.8
"""Of the depth: one that found less had waited too short, and tells how fast it fills."""
TOO_SHORT = 0.5
"""Of the time that filling at the sustained rate takes: who finds a full bucket sooner has one of
its own."""
MBPS_PER_GB_S = MBPS_PER_GBPS * BITS_PER_BYTE


def fall_of(sample: Sample) -> dict[str, Any] | None:
    """Return a test's only change of rate, if it is a fall."""
    if '"findings"' not in sample.detail:
        return None
    transient = ("slow-start", "stall")
    changes = [one for one in changes_in(sample.read_detail()) if one["pattern"] not in transient]
    if len(changes) != 1 or changes[0]["pattern"] not in ("drop", "burst"):
        return None
    (fall,) = changes
    return fall if 0 < fall["after_mbps"] < fall["before_mbps"] and fall["at_gb"] > 0 else None


def drop_cause(drops: Sequence[tuple[float, float]]) -> Literal["time", "volume", "undecided"]:
    """Find the cause of a path's drops, from (seconds, GB) of each in several tests.

    The figure that varies clearly less from test to test (half as much, relative to its median)
    is the cause; this takes three tests or more, at different rates.
    """
    if len(drops) < 3:
        return "undecided"
    middle = np.median(drops, axis=0)
    off = np.median(np.abs(drops - middle), axis=0)
    spread_s, spread_gb = np.where(middle > 0, off / np.where(middle > 0, middle, 1), 0.0)
    if spread_s <= spread_gb / 2:
        return "time"
    return "volume" if spread_gb <= spread_s / 2 else "undecided"


def rate_cut(samples: Sequence[Sample]) -> RateCut | None:
    """Return the usual fall of a link's rate; None if most long tests show no fall.

    Tests have the same number of connections.
    """
    falls = [fall for sample in samples if (fall := fall_of(sample))]
    if not falls:
        return None
    after_s, after_gb, before_mbps, after_mbps = (
        median(fall[name] for fall in falls)
        for name in ("at_s", "at_gb", "before_mbps", "after_mbps")
    )
    held = sum(
        not fall_of(sample)
        and (sample.duration_s or 0.0) >= LONG_ENOUGH * after_s
        and sample.value**2 > before_mbps * after_mbps
        for sample in samples
    )
    if held > MOST_CONTRADICTING * (held + len(falls)):
        return None
    cause: CutCause = drop_cause([(fall["at_s"], fall["at_gb"]) for fall in falls])
    if all(fall["pattern"] == "burst" for fall in falls):
        cause = "burst"
    rates = before_mbps / MBPS_PER_GBPS, after_mbps / MBPS_PER_GBPS
    return RateCut(after_s, after_gb, *rates, cause)


def shows_lasting(sample: Sample, cut: RateCut) -> bool:
    """Tell whether a test shows the lasting rate, rather than having ended before the fall."""
    between_mbps = MBPS_PER_GBPS * (cut.before_gbps * cut.after_gbps) ** 0.5
    is_long = (sample.duration_s or 0.0) >= LONG_ENOUGH * cut.after_s
    return is_long or sample.value <= between_mbps or fall_of(sample) is not None


class BurstTest(NamedTuple):
    """One test of a VM, at any destination."""

    begin_s: float  # seconds since 1970
    end_s: float
    # Duration of the higher rate, and volume sent by then: a report in which the rate falls may
    # count to either
    burst_s: float
    burst_gb: float
    peak_mbps: float  # before
    sustained_mbps: float  # after
    # Volume sent after it until the end of the test; None where only the sustained rate tells
    after_gb: float | None = None

    @property
    def empty_s(self) -> float:
        """Time at which its bucket was empty, in seconds since 1970."""
        return self.begin_s + self.burst_s

    @property
    def later_gb(self) -> float:
        """Volume sent after that."""
        if self.after_gb is not None:
            return self.after_gb
        return (self.end_s - self.empty_s) * self.sustained_mbps / MBPS_PER_GB_S

    @property
    def tokens_gb(self) -> float:
        """Volume sent beyond the sustained rate."""
        return max(0.0, self.burst_gb - self.burst_s * self.sustained_mbps / MBPS_PER_GB_S)


def burst_of(sample: Sample) -> BurstTest | None:
    """Return a test as one of a bucket; None unless its rate fell once, for good."""
    fall = fall_of(sample)
    if fall is None:
        return None
    end_s = sample.measured_at_s + fall["at_s"] + (sample.duration_s or 0.0)
    names = ("at_s", "at_gb", "before_mbps", "after_mbps", "after_gb")
    return BurstTest(sample.measured_at_s, end_s, *(fall[name] for name in names))


class TokenBucket(NamedTuple):
    """A VM's bucket."""

    tests: int
    peak_mbps: float
    sustained_mbps: float
    # Tokens of a full bucket: the volume that may be sent beyond the sustained rate
    depth_gb: float
    volume_gb: float  # volume sent at the peak until a full bucket is empty
    # Median of those measured between tests of which the later found it partly filled; None with
    # fewer than two
    refill_mbps: float | None
    refills_mbps: list[float]  # each of them
    # ``bucket`` where pauses were seen to fill it; ``per-test`` where each test had the whole of
    # it, whatever the pause; ``undecided`` where all pauses were long
    refilling: Refilling


def token_bucket(tests: Sequence[BurstTest]) -> TokenBucket:
    """Estimate a VM's bucket from its tests in order of time, each of which emptied the bucket.

    Three are needed.
    """
    require("tests whose rate fell", len(tests), FEWEST_TESTS)
    peak = median(test.peak_mbps for test in tests)
    sustained = median(test.sustained_mbps for test in tests)
    most = max(test.tokens_gb for test in tests)
    depth_gb = median(test.tokens_gb for test in tests if test.tokens_gb >= FULL * most)
    partly = [
        (a.later_gb + b.burst_gb) * MBPS_PER_GB_S / max(1e-9, b.empty_s - a.empty_s)
        for a, b in pairwise(tests)
        if b.tokens_gb < PARTLY * depth_gb
    ]
    fills_s = depth_gb * MBPS_PER_GB_S / sustained if sustained > 0 else 0.0
    sooner = [
        b.tokens_gb >= FULL * depth_gb
        for a, b in pairwise(tests)
        if max(1e-9, b.begin_s - a.end_s) < TOO_SHORT * fills_s
    ]
    refilling: Refilling = "undecided"
    if len(partly) >= 2:
        refilling = "bucket"
    elif len(sooner) >= 2 and all(sooner):
        refilling = "per-test"
    refill = median(partly) if refilling == "bucket" else None
    volume_gb = depth_gb * peak / (peak - sustained)
    found = len(tests), peak, sustained, depth_gb, volume_gb
    return TokenBucket(*found, refill, partly, refilling)
