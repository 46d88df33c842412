"""VM caps from one-to-many and many-to-one probes, and which of these the peers held back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal, TypeAlias

from planner.network import Estimate, Site
from planner.units import MBPS_PER_GBPS
from probes.analysis.caps import HELD_BACK
from probes.estimation.bounds import from_values, no_surer_than
from probes.estimation.series import Samples, taken_with
from probes.samples import Sample

CAP_NOISE = 0.05
MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""

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
    at_least_gbps : dict
        Region to what its VM carried while its peers were the limit.
    """

    of: dict[str, Estimate] = field(default_factory=dict)
    at_least_gbps: dict[str, float] = field(default_factory=dict)


def measured_caps(sites: Mapping[str, Site], samples: Samples) -> tuple[MeasuredCaps, MeasuredCaps]:
    """Return the caps outwards and inwards.

    A VM that was loaded from or towards peers shows its cap only if they could have taken more
    together. What they can take is known from their own probes, of the other direction: where the
    sum came up to it, they were the limit, and the probe is a lower bound.
    """
    probes: dict[CapMetric, list[Sample]] = {
        metric: [
            sample
            for series in samples.of(metric).values()
            for sample in series.recent()
            if taken_with(sample, sites)
        ]
        for metric in OPPOSITE
    }
    seen = {metric: _medians(found, sites) for metric, found in probes.items()}
    found = {}
    for metric, opposite in OPPOSITE.items():
        reached: dict[str, list[tuple[float, float]]] = defaultdict(list)
        of_type: dict[str, list[tuple[float, float]]] = defaultdict(list)
        caps = MeasuredCaps()
        for sample in probes[metric]:
            gbps = sample.value / MBPS_PER_GBPS
            if _is_open(sample) or _peers_were_the_limit(sample, seen[opposite], sites, opposite):
                at_least = caps.at_least_gbps.get(sample.src, 0.0)
                caps.at_least_gbps[sample.src] = max(at_least, gbps)
            else:
                reached[sample.src].append((gbps, sample.measured_at_s))
                of_type[sites[sample.src].vm_type].append((gbps, sample.measured_at_s))
        for region, values in reached.items():
            caps.of[region] = from_values(values, CAP_NOISE, "measured")
        for vm_type, values in of_type.items():
            if vm_type:
                estimate = no_surer_than(from_values(values, CAP_NOISE, "inferred"), CAP_NOISE)
                caps.of[vm_type] = replace(estimate, samples=0, basis=f"caps of other {vm_type}")
        found[metric] = caps
    return found["egress_cap_mbps"], found["ingress_cap_mbps"]


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
    high_mbps = _detail(sample).get("high_mbps")
    return isinstance(high_mbps, int | float) and high_mbps > sample.value * MOST_OPEN_CAP


def _peers_were_the_limit(
    sample: Sample, seen: Mapping[str, float], sites: Mapping[str, Site], opposite: CapMetric
) -> bool:
    peers = _detail(sample).get("together_mbps")
    if not isinstance(peers, dict) or not peers or not all(peer in sites for peer in peers):
        return False
    figure = "ingress_gbps" if opposite == "ingress_cap_mbps" else "egress_gbps"
    could_take_mbps = 0.0
    for peer in peers:
        site = sites[peer]
        believed: Estimate = getattr(site, figure)
        known = seen.get(peer, seen.get(site.vm_type))
        could_take_mbps += believed.expected * MBPS_PER_GBPS if known is None else known
    return sample.value >= HELD_BACK * could_take_mbps


def _detail(sample: Sample) -> dict[str, object]:
    detail = json.loads(sample.detail) if sample.detail else {}
    return detail if isinstance(detail, dict) else {}
