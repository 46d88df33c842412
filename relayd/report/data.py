"""The samples that a report analyses, read once, when a section first asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import inf
from typing import Literal, TypeVar

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.link_states import Pair
from planner.model.network import UNSAVED, Network
from planner.model.throughput import steady_rates
from probes.analysis.evidence import Floats, Record, TooFewError
from probes.estimation import Estimator
from probes.estimation.groups import Groups
from probes.metrics import METRICS, Metric
from probes.samples import Rows, Samples
from relayd.history import SampleHistory
from relayd.tables.figures import matrix_of, measured_regions

K = TypeVar("K")
V = TypeVar("V")


class ReportData:
    """Samples by metric, with the catalogue's regions: all, or those since a time (s since 1970).

    `corrected` has the number of samples corrected for slow start, of each metric asked for so far.
    """

    def __init__(
        self, history: SampleHistory, catalogue: Catalogue, since_s: float | None = None
    ) -> None:
        self._history, self.catalogue, self.since_s = history, catalogue, since_s
        self._samples: dict[str, Samples] = {}
        self._pairs: dict[str, dict[Pair, Rows]] = {}
        self._medians: dict[str, dict[Pair, float]] = {}
        self.corrected: dict[Metric, int] = {}

    @cached_property
    def measured(self) -> Samples:
        """All samples, as they were measured."""
        return self._history.read(-inf if self.since_s is None else self.since_s)

    @cached_property
    def of_all_times(self) -> Samples:
        """The samples of all times, as they were measured."""
        return self.measured if self.since_s is None else self._history.read()

    def samples_of(self, metric: Metric) -> Samples:
        """Return all samples of a metric, with rates of cold tests corrected to steady ones."""
        if metric not in self._samples:
            self._samples[metric] = self.measured.of_metric(metric)
            if METRICS[metric].flows:
                self._correct(metric)
        return self._samples[metric]

    def _correct(self, metric: Metric) -> None:
        """Correct tests that include slow start, by the round-trip time that plans rest on."""
        samples, links = self._samples[metric], self.network.links
        rows, at = samples.rows, np.array([links.index.get(name, 0) for name in samples.names])
        cold = ~rows["warmed_up"] & (rows["duration_s"] > 0) & (rows["src"] != rows["dst"])
        rtts_ms = links.whole["rtt_ms"]["expected"][at[rows["src"][cold]], at[rows["dst"][cold]]]
        tests = rows["value"][cold], rtts_ms, rows["duration_s"][cold]
        rows["value"][cold] = steady_rates(*tests, one_flow=METRICS[metric].flows == "one")
        self.corrected[metric] = int(cold.sum())

    def pairs(self, metric: Metric) -> dict[Pair, Rows]:
        """Return the samples of each link, oldest first."""
        if metric not in self._pairs:
            series = self.samples_of(metric).groups()
            self._pairs[metric] = {(a, b): part.rows for (a, b, _), part in series if a != b}
        return self._pairs[metric]

    def vm_types(self, metric: Metric, row: np.void) -> str:
        """Return the VM types of a sample, such as ``m5.8xlarge > n2-standard-32``."""
        names = list(self.samples_of(metric).names)
        return f"{names[row['src_vm']] or '?'} > {names[row['dst_vm']] or '?'}"

    def tests(self, metric: Metric, which: Literal["intervals", "detail"]) -> Samples:
        """Return the tests that kept their intervals, or the details of their tool."""
        samples = self.measured.of_metric(metric)
        return samples[samples.rows[which] > 0]

    def medians(self, metric: Metric) -> dict[Pair, float]:
        """Return the median of each link's samples, in the order of the store."""
        if metric not in self._medians:
            pairs = self.pairs(metric)
            groups = Groups(np.cumsum([0, *map(len, pairs.values())]))
            values = np.concatenate([np.empty(0), *(rows["value"] for rows in pairs.values())])
            self._medians[metric] = dict(zip(pairs, groups.medians(values).tolist(), strict=True))
        return self._medians[metric]

    def matrix(self, metric: Metric) -> Floats:
        """Return the matrix of medians of regions, NaN where there is no sample."""
        medians = self.medians(metric)
        names = list(dict.fromkeys(end for pair in medians for end in pair))
        values = [medians.get((src, dst), np.nan) for src in names for dst in names]
        return np.array(values).reshape(len(names), len(names))

    @cached_property
    def network(self) -> Network:
        """The network of present estimates on which plans by these samples rest."""
        estimator = Estimator(self.measured, self.catalogue)
        return estimator.network(UNSAVED).with_(aged_to_s=time.time())

    def relay_gains(self, connections: int) -> Floats:
        """Return the gains of the best relays between measured regions; NaN where not known."""
        network = self.network.with_(restricted_to=measured_regions(self.network))
        gains: Floats = matrix_of(network, self.catalogue, "relay-gain", connections).values
        return np.maximum(gains, 1.0)

    @property
    def span_s(self) -> tuple[float, float] | None:
        """First and last time of any sample that was read so far; None without any."""
        read = [one.rows["measured_at_s"] for one in self._samples.values()]
        times = np.concatenate([np.empty(0), *read])
        return (float(times.min()), float(times.max())) if len(times) else None


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, keys in the order of their first value."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def analysed(of_links: Mapping[Pair, V], analyse: Callable[[V], Record]) -> list[Record]:
    """Return the analyses of links as records with their ends, where there is enough for one."""
    records = []
    for (src, dst), one in of_links.items():
        with suppress(TooFewError):
            records.append({"src": src, "dst": dst, **analyse(one)})
    return records


def at_most_connections(rows: Rows) -> Rows:
    """Return the tests with the largest number of connections."""
    most: Rows = rows[rows["connections"] == rows["connections"].max(initial=0)]
    return most


def in_time(analyse: Callable[..., Record]) -> Callable[[Rows], Record]:
    """Return an analysis of times and values as one of samples."""
    return lambda rows: analyse(rows["measured_at_s"], rows["value"])


def median_of(records: Sequence[Record], key: str) -> float:
    """Return the median of one figure of some records."""
    return float(np.median([one[key] for one in records]))


def provider_pair(src: str, dst: str) -> str:
    """Return ``aws > gcp`` for a link."""
    return f"{src.partition(':')[0]} > {dst.partition(':')[0]}"
