"""The samples that estimates rest on, by metric and link."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, log1p
from typing import TypeAlias

from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate
from planner.model.link import Site
from planner.model.throughput import (
    UNKNOWN_NOISE,
    bundle_share_of_steady,
    flow_share_of_steady,
    law_of,
    window_from_flow_mb,
)
from planner.single_flow.spreads import REPEAT_ERROR
from probes.estimation.agreement import Agreed, FromSource, agreed, reference_of
from probes.samples import OWN, Metric, Sample

Pair: TypeAlias = tuple[str, str]
THROUGHPUT = {"per_flow_mbps", "aggregate_mbps", "egress_cap_mbps", "ingress_cap_mbps"}
# Older samples of a link no longer count once there are newer ones.
MEMORY_S = 30 * 86400.0
# Nor do more than these: their median is known well, and memory stays bounded by the links.
MOST_SAMPLES = 64
ALL_LOST_PCT = 100.0
RTT_NOISE = 0.02
"""Relative error of a median of pings, seen when repeating it, 90th percentile."""
CAP_NOISE = 0.05
LEAST_VALUE = 1e-3
"""Of what has a logarithm: nothing got through."""
_NOISES: dict[Metric, float] = {
    "rtt_ms": RTT_NOISE,
    "per_flow_mbps": REPEAT_ERROR,
    "egress_cap_mbps": CAP_NOISE,
    "ingress_cap_mbps": CAP_NOISE,
    "loss_pct": 1.0,  # of the logarithm of one more percent
}


@dataclass(slots=True)
class Series:
    """The newest samples of one metric on one link, by who reported them.

    Attributes
    ----------
    by_source : dict
        The oldest first.
    first_ids : dict
        Source to the order of arrival of the first of these samples.
    """

    by_source: dict[str, deque[Sample]] = field(default_factory=dict)
    first_ids: dict[str, int] = field(default_factory=dict)
    _agreed: dict[Pair, Agreed] = field(default_factory=dict)

    def add(self, samples: Iterable[Sample], source: str = OWN, first_id: int = 0) -> None:
        """Take in samples; those of one source oldest first."""
        if source not in self.by_source:
            self.by_source[source] = deque(maxlen=MOST_SAMPLES)
            self.first_ids[source] = first_id
        self.by_source[source].extend(samples)
        self._agreed.clear()

    def recent(self) -> list[FromSource]:
        """Return those that are not much older than the newest, of each source that has some."""
        newest = max(sample.measured_at_s for of in self.by_source.values() for sample in of)
        found = []
        for source, samples in self.by_source.items():
            kept = [s for s in samples if s.measured_at_s >= newest - MEMORY_S]
            if kept:
                found.append(FromSource(source, self.first_ids[source], kept))
        return found


class Samples:
    """All samples of a graph, and which VM types they were taken with.

    Parameters
    ----------
    beside : Samples, optional
        Others, whose VM types and sources count, too.
    """

    def __init__(self, beside: Samples | None = None) -> None:
        self._series: dict[Metric, dict[Pair, Series]] = defaultdict(lambda: defaultdict(Series))
        self._sources: set[str] = beside._sources if beside else set()
        # Region to who reported to VM type to how many samples named it.
        self._vm_votes: dict[str, dict[str, dict[str, int]]] = (
            beside._vm_votes
            if beside
            else defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
        )

    def add(self, samples: Sequence[Sample], source: str = OWN, first_id: int = 0) -> None:
        """Take in samples of one link, metric and source, oldest first."""
        src, dst, metric = samples[0][:3]
        self._series[metric][src, dst].add(samples, source, first_id)
        self._sources.add(source)
        if metric in THROUGHPUT:
            votes = Counter((sample.src_vm, sample.dst_vm) for sample in samples)
            for vms, count in votes.items():
                self.add_votes(src, dst, *vms, count, source)

    def add_votes(
        self, src: str, dst: str, src_vm: str, dst_vm: str, count: int, source: str = OWN
    ) -> None:
        """Count throughput samples for the VM types that they name."""
        self._vm_votes[src][source][src_vm] += count
        self._vm_votes[dst][source][dst_vm] += count

    def without(self, pairs: Collection[Pair]) -> Samples:
        """Return all but the samples of some links; VM types that these name still count."""
        found = Samples(self)
        for metric, of_metric in self._series.items():
            kept = {pair: series for pair, series in of_metric.items() if pair not in pairs}
            found._series[metric].update(kept)
        return found

    def reporters(self) -> dict[Pair, set[str]]:
        """Return who reported each link."""
        found: dict[Pair, set[str]] = defaultdict(set)
        for _, pair, series in self:
            found[pair].update(series.by_source)
        return found

    @property
    def is_mixed(self) -> bool:
        """Whether several sources have reported anything."""
        return len(self._sources) > 1

    def __iter__(self) -> Iterator[tuple[Metric, Pair, Series]]:
        """Iterate over metrics and links."""
        for metric, of_metric in self._series.items():
            for pair, series in of_metric.items():
                yield metric, pair, series

    def of(self, metric: Metric) -> Mapping[Pair, Series]:
        """Return the series of a metric by link."""
        return self._series[metric]

    def regions(self) -> set[str]:
        """Return the regions at either end of a sample."""
        return {end for pair in self.pairs() for end in pair}

    def pairs(self) -> set[Pair]:
        """Return the links of which there are samples."""
        return {pair for _, pair, _ in self}

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return max(
            (
                sample.measured_at_s
                for _, _, series in self
                for samples in series.by_source.values()
                for sample in samples
            ),
            default=0.0,
        )

    def vm_type(self, region: str, catalogue: Catalogue) -> str | None:
        """Return the VM type of the catalogue that most throughput samples of a region name.

        Those of the own prober, where it has measured there; else each source has one vote.
        """
        votes = self._vm_votes.get(region, {})
        if OWN in votes:
            votes = {OWN: votes[OWN]}
        provider = region.partition(":")[0]
        known: dict[str, dict[str, int]] = {}
        for source, of_source in votes.items():
            named = {f"{provider}:{_plain(name)}": n for name, n in of_source.items() if name}
            named = {name: n for name, n in named.items() if name in catalogue.vm_types}
            if named:
                known[source] = named
        if not known:
            return None
        picks = [max(of, key=lambda name: (of[name], name)) for of in known.values()]
        return max(picks, key=lambda name: (picks.count(name), name))


def taken_with(samples: list[Sample], sites: Mapping[str, Site]) -> list[Sample]:
    """Return those throughput samples of one link that were taken with the VM types assumed."""
    src, dst = samples[0][:2]
    assumed_src, assumed_dst = sites[src].vm_type, sites[dst].vm_type
    others = {
        (src_vm, dst_vm)
        for src_vm, dst_vm in {(sample.src_vm, sample.dst_vm) for sample in samples}
        if not (_same_vm(src_vm, assumed_src) and _same_vm(dst_vm, assumed_dst))
    }
    if not others:  # as most often
        return samples
    return [sample for sample in samples if (sample.src_vm, sample.dst_vm) not in others]


def counted(
    metric: Metric, series: Series, sites: Mapping[str, Site], rtt_ms: Estimate | None = None
) -> Agreed:
    """Return the samples of one link that its own estimate of a metric rests on.

    Parameters
    ----------
    sites : mapping
        With the VM types assumed; a throughput sample that was taken with others is left out.
    rtt_ms : Estimate, optional
        Of the link, to compare tests from a cold start with others.
    """
    found = series.recent()
    if metric == "loss_pct":
        # All lost is what a filter for ICMP looks like: it says nothing of the path's loss.
        found = _only(found, lambda samples: [s for s in samples if s.value < ALL_LOST_PCT])
    elif metric in THROUGHPUT:
        found = _only(found, lambda samples: taken_with(samples, sites))
    if metric == "aggregate_mbps":
        found = _with_most_connections(found)
    if not found:
        return Agreed([])
    if len(found) == 1:
        return agreed(found, _no_log, 0.0)
    first = found[0].samples[0]
    ends = (first.src, first.dst)
    types = ends if not sites else (sites[ends[0]].vm_type, sites[ends[1]].vm_type)
    if types not in series._agreed:
        judged = agreed(found, log_of(metric, rtt_ms), _noise(metric, first))
        if metric == "aggregate_mbps":
            judged = replace(judged, samples=_comparable(judged, found))
        series._agreed[types] = judged
    return series._agreed[types]


def log_of(metric: Metric, rtt_ms: Estimate | None) -> Callable[[Sample], float]:
    """Return what gives the logarithm of a sample's value, without what slow start cost it."""

    def of(sample: Sample) -> float:
        value = sample.value
        if metric == "loss_pct":
            return log1p(value)
        if rtt_ms is not None and not sample.warmed_up and sample.duration_s:
            if metric == "aggregate_mbps":
                value /= bundle_share_of_steady(rtt_ms.expected, sample.duration_s)
            elif metric == "per_flow_mbps":
                window = window_from_flow_mb(value, rtt_ms.expected, sample.duration_s)
                value /= flow_share_of_steady(window, rtt_ms.expected, sample.duration_s)
        return log(max(value, LEAST_VALUE))

    return of


def _no_log(_: Sample) -> float:
    raise AssertionError("the samples of one source are not compared")


def _only(
    found: Iterable[FromSource], wanted: Callable[[list[Sample]], list[Sample]]
) -> list[FromSource]:
    kept = [replace(one, samples=wanted(one.samples)) for one in found]
    return [one for one in kept if one.samples]


def _with_most_connections(found: Sequence[FromSource]) -> list[FromSource]:
    """Leave out what fewer connections reached: they may not have saturated the pair."""
    kept = []
    for one in found:
        most = max(s.connections or 0 for s in one.samples)
        kept.append(replace(one, samples=[s for s in one.samples if (s.connections or 0) == most]))
    if len(kept) < 2:
        return kept
    least = reference_of(kept).samples[0].connections or 0
    return [one for one in kept if (one.samples[0].connections or 0) >= least]


def _comparable(judged: Agreed, found: Sequence[FromSource]) -> list[Sample]:
    """Return samples with one number of connections: that of the reference, or of a new level."""
    if judged.is_shift:
        wanted = max(sample.connections or 0 for sample in judged.samples)
    else:
        wanted = reference_of(found).samples[0].connections or 0
    return [s for s in judged.samples if (s.connections or 0) == wanted] or judged.samples


def _noise(metric: Metric, sample: Sample) -> float:
    """Return how far one test lies from its level: 90 % within it, as a logarithm."""
    if metric == "aggregate_mbps":
        law = law_of(sample.src, sample.dst, sample.address)
        return law.noise if law else UNKNOWN_NOISE
    return _NOISES.get(metric, UNKNOWN_NOISE)


def _plain(vm_name: str) -> str:
    """Return the name that catalogues give a VM type, without a provider or Azure's prefix."""
    return vm_name.rpartition(":")[2].removeprefix("Standard_")


def _same_vm(sampled: str, assumed_id: str) -> bool:
    return not sampled or _plain(sampled) == assumed_id.partition(":")[2]
