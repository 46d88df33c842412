"""Reads stored history in parts: a week of steps, with the earlier samples that these need.

Memory holds one part at a time. Every sample is read once: the newest samples of each series are
carried over to the next part, as many as the search for changes of level needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.link import Site
from probes.estimation import THROUGHPUT
from probes.estimation.current_samples import MOST_JUDGED
from probes.estimation.history_steps import Part
from probes.estimation.rolling import SeriesColumns
from probes.estimation.series import Samples, taken_with
from probes.samples import Metric, Sample
from relayd.store import Store
from relayd.store.samples.retention import vm_votes

if TYPE_CHECKING:
    from relayd.store.database import Database

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
_SELECT = (
    "SELECT dst_id, measured_at_s, value, connections, duration_s, warmed_up, setup_id "
    "FROM used_samples AS samples WHERE src_id = ? AND metric_id = ? "
)


class _Setup(NamedTuple):
    tool: str
    src_vm: str
    dst_vm: str


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
    """The samples of a store that a replay rests on.

    Parameters
    ----------
    store : Store
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

    def __init__(self, store: Store, catalogue: Catalogue, metric: Metric) -> None:
        self._database: Database = store.database
        self._metrics = {
            name: number for number, name in self._database.rows("SELECT id, name FROM metrics")
        }
        self.metric = metric
        self._setups = {
            row[0]: _Setup(*row[1:])
            for row in self._database.rows("SELECT id, tool, src_vm, dst_vm FROM setups")
        }
        index = self._database.rows(
            "SELECT src_id, dst_id, metric_id, setup_id, count(*), min(measured_at_s), "
            "max(measured_at_s) FROM used_samples GROUP BY src_id, dst_id, metric_id, setup_id"
        )
        names = dict(self._database.rows("SELECT id, name FROM regions"))
        of_metric = [row for row in index if row[2] == self._metrics.get(metric)]
        self.first_s = min((row[5] for row in of_metric), default=np.inf)
        self.last_s = max((row[6] for row in of_metric), default=-np.inf)
        ids = sorted({end for row in of_metric for end in row[:2]}, key=lambda end: names[end])
        self.regions = tuple(names[end] for end in ids)
        self._position = {end: place for place, end in enumerate(ids)}
        self.sites = self._sites_of(index, names, store, catalogue)
        self._foreign = self._other_vms(of_metric, names)
        self._ways = _ways(self._setups)
        self.samples_read = 0
        self.measured: dict[tuple[int, int], int] = {}
        for src, dst, _, setup, count, *_ in of_metric:
            if (src, dst, setup) not in self._foreign:
                pair = (self._position[src], self._position[dst])
                self.measured[pair] = self.measured.get(pair, 0) + int(count)

    def most_connections(self) -> int:
        """Return the most connections of any throughput sample; 0 if no sample states them."""
        (most,) = self._database.row(
            "SELECT coalesce(max(connections), 0) FROM used_samples AS samples WHERE metric_id = ?",
            (self._metrics.get(self.metric, 0),),
        )
        return int(most)

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
        carried = {metric: self._before(metric, span.begin_s) for metric in (self.metric, "rtt_ms")}
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

    def _sites_of(
        self,
        index: Sequence[tuple[int, ...]],
        names: dict[int, str],
        store: Store,
        catalogue: Catalogue,
    ) -> dict[str, Site]:
        votes = Samples()
        throughput = {self._metrics[name] for name in THROUGHPUT if name in self._metrics}
        for src, dst, metric, setup, count, *_ in index:
            if metric in throughput:
                way = self._setups[setup]
                votes.add_votes(names[src], names[dst], way.src_vm, way.dst_vm, int(count))
        for name, source, destination, src_vm, dst_vm, count, _ in vm_votes(store):
            if name in THROUGHPUT:
                votes.add_votes(source, destination, src_vm, dst_vm, count)
        sites = {}
        for region in self.regions:
            vm_type = votes.vm_type(region, catalogue)
            sites[region] = baseline_site(region, catalogue, {region: vm_type} if vm_type else {})
        return sites

    def _other_vms(
        self, of_metric: Sequence[tuple[int, ...]], names: dict[int, str]
    ) -> set[tuple[int, int, int]]:
        """Return source, destination and setup of samples with other VMs than a region's."""
        found = set()
        for src, dst, _, setup, *_ in of_metric:
            way = self._setups[setup]
            sample = Sample(
                names[src],
                names[dst],
                self.metric,
                0.0,
                0.0,
                way.tool,
                src_vm=way.src_vm,
                dst_vm=way.dst_vm,
            )
            if not taken_with([sample], self.sites):
                found.add((src, dst, setup))
        return found

    def _between(self, metric: str, begin_s: float, end_s: float) -> NDArray[np.void]:
        """Return the samples of a metric from one time until before another."""
        ids = list(self._position)
        places = ", ".join("?" * len(ids))
        found = [
            self._rows(
                src,
                metric,
                f"AND dst_id IN ({places}) AND measured_at_s >= ? AND measured_at_s < ?",
                (*ids, float(begin_s), float(end_s)),
            )
            for src in ids
        ]
        return np.concatenate(found) if found else np.empty(0, _ROW)

    def _before(self, metric: str, before_s: float) -> NDArray[np.void]:
        """Return the newest samples of each series that were known before a time."""
        if self.metric == metric and before_s <= self.first_s:
            return np.empty(0, _ROW)
        found = [
            self._rows(
                src,
                metric,
                "AND dst_id = ? AND measured_at_s < ? ORDER BY measured_at_s DESC LIMIT ?",
                (dst, float(before_s), MOST_JUDGED),
            )
            for src in self._position
            for dst in self._position
        ]
        return np.concatenate(found) if found else np.empty(0, _ROW)

    def _rows(
        self, src: int, metric: str, condition: str, values: Sequence[object]
    ) -> NDArray[np.void]:
        number = self._metrics.get(metric)
        if number is None:
            return np.empty(0, _ROW)
        position, count = self._position, len(self._position)
        foreign = self._foreign if metric == self.metric else ()
        ways = self._ways
        return np.fromiter(
            (
                (
                    position[src] * count + position[dst],
                    at_s,
                    value,
                    0.0 if warmed_up else duration_s,
                    connections,
                    ways[setup] * 2 + warmed_up,
                )
                for dst, at_s, value, connections, duration_s, warmed_up, setup in (
                    self._database.stream(_SELECT + condition, (src, number, *values))
                )
                if not foreign or (src, dst, setup) not in foreign
            ),
            _ROW,
        )


def _ways(setups: dict[int, _Setup]) -> dict[int, int]:
    """Return a number for each setup: figures are compared only within one."""
    numbers: dict[tuple[str, str, str], int] = {}
    return {
        setup: numbers.setdefault(
            (way.tool.partition(" ")[0], way.src_vm, way.dst_vm), len(numbers)
        )
        for setup, way in setups.items()
    }


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
