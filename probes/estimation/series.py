"""The samples that estimates rest on, by metric and link."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from planner.model.catalogue import Catalogue
from planner.model.link import Site
from probes.samples import Sample

Pair: TypeAlias = tuple[str, str]
THROUGHPUT = {"per_flow_mbps", "aggregate_mbps", "egress_cap_mbps", "ingress_cap_mbps"}
# Older samples of a link no longer count once there are newer ones.
MEMORY_S = 30 * 86400.0
# Nor do more than these: their median is known well, and memory stays bounded by the links.
MOST_SAMPLES = 64
ALL_LOST_PCT = 100.0


@dataclass(slots=True)
class Series:
    """The newest samples of one metric on one link."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))

    def recent(self) -> list[Sample]:
        """Return those that are not much older than the newest."""
        newest = max(sample.measured_at_s for sample in self.samples)
        return [s for s in self.samples if s.measured_at_s >= newest - MEMORY_S]


class Samples:
    """All samples of a graph, and which VM types they were taken with.

    Parameters
    ----------
    beside : Samples, optional
        Others, whose VM types count, too.
    """

    def __init__(self, beside: Samples | None = None) -> None:
        self._series: dict[str, dict[Pair, Series]] = defaultdict(lambda: defaultdict(Series))
        self._vm_votes: dict[str, dict[str, int]] = (
            beside._vm_votes if beside else defaultdict(lambda: defaultdict(int))
        )

    def add(self, sample: Sample) -> None:
        """Take in a sample; those of one link and metric oldest first."""
        self._series[sample.metric][sample.src, sample.dst].samples.append(sample)
        if sample.metric in THROUGHPUT:
            self._vm_votes[sample.src][sample.src_vm] += 1
            self._vm_votes[sample.dst][sample.dst_vm] += 1

    def add_votes(self, src: str, dst: str, src_vm: str, dst_vm: str, count: int) -> None:
        """Count throughput samples that are no longer there for the VM types that they name."""
        self._vm_votes[src][src_vm] += count
        self._vm_votes[dst][dst_vm] += count

    def of(self, metric: str) -> Mapping[Pair, Series]:
        """Return the series of a metric by link."""
        return self._series[metric]

    def regions(self) -> set[str]:
        """Return the regions at either end of a sample."""
        return {end for pair in self.pairs() for end in pair}

    def pairs(self) -> set[Pair]:
        """Return the links of which there are samples."""
        return {pair for pairs in self._series.values() for pair in pairs}

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return max(
            (
                sample.measured_at_s
                for pairs in self._series.values()
                for series in pairs.values()
                for sample in series.samples
            ),
            default=0.0,
        )

    def vm_type(self, region: str, catalogue: Catalogue) -> str | None:
        """Return the VM type of the catalogue that most throughput samples of a region name."""
        provider = region.partition(":")[0]
        votes = self._vm_votes.get(region, {})
        known = {f"{provider}:{_plain(name)}": count for name, count in votes.items() if name}
        known = {name: n for name, n in known.items() if name in catalogue.vm_types}
        return max(known, key=lambda name: (known[name], name)) if known else None


def taken_with(sample: Sample, sites: Mapping[str, Site]) -> bool:
    """Whether a throughput sample was taken with the VM types assumed at both ends."""
    return _same_vm(sample.src_vm, sites[sample.src].vm_type) and _same_vm(
        sample.dst_vm, sites[sample.dst].vm_type
    )


def counted(metric: str, series: Series, sites: Mapping[str, Site]) -> list[Sample]:
    """Return the samples of one link that its own estimate of a metric rests on.

    Parameters
    ----------
    sites : mapping
        With the VM types assumed; a throughput sample that was taken with others is left out.
    """
    recent = series.recent()
    if metric == "loss_pct":
        # All lost is what a filter for ICMP looks like: it says nothing of the path's loss.
        return [s for s in recent if s.value < ALL_LOST_PCT]
    if metric not in THROUGHPUT:
        return recent
    found = [s for s in recent if taken_with(s, sites)]
    if metric != "aggregate_mbps" or not found:
        return found
    # Fewer connections may not have saturated the pair.
    most = max(s.connections or 0 for s in found)
    return [s for s in found if (s.connections or 0) == most]


def _plain(vm_name: str) -> str:
    """Return a VM type's name as catalogues write it (Azure prefixes its sizes)."""
    return vm_name.removeprefix("Standard_")


def _same_vm(sampled: str, assumed_id: str) -> bool:
    return not sampled or _plain(sampled) == assumed_id.partition(":")[2]
