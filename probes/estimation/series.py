"""Which samples of each metric and link count, and for whom they speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan, log, log1p, nan
from typing import NamedTuple

import numpy as np

from planner.model.link import Site
from planner.model.throughput import (
    UNKNOWN_NOISE,
    bundle_share_of_steady,
    flow_share_of_steady,
    law_of,
    window_from_flow_mb,
)
from planner.single_flow.spreads import REPEAT_ERROR
from probes.estimation.agreement import Agreed, FromSource, Mark, agreed, reference_of, trusted
from probes.estimation.arrays.groups import Bools, Floats, Groups, Ints
from probes.estimation.arrays.sample_table import (
    MEMORY_S,
    MOST_SAMPLES,
    THROUGHPUT,
    Rows,
    SampleTable,
)
from probes.estimation.arrays.vm_types import AssumedTypes
from probes.samples import Metric, Sample

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


class Counted(NamedTuple):
    """The samples of one metric that count, by link.

    Attributes
    ----------
    rows : Rows
    groups : Groups
        One for each link.
    marks : array of int
        For each link, which of :attr:`LinkSamples.marks` says whose samples these are.
    """

    rows: Rows
    groups: Groups
    marks: Ints

    @property
    def src(self) -> Ints:
        """Number of the source of each link."""
        return self._ends("src")

    @property
    def dst(self) -> Ints:
        """Number of the destination of each link."""
        return self._ends("dst")

    def _ends(self, name: str) -> Ints:
        found: Ints = self.rows[name][self.groups.first].astype(np.int64)
        return found

    def where(self, chosen: Bools) -> Counted:
        """Return the samples that are chosen; a link without one is left out."""
        if chosen.all():
            return self
        numbers = self.groups.numbers()[chosen]
        groups = Groups.of(numbers)
        return Counted(self.rows[chosen], groups, self.marks[numbers[groups.first]])


class LinkSamples:
    """The samples over one kind of address between some regions, by metric and link.

    Parameters
    ----------
    table : SampleTable
    rows : Rows
        Of the table. The numbers of their ends are places among the sites.
    sites : mapping
        The regions, with the VM types assumed: a throughput sample that was taken with others does
        not count.

    Attributes
    ----------
    names : list of str
    marks : list of Mark or None
        The first is None: of the own prober, or of the only source that there is.
    agreements : dict
        Metric, source and destination to which samples count, where several sources have reported.
    """

    def __init__(self, table: SampleTable, rows: Rows, sites: Mapping[str, Site]) -> None:
        self.table, self.names = table, list(sites)
        self.marks: list[Mark | None] = [None]
        self.agreements: dict[tuple[Metric, int, int], Agreed] = {}
        self._sources = list(table.sources)
        self._fits = AssumedTypes(table, sites)
        self._counted: dict[Metric, Counted] = {}
        self._series = _arranged(rows)

    def recent(self, metric: Metric) -> tuple[Rows, Groups]:
        """Return the samples that are not much older than the newest of their link."""
        of_metric = self._series["metric"] == self.table.metrics.get(metric, -1)
        rows = self._series if of_metric.all() else self._series[of_metric]
        groups = Groups.of(rows["src"], rows["dst"])
        newest_s = groups.reduced(np.maximum, rows["at_s"])
        recent = rows["at_s"] >= groups.spread(newest_s) - MEMORY_S
        return (rows, groups) if recent.all() else (rows[recent], groups.kept(recent))

    def pairs(self) -> Bools:
        """Return of which links there are samples, shape (n, n)."""
        found = np.zeros((len(self.names), len(self.names)), np.bool_)
        found[self._series["src"], self._series["dst"]] = True
        return found

    def taken_with(self, rows: Rows) -> Bools:
        """Return which throughput samples were taken with the VM types assumed."""
        return self._fits.of(rows)

    def counted(self, metric: Metric, rtts_ms: Floats | None = None) -> Counted:
        """Return the samples on which estimates of a metric rest.

        Parameters
        ----------
        rtts_ms : array, shape (n, n)
            Of the links, to compare tests from a cold start with others; NaN where not known.
        """
        if metric not in self._counted:
            self._counted[metric] = self._count(metric, rtts_ms)
        return self._counted[metric]

    def _count(self, metric: Metric, rtts_ms: Floats | None) -> Counted:
        rows, groups = self.recent(metric)
        if metric == "loss_pct":
            # All lost is what a filter for ICMP looks like: it says nothing of the path's loss.
            rows, groups = _chosen(rows, groups, rows["value"] < ALL_LOST_PCT)
        elif metric in THROUGHPUT:
            rows, groups = _chosen(rows, groups, self.taken_with(rows))
        if metric == "aggregate_mbps":
            # What fewer connections reached may not have saturated the pair.
            parts = Groups.of(groups.numbers(), rows["source"])
            most = parts.reduced(np.maximum, rows["connections"])
            rows, groups = _chosen(rows, groups, rows["connections"] == parts.spread(most))
        found = Counted(rows, groups, np.zeros(len(groups.first), np.int64))
        return self._judged(metric, found, rtts_ms) if self.table.is_mixed else found

    def _judged(self, metric: Metric, found: Counted, rtts_ms: Floats | None) -> Counted:
        """Return the samples that count where several sources have reported."""
        rows, groups, _ = found
        source = rows["source"]
        of_source = np.array([self._mark(Agreed([], trusted(name))) for name in self._sources])
        marks = of_source[source[groups.first]]
        several = groups.reduced(np.minimum, source) != groups.reduced(np.maximum, source)
        if not several.any():
            return Counted(rows, groups, marks)
        alone = np.flatnonzero(~groups.spread(several))
        places, numbers = [alone], [groups.numbers()[alone]]
        for number in np.flatnonzero(several).tolist():
            begin, end = groups.begins[number : number + 2].tolist()
            kept = begin + self._agreed_of(metric, rows[begin:end], rtts_ms)
            marks[number] = self._mark(self.agreements[self._key(metric, rows[begin])])
            places.append(kept)
            numbers.append(np.full(len(kept), number))
        order = np.argsort(np.concatenate(numbers), kind="stable")
        of_link = np.concatenate(numbers)[order]
        groups = Groups.of(of_link)
        return Counted(rows[np.concatenate(places)[order]], groups, marks[of_link[groups.first]])

    def _agreed_of(self, metric: Metric, rows: Rows, rtts_ms: Floats | None) -> Ints:
        """Return which samples of one link count; in the order in which they do."""
        of_source = self.from_sources(rows)
        place = {id(s): at for at, s in enumerate(s for of in of_source for s in of.samples)}
        rtt_ms = nan if rtts_ms is None else float(rtts_ms[rows["src"][0], rows["dst"][0]])
        judged = _agreement(metric, of_source, None if isnan(rtt_ms) else rtt_ms)
        self.agreements[self._key(metric, rows[0])] = judged
        return np.array([place[id(sample)] for sample in judged.samples], np.int64)

    def from_sources(self, rows: Rows) -> list[FromSource]:
        """Return the samples of one link by who reported them."""
        samples = self.samples(rows)
        return [
            FromSource(self._sources[first["source"]], int(first["first_id"]), samples[one])
            for one in Groups.of(rows["source"])
            for first in [rows[one.start]]
        ]

    def samples(self, rows: Rows) -> list[Sample]:
        """Return rows as samples."""
        return self.table.samples(rows, self.names)

    @staticmethod
    def _key(metric: Metric, row: np.void) -> tuple[Metric, int, int]:
        return metric, int(row["src"]), int(row["dst"])

    def _mark(self, found: Agreed) -> int:
        mark = Mark.of(found)
        if mark not in self.marks:
            self.marks.append(mark)
        return self.marks.index(mark)


def _arranged(rows: Rows) -> Rows:
    """Return rows by series and source, as they first appear; of each source the newest."""
    if not len(rows):
        return rows
    regions, sources = (
        int(max(rows[n].max() for n in of)) + 1 for of in (("src", "dst"), ("source",))
    )
    key = (rows["metric"].astype(np.int64) * regions + rows["src"]) * regions + rows["dst"]
    series = _ranks(key)
    parts = _ranks(series * sources + rows["source"]) if sources > 1 else series
    if (np.diff(series) < 0).any() or (np.diff(parts) < 0).any():
        order = np.lexsort((parts, series))
        rows, parts = rows[order], parts[order]
    groups = Groups.of(parts)
    first_ids = groups.spread(rows["first_id"][groups.first])
    if (first_ids != rows["first_id"]).any():
        rows = rows.copy()
        rows["first_id"] = first_ids
    newest = groups.spread(groups.begins[1:]) - np.arange(len(rows)) <= MOST_SAMPLES
    return rows if newest.all() else rows[newest]


def _ranks(keys: Ints) -> Ints:
    """Return the place of each key among all, by where they first appear."""
    if (np.diff(keys) >= 0).all():
        return np.cumsum(np.diff(keys, prepend=keys[:1]) > 0)
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[numbers]


def _chosen(rows: Rows, groups: Groups, chosen: Bools) -> tuple[Rows, Groups]:
    return (rows, groups) if chosen.all() else (rows[chosen], groups.kept(chosen))


def _agreement(metric: Metric, found: Sequence[FromSource], rtt_ms: float | None) -> Agreed:
    """Return which samples of one link count; of each source with the most connections it had."""
    if metric == "aggregate_mbps":
        least = reference_of(found).samples[0].connections or 0
        found = [one for one in found if (one.samples[0].connections or 0) >= least]
    if len(found) == 1:
        return agreed(found, _no_log, 0.0)
    judged = agreed(found, log_of(metric, rtt_ms), _noise(metric, found[0].samples[0]))
    if metric == "aggregate_mbps":
        judged = replace(judged, samples=_comparable(judged, found))
    return judged


def log_of(metric: Metric, rtt_ms: float | None) -> Callable[[Sample], float]:
    """Return what gives the logarithm of a sample's value, without what slow start cost it."""

    def of(sample: Sample) -> float:
        value = sample.value
        if metric == "loss_pct":
            return log1p(value)
        if rtt_ms is not None and not sample.warmed_up and sample.duration_s:
            if metric == "aggregate_mbps":
                value /= bundle_share_of_steady(rtt_ms, sample.duration_s)
            elif metric == "per_flow_mbps":
                window = window_from_flow_mb(value, rtt_ms, sample.duration_s)
                value /= flow_share_of_steady(window, rtt_ms, sample.duration_s)
        return log(max(value, LEAST_VALUE))

    return of


def _no_log(_: Sample) -> float:
    raise AssertionError("the samples of one source are not compared")


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
