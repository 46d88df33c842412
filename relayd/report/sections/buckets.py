"""Token buckets of burstable VMs, from tests that ran until they were empty."""

from __future__ import annotations

from collections import defaultdict

from probes.analysis.evidence import TooFewError
from probes.analysis.series.token_bucket import FEWEST_TESTS, BurstTest, TokenBucket, token_bucket
from probes.analysis.steady_state import changes_in
from probes.samples import Metric
from relayd.report.data import ReportData
from relayd.report.document import Section, Table
from relayd.store.samples.columns import DetailedTest

_METRICS: tuple[Metric, ...] = ("per_flow_mbps", "aggregate_mbps")
_FALLS = ("burst", "drop")
_WORDS = {
    "bucket": "a bucket that pauses fill",
    "anew": "a limit of each transfer, whatever the pause",
    "undecided": "undecided: no short pauses",
}


def buckets(data: ReportData) -> Section:
    """Answer what VMs may send before their rate falls, and how fast they get it back."""
    section = Section(
        "buckets",
        "Do VMs burst, and when again?",
        "Tests of one VM, at any destination, whose rate fell: tokens are what went beyond the "
        "lasting rate; tests after short pauses find less, which is how fast the bucket fills "
        "(burstable VMs: HotCloud 2018; the spike at the start: Computer Networks 2015).",
    )
    by_vm: dict[tuple[str, str], list[BurstTest]] = defaultdict(list)
    for metric in _METRICS:
        for test in data.steady_tests(metric):
            section.samples += 1
            if (burst := _burst(test)) is not None:
                vm = (test.src + test.setup.src_zone, test.setup.src_vm or "?")
                by_vm[vm].append(burst)
    found: list[tuple[str, str, TokenBucket]] = []
    for (place, vm_type), tests in sorted(by_vm.items()):
        try:
            found.append((place, vm_type, token_bucket(sorted(tests))))
        except TooFewError:
            continue
    section.concluded = bool(found)
    if not found:
        section.statements.append(
            f"No conclusion. The rate of no VM fell in {FEWEST_TESTS} tests: long ones, such as "
            "`relayd probe --full-time --flow-time 3m`, see it."
        )
        return section
    section.figures["buckets"] = [
        {
            "vm": place,
            "vm_type": vm_type,
            "tests": bucket.tests,
            "peak_mbps": bucket.peak_mbps,
            "sustained_mbps": bucket.sustained_mbps,
            "depth_gb": bucket.depth_gb,
            "volume_gb": bucket.volume_gb,
            "refill_mbps": bucket.refill_mbps,
            "refills_mbps": list(bucket.refills_mbps),
            "refilling": bucket.refilling,
        }
        for place, vm_type, bucket in found
    ]
    for place, vm_type, bucket in found:
        refill = ""
        if bucket.refill_mbps is not None:
            hours = bucket.depth_gb * 8e3 / bucket.refill_mbps / 3600
            refill = f" It fills at {bucket.refill_mbps:,.0f} Mbit/s, in {hours:.2g} h when idle."
        section.statements.append(
            f"{vm_type} in {place} sends {bucket.peak_mbps:,.0f} Mbit/s for the first "
            f"{bucket.volume_gb:.3g} GB, then {bucket.sustained_mbps:,.0f}: "
            f"{_WORDS[bucket.refilling]}.{refill}"
        )
    section.tables.append(
        Table(
            "Bursts of VMs",
            ("VM", "type", "tests", "Mbit/s first", "then", "depth GB", "refill Mbit/s"),
            tuple(
                (
                    place,
                    vm_type,
                    str(bucket.tests),
                    f"{bucket.peak_mbps:,.0f}",
                    f"{bucket.sustained_mbps:,.0f}",
                    f"{bucket.depth_gb:.3g}",
                    "not seen" if bucket.refill_mbps is None else f"{bucket.refill_mbps:,.0f}",
                )
                for place, vm_type, bucket in found
            ),
        )
    )
    return section


def _burst(test: DetailedTest) -> BurstTest | None:
    """Return the fall of a test whose rate fell once for good."""
    falls = [change for change in changes_in(test.detail) if change["pattern"] in _FALLS]
    if len(falls) != 1 or falls[0]["after_mbps"] >= falls[0]["before_mbps"]:
        return None
    (fall,) = falls
    return BurstTest(
        test.at_s,
        test.at_s + fall["at_s"] + test.duration_s,
        fall["at_s"],
        fall["at_gb"],
        fall["before_mbps"],
        fall["after_mbps"],
        fall["after_gb"],
    )
