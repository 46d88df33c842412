"""Links whose rate falls after a time or a volume: what lasts, and what goes before.

Tests that end before the fall say nothing of what lasts: from the USA to
Europe, Azure's rate fell to half after 8 to 10 GB, or some 100 s, in three of four tests (Computer
Networks 2016), and short tests find the first rate alone. Where long tests show the fall, these
alone make the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from planner.model.estimate import CutCause, RateCut
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.steady_state import changes_in, drop_cause
from probes.samples import Sample

FALLS = ("drop", "burst")
LONG_ENOUGH = 1.2
"""Times the time after which a rate falls: a test that lasts longer would have seen it."""
MOST_CONTRADICTING = 0.5


def rate_cut(samples: Sequence[Sample]) -> RateCut | None:
    """Return how the rate of a link falls in its tests; None if it does not in most long ones.

    Parameters
    ----------
    samples : sequence of Sample
        With the same number of connections.
    """
    falls = [fall for sample in samples if (fall := fall_of(sample))]
    if not falls:
        return None
    after_s, after_gb, before_mbps, after_mbps = (
        median(fall[name] for fall in falls)
        for name in ("at_s", "at_gb", "before_mbps", "after_mbps")
    )
    long = [
        sample
        for sample in samples
        if not fall_of(sample) and (sample.duration_s or 0.0) >= LONG_ENOUGH * after_s
    ]
    held = [sample for sample in long if sample.value**2 > before_mbps * after_mbps]
    if len(held) > MOST_CONTRADICTING * (len(held) + len(falls)):
        return None
    cause: CutCause = drop_cause([(fall["at_s"], fall["at_gb"]) for fall in falls])
    before_gbps, after_gbps = before_mbps / MBPS_PER_GBPS, after_mbps / MBPS_PER_GBPS
    if all(fall["pattern"] == "burst" for fall in falls):
        cause = "burst"
    return RateCut(after_s, after_gb, before_gbps, after_gbps, cause)


def lasting(samples: Sequence[Sample], cut: RateCut) -> list[Sample]:
    """Return the tests that show what lasts, not those that ended before the fall."""
    between_mbps = MBPS_PER_GBPS * (cut.before_gbps * cut.after_gbps) ** 0.5
    return [
        sample
        for sample in samples
        if fall_of(sample)
        or sample.value <= between_mbps
        or (sample.duration_s or 0.0) >= LONG_ENOUGH * cut.after_s
    ]


def fall_of(sample: Sample) -> dict[str, Any] | None:
    """Return the one change of a test, if it is a fall."""
    if '"findings"' not in sample.detail:
        return None
    changes = [
        change for change in changes_in(sample.read_detail()) if change["pattern"] != "slow-start"
    ]
    if len(changes) != 1 or changes[0]["pattern"] not in FALLS:
        return None
    (fall,) = changes
    return fall if 0 < fall["after_mbps"] < fall["before_mbps"] and fall["at_gb"] > 0 else None
