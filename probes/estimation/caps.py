"""VM caps from one-to-many and many-to-one probes, and which of these the peers held back.

Of burstable VMs, what lasts: tests out of one, towards any destination, draw on one token bucket.
Short ones find its peak, which plans of long transfers can't have. Where tests that ran until the
bucket was empty show one (:mod:`probes.analysis.series.token_bucket`), the VM's cap is the rate
after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal, TypeAlias

from planner.model.estimate import Estimate, Figures, RateCut
from planner.model.link import Site
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.caps import HELD_BACK, OPEN_ABOVE
from probes.analysis.series.late_cuts import fall_of
from probes.analysis.series.token_bucket import FEWEST_TESTS, BurstTest, TokenBucket, token_bucket
from probes.estimation.aggregates import AggregateTests
from probes.estimation.agreement import figures_with
from probes.estimation.arrays.groups import Floats
from probes.estimation.bounds import Value, from_values, no_surer_than, origin_of_samples
from probes.estimation.series import CAP_NOISE, LinkSamples
from probes.medians import median
from probes.samples import Sample

MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""
FEWEST_DESTINATIONS = 2
"""With one, it may be the link that has a bucket."""

CapMetric: TypeAlias = Literal["egress_cap_mbps", "ingress_cap_mbps"]
OPPOSITE: dict[CapMetric, CapMetric] = {
    "egress_cap_mbps": "ingress_cap_mbps",
    "ingress_cap_mbps": "egress_cap_mbps",
}


@dataclass
class MeasuredCaps:
    """Caps of one direction, in Gbit/s.

    Attributes
    ----------
    of : dict
        Region, and VM type for regions without one, to the cap that was reached.
    at_least : dict
        Region to the most that its VM carried while its peers were the limit.
    """

    of: dict[str, Estimate] = field(default_factory=dict)
    at_least: dict[str, Estimate] = field(default_factory=dict)


def measured_caps(
    sites: Mapping[str, Site], samples: LinkSamples, rtts_ms: Floats
) -> tuple[MeasuredCaps, MeasuredCaps]:
    """Return the egress and the ingress caps.

    A VM that was loaded from or towards peers shows its cap only if the links could have carried
    more together. A link carries what the peer's own probe of the other direction showed, and no
    more than its connections' windows over its round-trip time. Where the sum came up to that, the
    peers were the limit, and the probe is a lower bound.

    Parameters
    ----------
    sites : mapping
        Of n regions, with windows as flows have shown them.
    samples : LinkSamples
    rtts_ms : array, shape (n, n)
    """
    probes: dict[CapMetric, list[Sample]] = {}
    figures: dict[CapMetric, dict[str, Figures | None]] = {}
    for metric in OPPOSITE:
        counted = samples.counted(metric, rtts_ms)
        probes[metric] = samples.samples(counted.rows)
        figures[metric] = {
            samples.names[region]: figures_with(None, samples.marks[mark])
            for region, mark in zip(counted.src.tolist(), counted.marks.tolist(), strict=True)
        }
    index = {name: number for number, name in enumerate(samples.names)}

    def rtt_ms(src: str, dst: str) -> float:
        return float(rtts_ms[index[src], index[dst]])  # NaN where it is not known

    seen = {metric: _medians(found, sites) for metric, found in probes.items()}
    found = {}
    for metric, opposite in OPPOSITE.items():
        reached: dict[str, list[Value]] = defaultdict(list)
        of_type: dict[str, list[Value]] = defaultdict(list)
        held_back: dict[str, list[Value]] = defaultdict(list)
        caps = MeasuredCaps()
        for sample in probes[metric]:
            gbps = sample.value / MBPS_PER_GBPS
            could_gbps = _peers_could_gbps(sample, metric, seen[opposite], sites, rtt_ms)
            if _is_open(sample) or gbps >= HELD_BACK * could_gbps:
                held_back[sample.src].append((gbps, sample))
            else:
                reached[sample.src].append((gbps, sample))
                of_type[sites[sample.src].vm_type].append((gbps, sample))
        for region, values in held_back.items():
            caps.at_least[region] = _lower_bound(values, figures[metric][region])
        for region, values in reached.items():
            caps.of[region] = from_values(
                values, CAP_NOISE, method="cap-probe", figures=figures[metric][region]
            )
        others = {
            region for region, of_vm in figures[metric].items() if of_vm and of_vm.reported_by
        }
        for vm_type, values in of_type.items():
            values = [value for value in values if value[1].src not in others] or values
            if vm_type:
                estimate = from_values(
                    values,
                    CAP_NOISE,
                    "inferred",
                    "caps-of-vm-type",
                    figures=Figures(vm_type=vm_type),
                )
                caps.of[vm_type] = no_surer_than(estimate, CAP_NOISE)
        found[metric] = caps
    return found["egress_cap_mbps"], found["ingress_cap_mbps"]


def _lower_bound(values: list[Value], figures: Figures | None) -> Estimate:
    gbps = max(gbps for gbps, _ in values)
    samples = [sample for _, sample in values]
    origin = origin_of_samples(samples, "inferred", "cap-probe-lower-bound", figures)
    return Estimate(gbps / (1 + CAP_NOISE), gbps, gbps * OPEN_ABOVE, origin)


def _medians(found: list[Sample], sites: Mapping[str, Site]) -> dict[str, float]:
    """Return what VMs carried, in Mbit/s: by region, and by VM type for regions without a probe."""
    values: dict[str, list[float]] = defaultdict(list)
    for sample in found:
        values[sample.src].append(sample.value)
        if vm_type := sites[sample.src].vm_type:
            values[vm_type].append(sample.value)
    return {name: median(of_name) for name, of_name in values.items()}


def _is_open(sample: Sample) -> bool:
    """Whether the probe itself says that its VM was not fully loaded."""
    high_mbps = sample.read_detail().get("high_mbps")
    return isinstance(high_mbps, int | float) and high_mbps > sample.value * MOST_OPEN_CAP


def _peers_could_gbps(
    sample: Sample,
    metric: CapMetric,
    seen_mbps: Mapping[str, float],
    sites: Mapping[str, Site],
    rtt_ms: Callable[[str, str], float],
) -> float:
    """Return what the links of a probe could carry together; infinity where that is not known."""
    peers = sample.read_detail().get("together_mbps")
    if not isinstance(peers, dict) or not peers or not all(peer in sites for peer in peers):
        return inf
    outward = metric == "egress_cap_mbps"
    could_gbps = 0.0
    for peer in peers:
        site = sites[peer]
        believed = site.ingress_gbps if outward else site.egress_gbps
        known_mbps = seen_mbps.get(peer, seen_mbps.get(site.vm_type))
        peer_gbps = believed.expected if known_mbps is None else known_mbps / MBPS_PER_GBPS
        pair = (sample.src, peer) if outward else (peer, sample.src)
        if sample.connections and (apart_ms := rtt_ms(*pair)) > 0:
            window_mb = sites[pair[1]].window_mb.expected
            flow_gbps = BITS_PER_BYTE * window_mb / apart_ms  # MB/ms is GB/s
            peer_gbps = min(peer_gbps, sample.connections / len(peers) * flow_gbps)
        could_gbps += peer_gbps
    return could_gbps


def with_buckets(sites: Mapping[str, Site], tests: AggregateTests) -> dict[str, Site]:
    """Return sites with the caps that last, where VMs have buckets that pauses fill."""
    fallen: dict[str, list[Sample]] = defaultdict(list)
    for sample in tests.fallen:
        fallen[sample.src].append(sample)
    found = dict(sites)
    for region, samples in fallen.items():
        if len({sample.dst for sample in samples}) < FEWEST_DESTINATIONS:
            continue
        bursts = [burst for sample in samples if (burst := burst_of(sample))]
        if len(bursts) < FEWEST_TESTS:
            continue
        bucket = token_bucket(sorted(bursts))
        site = found[region]
        lasts_gbps = bucket.sustained_mbps / MBPS_PER_GBPS
        if bucket.refilling == "bucket" and lasts_gbps < site.egress_gbps.expected:
            found[region] = replace(site, egress_gbps=_cap(bucket, samples))
    return found


def burst_of(sample: Sample) -> BurstTest | None:
    """Return a test as one of a bucket; None unless its rate fell once, for good."""
    fall = fall_of(sample)
    if fall is None:
        return None
    end_s = sample.measured_at_s + fall["at_s"] + (sample.duration_s or 0.0)
    names = ("at_s", "at_gb", "before_mbps", "after_mbps", "after_gb")
    return BurstTest(sample.measured_at_s, end_s, *(fall[name] for name in names))


def _cap(bucket: TokenBucket, samples: Sequence[Sample]) -> Estimate:
    peak_gbps, lasts_gbps = bucket.peak_mbps / MBPS_PER_GBPS, bucket.sustained_mbps / MBPS_PER_GBPS
    refill_mbps = bucket.refill_mbps
    cut = RateCut(
        bucket.volume_gb * BITS_PER_BYTE / peak_gbps,
        bucket.volume_gb,
        peak_gbps,
        lasts_gbps,
        "burst",
        None if refill_mbps is None else refill_mbps / MBPS_PER_GBPS,
    )
    values = [
        (fall["after_mbps"] / MBPS_PER_GBPS, sample)
        for sample in samples
        if (fall := fall_of(sample))
    ]
    return from_values(values, CAP_NOISE, method="token-bucket", figures=Figures(rate_cut=cut))
