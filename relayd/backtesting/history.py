"""Reads stored history in parts: a week of steps, with the earlier samples that these need.

Memory holds one part at a time. Every sample is read once: the newest samples of each series are
carried over to the next part, as many as the search for changes of level needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.graph import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.link import Site
from probes.estimation import THROUGHPUT
from probes.estimation.arrays.sample_table import SampleTable
from probes.estimation.arrays.vm_types import is_of_type, vm_type_of
from probes.estimation.current_samples import MOST_JUDGED
from probes.estimation.history_steps import Part
from probes.estimation.rolling import SeriesColumns
from probes.samples import OWN, Metric
from relayd.history.source import SampleHistory, SeriesSpan
from relayd.store.samples.columns import Setup

PART_S = 7 * 86400.0
MOST_STEPS_OF_PART = 1000
# Pairs times steps of a part: where each of its steps begins in each series is held at once.
MOST_PLACES_OF_PART = 20_000_000
_ROW = np.dtype(
    [
        ("pair", "i8"),
        ("at_s", "f8"),
        ("value", "f8"),
        ("cold_s", "f8"),
        ("connections", "i4"),
        ("way", "i4"),
    ]
)


@dataclass(frozen=True, slots=True)
class ReplaySpan:
    """Steps of equal length.

    Attributes
    ----------
    begin_s, step_s : float
    steps : int
    """

    begin_s: float
    step_s: float
    steps: int

    @property
    def end_s(self) -> float:
        """When the last step ends."""
        return self.begin_s + self.steps * self.step_s


class ReplayHistory:
    """The samples that a replay rests on.

    Parameters
    ----------
    samples : SampleHistory
    catalogue : Catalogue
        For VM types: of a region, samples of the type that most name are taken, as estimates do.
    metric : Metric
        Of throughput.

    Attributes
    ----------
    regions : tuple of str
        Those at either end of a throughput sample.
    sites : dict of str to Site
        With the caps of their VM types.
    measured : dict
        Positions of source and destination to how many throughput samples there are.
    first_s, last_s : float
        Times of the first and the last throughput sample; infinity and its opposite without any.
    samples_read : int
        Throughput samples within the steps that were yielded so far.
    """

    def __init__(self, samples: SampleHistory, catalogue: Catalogue, metric: Metric) -> None:
        self._samples = samples
        self.metric = metric
        series, names = samples.series(), samples.regions
        of_metric = [one for one in series if one.metric == metric]
        self.first_s = min((one.first_s for one in of_metric), default=np.inf)
        self.last_s = max((one.last_s for one in of_metric), default=-np.inf)
        ids = {end for one in of_metric for end in (one.src, one.dst)}
        self._ids = sorted(ids, key=lambda end: names[end])
        self.regions = tuple(names[end] for end in self._ids)
        self._position = np.full(max(names, default=0) + 1, -1)
        self._position[self._ids] = np.arange(len(self._ids))
        self.sites = self._sites_of(series, catalogue)
        foreign = self._other_vms(of_metric)
        self._foreign = np.array([self._code(*one) for one in foreign], np.int64)
        self._ways = _ways(samples.setups)
        self.samples_read = 0
        self.measured: dict[tuple[int, int], int] = {}
        for one in of_metric:
            if (one.src, one.dst, one.setup) not in foreign:
                pair = (int(self._position[one.src]), int(self._position[one.dst]))
                self.measured[pair] = self.measured.get(pair, 0) + one.samples

    def most_connections(self) -> int:
        """Return the most connections of any throughput sample; 0 if no sample states them."""
        return self._samples.most_connections(self.metric)

    def span(self, step_s: float, since_s: float | None, until_s: float | None) -> ReplaySpan:
        """Return the steps from the first to the last sample, within limits."""
        first_s = self.first_s if since_s is None else max(since_s, self.first_s)
        last_s = self.last_s if until_s is None else min(until_s, self.last_s)
        if not first_s <= last_s:
            return ReplaySpan(0.0, step_s, 0)
        begin_s = float(np.floor(first_s / step_s) * step_s)
        return ReplaySpan(begin_s, step_s, int((last_s - begin_s) // step_s) + 1)

    def parts(self, span: ReplaySpan) -> Iterator[Part]:
        """Yield the steps in parts, the oldest first."""
        pairs = max(1, len(self.regions) ** 2)
        most = min(MOST_STEPS_OF_PART, MOST_PLACES_OF_PART // pairs, PART_S // span.step_s)
        metrics: tuple[Metric, ...] = (self.metric, "rtt_ms")
        carried = {metric: self._before(metric, span.begin_s) for metric in metrics}
        for first in range(0, span.steps, max(1, int(most))):
            last = min(first + max(1, int(most)), span.steps)
            edges_s = span.begin_s + span.step_s * np.arange(first, last + 1, dtype=np.float64)
            series = {}
            for metric, before in carried.items():
                new = self._between(metric, edges_s[0], edges_s[-1])
                if metric == self.metric:
                    self.samples_read += len(new)
                rows = np.concatenate([before, new])
                rows = rows[np.lexsort((rows["value"], rows["at_s"], rows["pair"]))]
                series[metric] = rows
            yield Part(
                edges_s, *(_columns(series[metric], pairs) for metric in (self.metric, "rtt_ms"))
            )
            carried = {metric: _newest(rows) for metric, rows in series.items()}

    def _sites_of(self, series: Sequence[SeriesSpan], catalogue: Catalogue) -> dict[str, Site]:
        table, names = SampleTable(), self._samples.regions
        for one in series:
            if one.metric in THROUGHPUT:
                way = self._samples.setups[one.setup]
                ends = (names[one.src], names[one.dst])
                table.add_votes(*ends, way.src_vm, way.dst_vm, one.samples, OWN)
        for vote in self._samples.votes():
            if vote.metric in THROUGHPUT:
                ends = (vote.src, vote.dst)
                table.add_votes(*ends, vote.src_vm, vote.dst_vm, vote.samples, OWN)
        sites, votes = {}, table.votes()
        for region in self.regions:
            vm_type = vm_type_of(region, votes, catalogue)
            sites[region] = baseline_site(region, catalogue, {region: vm_type} if vm_type else {})
        return sites

    def _other_vms(self, of_metric: Sequence[SeriesSpan]) -> set[tuple[int, int, int]]:
        """Return source, destination and setup of samples with other VMs than a region's."""
        found, names = set(), self._samples.regions
        for one in of_metric:
            way = self._samples.setups[one.setup]
            ends = ((names[one.src], way.src_vm), (names[one.dst], way.dst_vm))
            if not all(is_of_type(vm, self.sites[region].vm_type) for region, vm in ends):
                found.add((one.src, one.dst, one.setup))
        return found

    def _between(self, metric: Metric, begin_s: float, end_s: float) -> NDArray[np.void]:
        """Return the samples of a metric from one time until before another."""
        return self._rows(self._samples.between(metric, self._ids, begin_s, end_s), metric)

    def _before(self, metric: Metric, before_s: float) -> NDArray[np.void]:
        """Return the newest samples of each series that were known before a time."""
        if self.metric == metric and before_s <= self.first_s:
            return np.empty(0, _ROW)
        return self._rows(self._samples.before(metric, self._ids, before_s, MOST_JUDGED), metric)

    def _rows(self, found: NDArray[np.void], metric: Metric) -> NDArray[np.void]:
        if metric == self.metric and len(self._foreign):
            codes = self._code(found["src"], found["dst"], found["setup"])
            found = found[~np.isin(codes, self._foreign)]
        rows = np.empty(len(found), _ROW)
        position = self._position
        rows["pair"] = position[found["src"]] * len(self._ids) + position[found["dst"]]
        rows["at_s"], rows["value"] = found["at_s"], found["value"]
        rows["cold_s"] = np.where(found["warmed_up"], 0.0, found["duration_s"])
        rows["connections"] = found["connections"]
        rows["way"] = self._ways[found["setup"]] * 2 + found["warmed_up"]
        return rows

    def _code(self, src: Any, dst: Any, setup: Any) -> Any:
        """Return a number for each link and setup."""
        count = len(self._position)
        return (np.int64(src) * count + dst) * (max(self._samples.setups, default=0) + 1) + setup


def _ways(setups: dict[int, Setup]) -> NDArray[np.int64]:
    """Return a number for each setup: figures are compared only within one."""
    numbers: dict[tuple[str, str, str], int] = {}
    found = np.zeros(max(setups, default=0) + 1, np.int64)
    for setup, way in setups.items():
        kind = (way.tool.partition(" ")[0], way.src_vm, way.dst_vm)
        found[setup] = numbers.setdefault(kind, len(numbers))
    return found


def _columns(rows: NDArray[np.void], pairs: int) -> SeriesColumns:
    """Return sorted rows as columns."""
    return SeriesColumns(
        np.searchsorted(rows["pair"], np.arange(pairs + 1)),
        rows["at_s"].copy(),
        rows["value"].copy(),
        rows["cold_s"].copy(),
        rows["connections"].copy(),
        rows["way"].copy(),
    )


def _newest(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Return the newest rows of each pair, of sorted ones."""
    if not len(rows):
        return rows
    ends = np.append(np.flatnonzero(np.diff(rows["pair"])) + 1, len(rows))
    lengths = np.diff(ends, prepend=0)
    from_the_end = np.repeat(ends, lengths) - np.arange(len(rows))
    return rows[from_the_end <= MOST_JUDGED]
