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
from statistics import median
from typing import Literal, TypeAlias

import numpy as np

from planner.model.estimate import Estimate, Figures, Kind, Method, RateCut
from planner.model.link import Site
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.caps import HELD_BACK, OPEN_ABOVE
from probes.analysis.series.late_cuts import fall_of
from probes.analysis.series.token_bucket import FEWEST_TESTS, BurstTest, TokenBucket, token_bucket
from probes.estimation.agreement import figures_with
from probes.estimation.groups import Bools, Floats, Ints, bounds_of
from probes.estimation.link_samples import CAP_NOISE, CountedSamples, LinkSamples, own_marks
from probes.estimation.origins import no_surer_than, of_rows
from probes.samples import Rows, Sample, Samples

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
    index = {name: number for number, name in enumerate(samples.names)}

    def rtt_ms(src: str, dst: str) -> float:
        return float(rtts_ms[index[src], index[dst]])  # NaN where it is not known

    counted = {metric: samples.counted(metric, rtts_ms) for metric in OPPOSITE}
    probes = {metric: list(samples.samples[found.places]) for metric, found in counted.items()}
    seen = {metric: _medians(found, sites) for metric, found in probes.items()}

    def is_held_back(probe: Sample, metric: CapMetric) -> bool:
        could_gbps = _peers_could_gbps(probe, metric, seen[OPPOSITE[metric]], sites, rtt_ms)
        return _is_open(probe) or probe.value / MBPS_PER_GBPS >= HELD_BACK * could_gbps

    def of_direction(metric: CapMetric) -> MeasuredCaps:
        held_back = np.array([is_held_back(probe, metric) for probe in probes[metric]], np.bool_)
        return _of_direction(counted[metric], samples, sites, held_back)

    return of_direction("egress_cap_mbps"), of_direction("ingress_cap_mbps")


def _of_direction(
    counted: CountedSamples, samples: LinkSamples, sites: Mapping[str, Site], held_back: Bools
) -> MeasuredCaps:
    """Return the caps that probes of one direction show, and those that peers held back."""
    rows, caps = counted.rows, MeasuredCaps()
    of_type: dict[str, list[Ints]] = defaultdict(list)
    own_of_type: dict[str, list[Ints]] = defaultdict(list)
    own = own_marks(samples.marks)
    ends, begins = counted.src.tolist(), counted.groups.begins.tolist()
    for number, (region, mark) in enumerate(zip(ends, counted.marks.tolist(), strict=True)):
        name, figures = samples.names[region], figures_with(None, samples.marks[mark])
        places = np.arange(*begins[number : number + 2])
        held, reached = places[held_back[places]], places[~held_back[places]]
        if len(held):
            gbps = float(rows["value"][held].max()) / MBPS_PER_GBPS
            origin = of_rows(rows[held], "inferred", "cap-probe-lower-bound", figures)
            bounds = gbps / (1 + CAP_NOISE), gbps, gbps * OPEN_ABOVE
            caps.at_least[name] = Estimate(*bounds, origin)
        if len(reached):
            caps.of[name] = _cap(rows[reached], "measured", "cap-probe", figures)
            of_type[sites[name].vm_type].append(reached)
            if own[mark]:
                own_of_type[sites[name].vm_type].append(reached)
    for vm_type, found in of_type.items():
        if vm_type:
            places = np.concatenate(own_of_type.get(vm_type, found))
            figures = Figures(vm_type=vm_type)
            cap = _cap(rows[places], "inferred", "caps-of-vm-type", figures)
            caps.of[vm_type] = no_surer_than(cap, CAP_NOISE)
    return caps


def _cap(rows: Rows, kind: Kind, method: Method, figures: Figures | None) -> Estimate:
    gbps = rows["value"] / MBPS_PER_GBPS
    return Estimate(*bounds_of(gbps.tolist(), CAP_NOISE), of_rows(rows, kind, method, figures))


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


def with_buckets(sites: Mapping[str, Site], fallen: Samples) -> dict[str, Site]:
    """Return sites with the caps that last, where VMs have buckets that pauses fill.

    Parameters
    ----------
    sites : mapping
    fallen : Samples
        Tests whose rate fell, of links whose rate falls.
    """
    found, listed = dict(sites), list(fallen)
    for region in dict.fromkeys(sample.src for sample in listed):
        places = [place for place, sample in enumerate(listed) if sample.src == region]
        if len({listed[place].dst for place in places}) < FEWEST_DESTINATIONS:
            continue
        bursts = [burst for place in places if (burst := burst_of(listed[place]))]
        if len(bursts) < FEWEST_TESTS:
            continue
        bucket = token_bucket(sorted(bursts))
        site = found[region]
        lasts_gbps = bucket.sustained_mbps / MBPS_PER_GBPS
        if bucket.refilling == "bucket" and lasts_gbps < site.egress_gbps.expected:
            cap = _bucket_cap(bucket, bursts, fallen.rows[places])
            found[region] = replace(site, egress_gbps=cap)
    return found


def burst_of(sample: Sample) -> BurstTest | None:
    """Return a test as one of a bucket; None unless its rate fell once, for good."""
    fall = fall_of(sample)
    if fall is None:
        return None
    end_s = sample.measured_at_s + fall["at_s"] + (sample.duration_s or 0.0)
    names = ("at_s", "at_gb", "before_mbps", "after_mbps", "after_gb")
    return BurstTest(sample.measured_at_s, end_s, *(fall[name] for name in names))


def _bucket_cap(bucket: TokenBucket, bursts: Sequence[BurstTest], rows: Rows) -> Estimate:
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
    after_gbps = [burst.sustained_mbps / MBPS_PER_GBPS for burst in bursts]
    origin = of_rows(rows, "measured", "token-bucket", Figures(rate_cut=cut))
    return Estimate(*bounds_of(after_gbps, CAP_NOISE), origin)
