"""The samples that estimates rest on, as one table: links are estimated from it all at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import AddressKind
from probes.estimation.arrays.groups import Ints
from probes.estimation.arrays.series_samples import SERIES_FIELDS, SeriesSamples
from probes.samples import Metric, Sample

Pair: TypeAlias = tuple[str, str]
Rows: TypeAlias = NDArray[np.void]
THROUGHPUT = {"per_flow_mbps", "aggregate_mbps", "egress_cap_mbps", "ingress_cap_mbps"}
# Older samples of a link no longer count once there are newer ones.
MEMORY_S = 30 * 86400.0
# Nor do more than these: their median is known well, and memory stays bounded by the links.
MOST_SAMPLES = 64
ROW = np.dtype(
    [
        *(("src", "i4"), ("dst", "i4"), ("metric", "i4"), ("source", "i4"), ("at_s", "f8")),
        *(("value", "f8"), ("connections", "i4"), ("duration_s", "f8"), ("src_vm", "i4")),
        *(("dst_vm", "i4"), ("detail", "i4"), ("first_id", "i8"), ("number", "i8")),
        *(("address", "i1"), ("warmed_up", "?"), ("new_level", "?")),
    ]
)
"""A sample. Names are numbers of :class:`NameNumbers`, a detail its place in a list; -1 for none.
Without a notion of connections or a duration, 0. An address is a place in :data:`ADDRESSES`, the
number that of the sample in the order in which they were taken in."""
ADDRESSES: tuple[AddressKind | None, ...] = (None, "public", "private")


class NameNumbers(dict[str, int]):
    """Numbers of names, in the order in which they were first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number

    def name(self, number: int) -> str:
        """Return the name of a number."""
        return next(islice(self, number, None))


class _Runs(NamedTuple):
    """A column as values, and how often each comes."""

    values: list[Any]
    times: list[int]

    def add(self, found: Any, size: int) -> None:
        """Add a list of values, or one value so many times."""
        if isinstance(found, list):
            self.values.extend(found)
            self.times.extend([1] * size)
        else:
            self.values.append(found)
            self.times.append(size)


def _counted(numbers: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the different numbers, all below a size, and how often each comes."""
    if size > len(numbers):
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers)  # sorting takes longer
    unique = np.flatnonzero(counts)
    return unique, counts[unique]


def _or_zero(value: float | None) -> float:
    return value or 0


class SampleTable:
    """Samples by link and metric, and which VM types they were taken with."""

    def __init__(self) -> None:
        self.regions, self.metrics = NameNumbers(), NameNumbers()
        self.sources, self.vms = NameNumbers(), NameNumbers()
        self.details: list[str] = []
        self._parts: list[Rows] = []
        self._waiting: list[tuple[Any, ...]] = []
        self._columns: defaultdict[str, _Runs] = defaultdict(lambda: _Runs([], []))
        self._in_columns = 0
        vm = self.vms.__getitem__
        self._read: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
            "value": ("value", None),
            "at_s": ("measured_at_s", None),
            **{name: (name, None) for name in ("warmed_up", "new_level")},
            **{name: (name, _or_zero) for name in ("connections", "duration_s")},
            "src_vm": ("src_vm", vm),
            "dst_vm": ("dst_vm", vm),
            "detail": ("detail", self.detail),
            "address": ("address", ADDRESSES.index),
        }
        self._votes: list[tuple[str, str, str, int]] = []
        self._added = 0

    def add(self, samples: Iterable[Sample], source: str, first_id: int) -> None:
        """Take in samples; those of one link, metric and source oldest first."""
        if self._in_columns:
            self._take_waiting()
        regions, metrics, vms, by = self.regions, self.metrics, self.vms, self.sources[source]
        before = len(self._waiting)
        self._waiting += [
            (
                *(regions[sample.src], regions[sample.dst], metrics[sample.metric], by),
                *(sample.measured_at_s, sample.value),
                *(sample.connections or 0, sample.duration_s or 0.0),
                *(vms[sample.src_vm], vms[sample.dst_vm], self.detail(sample.detail), first_id),
                *(number, ADDRESSES.index(sample.address), sample.warmed_up, sample.new_level),
            )
            for number, sample in enumerate(samples, self._added)
        ]
        self._added += len(self._waiting) - before
        if len(self._waiting) >= _AT_ONCE:
            self._take_waiting()

    def add_series(self, samples: SeriesSamples, source: str, first_id: int) -> None:
        """Take in samples of one series as :meth:`add` does, without an object for each."""
        if self._waiting:
            self._take_waiting()
        src, dst, metric = samples.series
        for name, value in (
            *(("src", self.regions[src]), ("dst", self.regions[dst]), ("first_id", first_id)),
            *(("metric", self.metrics[metric]), ("source", self.sources[source])),
        ):
            self._columns[name].add(value, samples.size)
        for name, (field, number_of) in self._read.items():
            found = samples.columns[SERIES_FIELDS[field]]
            if isinstance(found, list):
                found = found if number_of is None else list(map(number_of, found))
            elif name == "detail" and found:  # each has a place of its own
                found = [self.detail(found) for _ in range(samples.size)]
            else:
                found = found if number_of is None else number_of(found)
            self._columns[name].add(found, samples.size)
        self._added += samples.size
        self._in_columns += samples.size
        if self._in_columns >= _AT_ONCE:
            self._take_waiting()

    def detail(self, text: str) -> int:
        """Return the place of a detail, -1 for none."""
        if not text:
            return -1
        self.details.append(text)
        return len(self.details) - 1

    def add_rows(self, rows: Rows) -> None:
        """Take in samples as :meth:`add` does, as a table."""
        self._take_waiting()
        self._parts.append(rows)

    def sort(self, regions: Mapping[str, int], metrics: Mapping[str, int]) -> None:
        """Put samples in order by their source, destination and metric.

        Parameters
        ----------
        regions, metrics : mapping
            Name to place in the order.
        """
        rows = self.rows
        place = np.array([regions[name] for name in self.regions], np.int64)
        of_metric = np.array([metrics[name] for name in self.metrics], np.int64)
        count = len(metrics) and max(metrics.values()) + 1
        width = max(regions.values(), default=0) + 1
        keys = (place[rows["src"]] * width + place[rows["dst"]]) * count + of_metric[rows["metric"]]
        if (np.diff(keys) < 0).any():
            self._parts = [rows[np.argsort(keys, kind="stable")]]

    def number(self, names: Sequence[str]) -> None:
        """Give regions the numbers that they have in some names, which hold all of them."""
        rows = self.rows
        index = {name: place for place, name in enumerate(names)}
        place = np.array([index[name] for name in self.regions], np.int32)
        if (place != np.arange(len(place))).any():
            for end in ("src", "dst"):
                rows[end] = place[rows[end]]
        self.regions.clear()
        self.regions.update(index)

    def _take_waiting(self) -> None:
        if self._waiting:
            self._parts.append(np.array(self._waiting, ROW))
            self._waiting.clear()
        if self._in_columns:
            rows = np.empty(self._in_columns, ROW)
            for name, column in self._columns.items():
                rows[name] = np.repeat(np.array(column.values), column.times)
            rows["number"] = np.arange(self._added - self._in_columns, self._added)
            self._parts.append(rows)
            self._columns.clear()
            self._in_columns = 0

    def add_votes(
        self, src: str, dst: str, src_vm: str, dst_vm: str, count: int, source: str
    ) -> None:
        """Count throughput samples for the VM types that they name."""
        self._votes += [(src, source, src_vm, count), (dst, source, dst_vm, count)]

    @property
    def rows(self) -> Rows:
        """All samples, in the order in which they were taken in."""
        self._take_waiting()
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.zeros(0, ROW), *self._parts])]
        return self._parts[0]

    @property
    def is_mixed(self) -> bool:
        """Whether several sources have reported anything."""
        return len(self.sources) > 1

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return float(self.rows["at_s"].max()) if len(self.rows) else 0.0

    def known_metrics(self) -> list[Metric]:
        """Return the metrics of which there are samples."""
        found: list[Any] = list(self.metrics)
        return found

    def metric_numbers(self, metrics: Iterable[str]) -> list[int]:
        """Return the numbers of those metrics of which there are samples."""
        return [self.metrics[metric] for metric in metrics if metric in self.metrics]

    def reporters(self, rows: Rows) -> dict[tuple[int, int], set[str]]:
        """Return who reported the links of some rows, by the numbers of their ends."""
        found: dict[tuple[int, int], set[str]] = defaultdict(set)
        sources = list(self.sources)
        keys = np.stack([rows["src"], rows["dst"], rows["source"]])
        for src, dst, source in np.unique(keys, axis=1).T.tolist():
            found[src, dst].add(sources[source])
        return found

    def votes(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return region to who reported to VM type to how many samples named it."""
        found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(Counter))
        rows = self.rows[np.isin(self.rows["metric"], self.metric_numbers(THROUGHPUT))]
        regions, sources, vms = list(self.regions), list(self.sources), list(self.vms)
        for end in ("src", "dst"):
            keys = [rows[end], rows["source"], rows[f"{end}_vm"]]
            shape = (len(regions), len(sources), len(vms))
            numbers = np.ravel_multi_index(keys, shape) if len(rows) else np.zeros(0, np.int64)
            unique, counts = _counted(numbers, prod(shape))
            for *key, count in zip(*np.unravel_index(unique, shape), counts, strict=True):
                region, source, vm = key
                found[regions[region]][sources[source]][vms[vm]] += int(count)
        for region_id, by, name, count in self._votes:
            found[region_id][by][name] += count
        return found

    def samples(self, rows: Rows, regions: Sequence[str]) -> list[Sample]:
        """Return rows as samples, without what no estimate looks at.

        Parameters
        ----------
        rows : Rows
        regions : sequence of str
            Whose places the ends of the rows are.
        """
        vms = list(self.vms)
        metrics = self.known_metrics()
        return [
            Sample(
                *(regions[row["src"]], regions[row["dst"]], metrics[row["metric"]]),
                *(float(row["value"]), float(row["at_s"]), ""),
                connections=int(row["connections"]) or None,
                duration_s=float(row["duration_s"]) or None,
                warmed_up=bool(row["warmed_up"]),
                src_vm=vms[row["src_vm"]],
                dst_vm=vms[row["dst_vm"]],
                detail=self.details[row["detail"]] if row["detail"] >= 0 else "",
                address=ADDRESSES[row["address"]],
                new_level=bool(row["new_level"]),
            )
            for row in rows
        ]


_AT_ONCE = 10_000
